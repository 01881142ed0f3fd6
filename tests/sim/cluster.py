"""Several brokers over one coordination tree, each on a machine of its own."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TypeVar

from ottla.cluster.zk.embedded import EmbeddedSession, EmbeddedTree
from ottla.server.node import Node
from ottla.testing.sim.client import SimConnection, connect
from ottla.testing.sim.disk import Disk
from ottla.testing.sim.files import SimFileSystem
from ottla.testing.sim.world import Machine, World
from ottla.wire.fields import Message
from ottla.wire.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

M = TypeVar("M", bound=Message)

PORT = 9092
SESSION_SECONDS = 6.0


class SimCluster:
    """Brokers by id; a machine is named `b1`, `b2` and so on."""

    def __init__(self, world: World, count: int, settings: Mapping[str, str] | None = None) -> None:
        self.world = world
        self.clock = world.machine("clients").clock
        files = SimFileSystem(Disk(), clock=self.clock, rng=world.stream("tree"), trace=world.trace)
        self.tree = EmbeddedTree(files, self.clock)
        self.ids = range(1, count + 1)
        self.nodes: dict[int, Node] = {}
        self._settings = dict(settings or {})
        self._sessions: dict[int, set[int]] = {}

    def machine(self, broker_id: int) -> Machine:
        """Return the machine of a broker."""
        return self.world.machine(f"b{broker_id}")

    async def start(self, *ids: int) -> None:
        """Start brokers, all by default, one after the other."""
        for broker_id in ids or self.ids:
            await self.begin(broker_id)

    def begin(self, broker_id: int) -> "asyncio.Task[None]":
        """Start a broker; return the task that ends when it serves clients."""
        machine = self.machine(broker_id)
        settings = {
            "node.id": str(broker_id),
            "listeners": f"PLAINTEXT://0.0.0.0:{PORT}",
            "advertised.listeners": f"PLAINTEXT://{machine.name}:{PORT}",
            "log.dirs": "/data",
            "zookeeper.session.timeout.ms": str(int(SESSION_SECONDS * 1000)),
            "offsets.topic.num.partitions": "3",
            "transaction.state.log.num.partitions": "3",
            **self._settings,
        }

        async def live() -> None:
            node = Node(
                settings,
                clock=machine.clock,
                rng=machine.rng(),
                files=machine.files,
                net=machine.net,
                tree=self.tree,
            )
            self.nodes[broker_id] = node
            await node.start()

        return machine.start(live)

    async def stop(self, broker_id: int) -> None:
        """Stop a broker as its owner would."""
        node = self.nodes.pop(broker_id)
        await self.machine(broker_id).run(node.stop)
        self.machine(broker_id).kill()

    def kill(self, broker_id: int, *, expires: bool = False) -> None:
        """Kill a broker's process; its session ends after its timeout, or at once if it `expires`."""
        node = self.nodes.pop(broker_id)
        session = node.broker.controller.session
        self.machine(broker_id).kill()
        assert isinstance(session, EmbeddedSession)
        if expires:
            session.expire()
        else:
            session.suspend()

    @property
    def controllers(self) -> list[int]:
        """The brokers that act as controller."""
        return [key for key, node in self.nodes.items() if node.broker.controller.is_active]

    async def until(self, condition: Callable[[], object], seconds: float = 60.0) -> None:
        """Wait until `condition` is true."""
        async with asyncio.timeout(seconds):
            while not condition():
                await self.clock.sleep(0.01)

    def agrees(self, topic: str, *, count: int, leaderless: bool = False) -> bool:
        """Return True if every broker knows the same leaders of a topic of `count` partitions."""
        views = []
        for node in self.nodes.values():
            found = node.broker.image.topic(topic)
            if found is None or len(found.partitions) != count:
                return False
            if not leaderless and any(item.leader < 0 for item in found.partitions):
                return False
            views.append([(item.leader, item.leader_epoch, item.isr) for item in found.partitions])
        return all(view == views[0] for view in views)

    async def connect(self, broker_id: int) -> SimConnection:
        """Connect a client to a broker."""
        net = self.world.machine("clients").net
        return await connect(net, f"b{broker_id}", PORT, "test")

    async def ask(self, broker_id: int, request: Message, version: int, response: type[M]) -> M:
        """Send one request to a broker over a connection of its own."""
        connection = await self.connect(broker_id)
        try:
            async with asyncio.timeout(60):
                return await connection.request(request, version, response)
        finally:
            connection.close()

    async def create(
        self, broker_id: int, name: str, partitions: int, replicas: int
    ) -> CreateTopicsResponse:
        """Ask a broker to create a topic."""
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
        return await self.ask(broker_id, request, 7, CreateTopicsResponse)
