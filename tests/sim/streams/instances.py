"""Instances of an application: the real engine in a simulated process."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar, cast

from ottla.client import transport
from ottla.client.group.assignors import PartitionAssignor
from ottla.client.group.background import GroupThread
from ottla.client.group.member import GroupSettings
from ottla.streams.local.engine import LocalEngine, LocalQuery, LocalSettings
from ottla.streams.local.opening.lookups import look_up_now
from ottla.streams.task.settings import TaskSettings
from ottla.streams.topology.topology import Topology
from ottla.testing.sim.loop import WALL_START_MS
from tests.sim.streams.clients import ModelConsumer, ModelProducer, ProcessPorts
from tests.sim.streams.groups import ModelGroup, SimMember
from tests.sim.streams.threads import SimThread

_JOIN_S = 0.01
T = TypeVar("T")


class DirectWaits(transport.Waits):
    """Makes calls in the thread of the caller."""

    def call(self, request: Callable[[], Any], timeout_s: float = 0.0) -> Any:
        """Return the result of a call."""
        return request()


class DirectLookups:
    """Makes requests in the thread of the worker, which waits for them."""

    def start(self, request: Callable[[], T]) -> Future[T]:
        """Make a request."""
        return look_up_now(request)

    def stop(self, timeout_s: float) -> bool:
        """Nothing is under way."""
        return True


class SimStartedThread:
    """A thread that another one of its process has started."""

    def __init__(self, ports: ProcessPorts, thread: SimThread) -> None:
        self._ports, self._thread = ports, thread

    def is_alive(self) -> bool:
        """Return True until its function returns."""
        return self._thread.is_alive()

    def join(self) -> None:
        """Wait until its function returns."""
        while self._thread.is_alive():
            self._ports.threads.wait(_JOIN_S)


class SimPorts:
    """The twins of the ports of an engine."""

    def __init__(self, ports: ProcessPorts, group: ModelGroup) -> None:
        self._ports, self._group = ports, group

    def monotonic(self) -> float:
        """Return virtual seconds."""
        return self._ports.cluster.loop.time()

    def time_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""
        return WALL_START_MS + round(self._ports.cluster.loop.time() * 1000)

    def wait(self, event: threading.Event, timeout_s: float) -> None:
        """Wait for a virtual time."""
        if not event.is_set():
            self._ports.threads.wait(timeout_s)

    def start(self, run: Callable[[], None], name: str) -> SimStartedThread:
        """Start a thread of the process."""
        thread = self._ports.threads.start(self._ports.process, run, name)
        return SimStartedThread(self._ports, thread)

    def open_consumer(self, settings: Mapping[str, Any]) -> ModelConsumer:
        """Return a consumer of the model."""
        return ModelConsumer(self._ports, settings)

    def open_producer(self, settings: Mapping[str, Any]) -> ModelProducer:
        """Return a producer of the model."""
        return ModelProducer(self._ports, settings)

    def open_waits(self) -> transport.Waits:
        """Return waits without threads."""
        return DirectWaits()

    def open_lookups(self, name: str) -> DirectLookups:
        """Return lookups without a thread."""
        return DirectLookups()

    def open_member(
        self, settings: GroupSettings, assignors: Sequence[PartitionAssignor]
    ) -> GroupThread:
        """Return a member of the model's group."""
        return cast(GroupThread, SimMember(self._group, self._ports, settings, assignors))


class SimInstance:
    """One process that runs the application."""

    def __init__(
        self, ports: ProcessPorts, topology: Topology, tasks: TaskSettings, settings: LocalSettings
    ) -> None:
        self.ports = ports
        self._engine = LocalEngine(topology, tasks, settings)
        self._query: LocalQuery | None = None
        name = f"{ports.process.name} main"
        self._main = ports.threads.start(ports.process, self._start, name)

    def _start(self) -> None:
        self._engine.open()
        self._query = self._engine.start()

    @property
    def error(self) -> Exception | None:
        """The error that ended its worker."""
        return self._main.error or (None if self._query is None else self._query.error)

    @property
    def state(self) -> str:
        """A line for reports."""
        if self._query is None:
            return f"{self.ports.process.name}: not started"
        progress = self._query.progress()
        return f"{self.ports.process.name}: {progress.tasks}, lag {progress.lag}"

    def stop(self) -> None:
        """Leave the group after a commit, in a while."""
        self.ports.threads.start(self.ports.process, self._stop, f"{self.ports.process.name} stop")

    def _stop(self) -> None:
        if self._query is not None:
            self._query.stop()
        self._engine.close()

    def kill(self) -> None:
        """End the process like kill -9."""
        self.ports.process.kill()
        # The kernel releases its locks.
        self._engine.close()
