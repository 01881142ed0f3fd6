"""The dependencies of a controller without a broker: an in-memory tree and recording ports."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

import pytest

from ottla.base.clock import RealClock
from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.base.files import RealFileSystem
from ottla.base.options import Snapshot
from ottla.base.rng import SeededRng
from ottla.base.tasks import Tasks
from ottla.cluster.image import BrokerImage, ClusterImage, PartitionState
from ottla.cluster.options import option_tables
from ottla.cluster.zk.embedded import EmbeddedTree
from ottla.cluster.zk.port import Coordination
from ottla.controller.loop import Controller
from ottla.controller.planning.notices import Fence, MetadataUpdate
from ottla.controller.term_context import Dependencies


class ImpatientClock(RealClock):
    """A clock whose sleep returns immediately."""

    async def sleep(self, seconds: float) -> None:
        """Yield to the other tasks once."""
        await asyncio.sleep(0)


class NotingPort:
    """A BrokerPort that records its calls and fails with the errors that the test has queued."""

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.image = ClusterImage()
        self.calls: list[tuple[str, object]] = []
        self.fences: list[Fence] = []
        self.introduced: list[list[int]] = []
        self.failures: list[ErrorCode] = []
        self.undeletable: set[tuple[str, int]] = set()
        # Cleared by a test to make the broker slow.
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.is_gone = asyncio.Event()

    async def _called(self, fence: Fence, name: str, what: object) -> None:
        await self.is_open.wait()
        if self.failures:
            raise ApiError(self.failures.pop(0))
        self.fences.append(fence)
        self.calls.append((name, what))

    async def introduce(self, fence: Fence, brokers: Mapping[int, BrokerImage]) -> None:
        """Keep the brokers only; `update_metadata` notes them."""
        await self.is_open.wait()
        self.introduced.append(sorted(brokers))

    async def apply_leader_and_isr(
        self, fence: Fence, states: Sequence[PartitionState]
    ) -> Mapping[tuple[str, int], ErrorCode]:
        """Record the partitions."""
        names = [f"{state.topic}-{state.partition}@{state.leader_epoch}" for state in states]
        await self._called(fence, "leaders", names)
        return {(state.topic, state.partition): ErrorCode.NONE for state in states}

    async def update_metadata(self, fence: Fence, update: MetadataUpdate) -> None:
        """Apply the update to an image, as a broker does."""
        await self._called(fence, "metadata", [topic.name for topic in update.changed])
        self.image = update.apply(self.image, fence)

    async def stop_replicas(
        self, fence: Fence, partitions: Sequence[tuple[str, int]], *, delete: bool
    ) -> Mapping[tuple[str, int], ErrorCode]:
        """Record the partitions; deleting an undeletable one returns an error."""
        await self._called(fence, "delete" if delete else "stop", list(partitions))
        return {
            key: ErrorCode.KAFKA_STORAGE_ERROR if key in self.undeletable else ErrorCode.NONE
            for key in partitions
        }

    async def wait_until_gone(self, reached: Callable[[], None]) -> None:
        """Return when a test says that the process has ended."""
        if not self.is_gone.is_set():
            reached()
        await self.is_gone.wait()

    def close(self) -> None:
        """Nothing is held."""

    def names(self) -> list[str]:
        """Return the names of the calls, in order."""
        return [name for name, _ in self.calls]


class World:
    """One tree, and the brokers with their controllers that a test has added."""

    def __init__(self) -> None:
        self.clock = ImpatientClock()
        self.tree = EmbeddedTree(RealFileSystem(), self.clock)
        self.tasks = Tasks()
        self.ports: dict[int, NotingPort] = {}
        self.controllers: dict[int, Controller] = {}
        self.settings: dict[str, str] = {}
        self.on_deposed: Callable[[ConfigError], None] = lambda _: None

    def options(self) -> Snapshot:
        """Return the broker options that the test has set."""
        return option_tables.parse_broker_settings(self.settings).snapshot

    def port(self, broker_id: int) -> NotingPort:
        """Return the port of a broker; it stays the same when the broker restarts."""
        return self.ports.setdefault(broker_id, NotingPort(broker_id))

    def controller(self, broker_id: int = 1) -> Controller:
        """Return a controller that has not been started."""
        dependencies = Dependencies(
            clock=self.clock,
            rng=SeededRng(broker_id),
            tasks=self.tasks,
            options=self.options,
            topic_options=lambda _: option_tables.topic_snapshot(self.options(), {}),
            port_of=lambda broker: self.port(broker.id),
            connect=self._connect,
            on_deposed=lambda error: self.on_deposed(error),
        )
        broker = BrokerImage(broker_id, "127.0.0.1", 9000 + broker_id)
        return Controller(self.tree.session(), broker, dependencies)

    async def _connect(self) -> Coordination:
        return self.tree.session()

    async def start(self, broker_id: int = 1) -> Controller:
        """Start a broker's controller."""
        controller = self.controller(broker_id)
        self.controllers[broker_id] = controller
        await controller.start()
        return controller

    async def kill(self, broker_id: int) -> None:
        """Stop a broker: close its session and forget its controller."""
        controller = self.controllers.pop(broker_id)
        await controller.stop()
        await controller.session.close()

    async def until(self, condition: "object") -> None:
        """Run the loop until `condition` (a callable) returns true."""
        assert callable(condition)
        async with asyncio.timeout(5):
            while not condition():
                await asyncio.sleep(0)

    async def close(self) -> None:
        """Stop all brokers and close the tree."""
        for broker_id in list(self.controllers):
            await self.kill(broker_id)
        await self.tasks.close()
        await self.tree.close()


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A cluster's tree without brokers."""
    world = World()
    yield world
    await world.close()
