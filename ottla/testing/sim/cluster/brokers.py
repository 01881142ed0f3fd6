"""The brokers of a simulated cluster: real nodes, each on a machine of its own, over one ensemble."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ottla.base.errors import ConfigError, StorageError
from ottla.cluster.image import ClusterImage
from ottla.cluster.zk.port import CoordinationError
from ottla.server.brokers.stray_replicas import is_replica
from ottla.server.node import Node
from ottla.testing.sim.coordination import HOST, SimCoordination
from ottla.testing.sim.nodes import node_on
from ottla.testing.sim.world import Machine, World

_log = logging.getLogger(__name__)

PORT = 9092
SESSION_SECONDS = 6.0
CLIENTS = "clients"
# A supervisor restarts a broker that has ended by itself after this time.
RESTART_SECONDS = 1.0


class SimCluster:
    """Brokers 1 to `count`; the machine of broker 1 is named `b1`.

    `settings` are added to every broker's settings. A broker that ends by itself, as when its disk
    is full, is restarted until it runs, except while it is down on purpose.
    """

    def __init__(self, world: World, count: int, settings: Mapping[str, str] | None = None) -> None:
        self.world = world
        self.clock = world.machine(CLIENTS).clock
        self.coordination = SimCoordination(world.network, self.clock)
        self.ids = range(1, count + 1)
        # Running brokers, which includes those that start.
        self.nodes: dict[int, Node] = {}
        # Unexpected exceptions of background tasks in brokers that have ended.
        self.task_failures: Counter[str] = Counter()
        self._serving: set[int] = set()
        self._settings = dict(settings or {})
        self._starts: dict[int, asyncio.Task[None]] = {}
        self._watches: dict[int, asyncio.Task[None]] = {}

    def machine(self, broker_id: int) -> Machine:
        """Return the machine of a broker."""
        return self.world.machine(f"b{broker_id}")

    @property
    def hosts(self) -> list[str]:
        """The names of the brokers' machines."""
        return [f"b{number}" for number in self.ids]

    def is_serving(self, broker_id: int) -> bool:
        """Return True if a broker has started completely and has not ended."""
        return broker_id in self._serving

    # -- life -------------------------------------------------------------------------------------

    async def start(self, *ids: int) -> None:
        """Start brokers, all by default, one after the other."""
        for broker_id in ids or self.ids:
            await self.begin(broker_id)

    def begin(self, broker_id: int) -> "asyncio.Task[None]":
        """Start a broker; return the task that ends when it serves clients.

        It is cancelled if the broker is killed first.
        """
        machine = self.machine(broker_id)
        settings = {
            "node.id": str(broker_id),
            "listeners": f"PLAINTEXT://0.0.0.0:{PORT}",
            "allow.insecure.listeners": "true",
            "advertised.listeners": f"PLAINTEXT://{machine.name}:{PORT}",
            "log.dirs": "/data",
            "offsets.topic.num.partitions": "3",
            "transaction.state.log.num.partitions": "3",
            "zookeeper.session.timeout.ms": str(int(SESSION_SECONDS * 1000)),
            **self._settings,
        }

        async def live() -> None:
            node = node_on(machine, settings, self.coordination.access(machine.name))
            self.nodes[broker_id] = node
            await node.start()
            self._serving.add(broker_id)

        start = self._starts[broker_id] = machine.start(live)
        return start

    def keep_running(self, broker_id: int) -> None:
        """Start a broker now, and again whenever it ends by itself."""
        if broker_id not in self._watches:
            watch = asyncio.get_running_loop().create_task(self._keep_running(broker_id))
            self._watches[broker_id] = watch

    async def _keep_running(self, broker_id: int) -> None:
        machine = self.machine(broker_id)
        while True:
            start = self._starts.get(broker_id)
            if broker_id not in self.nodes or start is None:
                start = self.begin(broker_id)
            waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(machine.is_off.wait())]
            try:
                await asyncio.wait([start, *waits], return_when=asyncio.FIRST_COMPLETED)
                if start.done() and _has_started(start):
                    waits.append(asyncio.ensure_future(self._until_failed(self.nodes[broker_id])))
                    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                # Also if the broker is taken down: a task that waits for ever would keep it.
                for wait in waits:
                    wait.cancel()
            self.kill(broker_id)
            await self.clock.sleep(RESTART_SECONDS)

    async def _until_failed(self, node: Node) -> None:
        """Return once a node that has lost its storage has stopped."""
        failed = asyncio.get_running_loop().create_future()
        node.on_failure = lambda: None if failed.done() else failed.set_result(None)
        if node.failure is None:
            await failed
        # It stops by itself; give its pending responses time.
        await self.clock.sleep(RESTART_SECONDS)

    async def stop(self, broker_id: int) -> None:
        """Stop a broker as its owner would."""
        node = self.nodes[broker_id]
        self._serving.discard(broker_id)
        await self.machine(broker_id).run(node.stop)
        self.kill(broker_id)

    def kill(self, broker_id: int, *, expires: bool = False) -> None:
        """Kill a broker's process; its session ends after its timeout, or at once if it `expires`."""
        machine = self.machine(broker_id)
        self._ended(broker_id)
        if not machine.is_off.is_set():
            machine.kill()
        if expires:
            self.coordination.expire(machine.name)

    def power_off(self, broker_id: int) -> None:
        """Cut the power of a broker's machine: unsynced writes may be lost, in whole or in part."""
        machine = self.machine(broker_id)
        self._ended(broker_id)
        if not machine.is_off.is_set():
            machine.power_off()

    def take_down(self, broker_id: int, *, loses_power: bool = False) -> None:
        """End a broker until `keep_running` is called for it."""
        watch = self._watches.pop(broker_id, None)
        if watch is not None:
            watch.cancel()
        if loses_power:
            self.power_off(broker_id)
        else:
            self.kill(broker_id)

    async def take_down_gently(self, broker_id: int) -> None:
        """Stop a broker as its owner would, until `keep_running` is called for it."""
        watch = self._watches.pop(broker_id, None)
        if watch is not None:
            watch.cancel()
        await self.stop(broker_id)

    def _ended(self, broker_id: int) -> None:
        node = self.nodes.pop(broker_id, None)
        if node is not None:
            self.task_failures += node.task_failures
        self._serving.discard(broker_id)
        start = self._starts.pop(broker_id, None)
        if start is not None and not start.done():
            start.cancel()

    def close(self) -> None:
        """Stop watching the brokers."""
        for watch in self._watches.values():
            watch.cancel()
        self._watches.clear()

    # -- faults that are neither the disk's nor the machine's own
    # ------------------------------------

    def pause(self, broker_id: int) -> None:
        """Stop a broker's process like SIGSTOP."""
        self.machine(broker_id).pause()
        self.coordination.changed()

    def resume(self, broker_id: int) -> None:
        """Continue a paused process."""
        self.machine(broker_id).resume()
        self.coordination.changed()

    def isolate(
        self, broker_id: int, hosts: Iterable[str] | None = None, *, both_ways: bool = True
    ) -> None:
        """Cut a broker off from other hosts, by default from all: brokers, clients, ensemble."""
        name = f"b{broker_id}"
        everything = [*self.hosts, CLIENTS, HOST]
        targets = [host for host in (hosts or everything) if host != name]
        self.world.network.partition([name], targets, both_ways=both_ways)
        self.coordination.changed()

    def cut_from(self, broker_id: int, sources: Iterable[str]) -> None:
        """Cut the links from other hosts to a broker; bytes that the broker sends still arrive."""
        name = f"b{broker_id}"
        origins = [host for host in sources if host != name]
        self.world.network.partition(origins, [name], both_ways=False)
        self.coordination.changed()

    def heal(self) -> None:
        """Restore all links."""
        self.world.network.heal()
        self.coordination.changed()

    # -- observations
    # ---------------------------------------------------------------------------------

    @property
    def controllers(self) -> list[int]:
        """The brokers that act as controller."""
        return [key for key, node in self.nodes.items() if _is_controller(node)]

    async def until(self, condition: Callable[[], object], seconds: float = 60.0) -> None:
        """Wait until `condition` is true; raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while not condition():
                await self.clock.sleep(0.01)

    def agrees(self, topic: str, *, count: int, leaderless: bool = False) -> bool:
        """Return True if every broker knows the same leaders of a topic of `count` partitions."""
        views = []
        for node in self.nodes.values():
            image = node.broker.image.topic(topic) if node.has_broker else None
            if image is None or len(image.partitions) != count:
                return False
            if not leaderless and any(partition.leader < 0 for partition in image.partitions):
                return False
            views.append(
                [
                    (partition.leader, partition.leader_epoch, partition.isr)
                    for partition in image.partitions
                ]
            )
        return all(view == views[0] for view in views)

    def leader(self, topic: str, partition: int) -> int:
        """Return the leader that most brokers know; -1 if no broker knows one."""
        votes: dict[int, int] = {}
        for broker_id in sorted(self._serving):
            image = self.nodes[broker_id].broker.image.topic(topic)
            if image is not None and partition < len(image.partitions):
                leader = image.partitions[partition].leader
                votes[leader] = votes.get(leader, 0) + 1
        return max(votes, key=lambda leader: votes[leader]) if votes else -1

    def problems(self) -> list[str]:
        """Return why the cluster has not recovered, one line each; empty if all replicas are in
        sync.
        """
        problems = [f"broker {number} does not serve" for number in self.ids
                 if not self.is_serving(number)]  # fmt: skip
        if len(self.controllers) != 1:
            problems.append(f"controllers: {self.controllers}")
            return problems
        image = self.nodes[self.controllers[0]].broker.image
        if len(image.brokers) != len(self.ids):
            problems.append(f"registered brokers: {sorted(image.brokers)}")
        for name in sorted(image.topics):
            for number, state in enumerate(image.topics[name].partitions):
                if state.leader < 0 or len(state.isr) < len(state.replicas):
                    problems.append(f"{name}-{number}: leader {state.leader}, isr {state.isr}")
                if state.is_being_reassigned:
                    problems.append(f"{name}-{number}: moves to {state.replicas}")
        return problems or self._differences(image) or self._strays(image)

    def _differences(self, image: ClusterImage) -> list[str]:
        """Return the brokers that know other brokers or leaders than the controller."""
        expected = _leaders(image)
        return [
            f"broker {number} knows another cluster than the controller"
            for number in self.ids
            if _leaders(self.nodes[number].broker.image) != expected
        ]

    def _strays(self, image: ClusterImage) -> list[str]:
        """Return the replicas that the controller has assigned to other brokers."""
        return [
            f"broker {number} has {key[0]}-{key[1]}, which is not assigned to it"
            for number in self.ids
            for key in self.nodes[number].broker.replicas.directories.logs()
            if not is_replica(image, number, key)
        ]


def _leaders(image: ClusterImage) -> object:
    topics = {
        name: [(partition.leader, partition.leader_epoch) for partition in topic.partitions]
        for name, topic in image.topics.items()
    }
    return image.brokers.keys(), topics


def _has_started(start: "asyncio.Task[None]") -> bool:
    """Return False if the start failed as it may when a disk is full; raise other errors."""
    if start.cancelled():
        return False
    error = start.exception()
    if error is None:
        return True
    if not isinstance(error, StorageError | ConfigError | OSError | CoordinationError):
        raise error
    _log.info("broker did not start error=%s", error)
    return False


def _is_controller(node: Node) -> bool:
    return node.has_broker and node.broker.controller.is_active
