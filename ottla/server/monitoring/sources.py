"""The sources of the collectors: the parts of a running broker, each as soon as it exists."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from ottla.base.clock import Clock
from ottla.base.files import FileSystem
from ottla.base.options import Snapshot
from ottla.base.tasks import Tasks
from ottla.cluster.options import metrics_options
from ottla.cluster.zk.embedded import TreeSize
from ottla.metrics.rates import MeterRates
from ottla.net.descriptors import DescriptorLimit
from ottla.net.endpoint import Endpoint
from ottla.net.receive_budget import ReceiveBudget
from ottla.net.requests import RequestChannel
from ottla.server.brokers.channels import Channels
from ottla.server.brokers.peers import Peers
from ottla.server.context import Broker
from ottla.server.coordination import BrokerCoordination
from ottla.server.lag.questions import Leaders
from ottla.server.lag.times import RecordTimes
from ottla.server.monitoring.compatibility import Collections
from ottla.server.transport.dispatch import Dispatcher, Route
from ottla.storage.cleaner.cleaning import Cleaner

# The clock is read only once in this many iterations of a loop.
_TURNS = 64
# Seconds of work on the event loop before other work is let in.
SLICE_SECONDS = 0.005


class Stage(Enum):
    """The stage of a node's life."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"


class Pace:
    """Lets other work of the event loop run during a long piece of work."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._turns = 0
        self._ends = clock.monotonic() + SLICE_SECONDS

    async def rest(self) -> None:
        """Yield to other work if it is time to; call this in every iteration of a long loop."""
        self._turns += 1
        if self._turns % _TURNS == 0:
            await self.rest_if_due()

    async def rest_if_due(self) -> None:
        """Yield to other work if this slice has lasted long enough."""
        if self._clock.monotonic() >= self._ends:
            await self._clock.sleep(0)
            self._ends = self._clock.monotonic() + SLICE_SECONDS


class Sources:
    """The parts of a node that collectors read; the node fills it in while it starts."""

    def __init__(self, broker: Broker, files: FileSystem) -> None:
        self.broker = broker
        self.files = files
        self.stage = Stage.STARTING
        self.endpoints: Sequence[Endpoint] = ()
        self.dispatcher: Dispatcher | None = None
        # None if log.cleaner.enable is false.
        self.cleaner: Cleaner | None = None
        # The background tasks of the broker and of its coordination tree.
        self.tasks: list[Tasks] = []
        # None until the broker listens.
        self.descriptors: DescriptorLimit | None = None
        # Bytes of unfinished requests.
        self.budget = ReceiveBudget(0)
        # None in tests of single parts.
        self.coordination: BrokerCoordination | None = None
        # The names under which metrics are served (metrics.dialects).
        self.dialects: Sequence[str] = metrics_options.DIALECTS_DEFAULT
        # None unless names of a JVM are served too (metrics.jvm.names).
        self.collections: Collections | None = None
        self.rates = MeterRates(broker.clock.monotonic())
        self._peers: Peers | None = None
        self._ask_through(lambda broker_id: None)

    def configure(self, options: Snapshot, coordination: BrokerCoordination) -> None:
        """Choose the names of metrics, and report the sessions of `coordination`."""
        self.coordination = coordination
        self.dialects = options.strings("metrics.dialects")
        if options.boolean("metrics.jvm.names"):
            self.collections = Collections(self.broker.clock)
            self.collections.start()

    def ask_leaders(self, channels: Channels) -> None:
        """Ask other brokers about the partitions that they lead, until `close`."""
        self._peers = Peers(self.broker, channels, "monitoring")
        self._ask_through(self._peers.channel)

    def _ask_through(self, connect: Callable[[int], RequestChannel | None]) -> None:
        self.leaders = Leaders(connect)
        self.times = RecordTimes(self.files, self.leaders)

    def close(self) -> None:
        """Close the connections to other brokers, and stop measuring; idempotent."""
        if self._peers is not None:
            self._peers.close()
        if self.collections is not None:
            self.collections.stop()

    def tree_size(self) -> TreeSize | None:
        """Return the size of the coordination tree if this broker is the one to report it.

        The brokers of one process share a tree, which the controller reports.
        """
        coordination = self.coordination
        if coordination is None:
            return None
        is_reporter = coordination.has_own_tree or (
            self.stage is Stage.RUNNING and self.broker.controller.is_active
        )
        return coordination.tree_size() if is_reporter else None

    def task_failures(self) -> dict[str, int]:
        """Return the number of unexpected exceptions of background tasks since the start, by kind."""
        total: Counter[str] = Counter()
        for tasks in self.tasks:
            total += tasks.failures
        return dict(total)

    def routes(self) -> Iterable[Route]:
        """Return the counters of the dispatcher."""
        return () if self.dispatcher is None else self.dispatcher.routes()
