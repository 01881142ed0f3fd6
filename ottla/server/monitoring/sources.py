"""The sources of the collectors: the parts of a running broker, each as soon as it exists."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING

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
from ottla.server.authentication.identity import LoginCounts
from ottla.server.brokers.channels import Channels
from ottla.server.brokers.peers import Peers
from ottla.server.context import Broker
from ottla.server.coordination.tree import BrokerCoordination
from ottla.server.lag.questions import Leaders
from ottla.server.lag.times import RecordTimes
from ottla.server.loop_lag import LoopWatch
from ottla.server.monitoring.compatibility import Collections
from ottla.server.transport.dispatch import ApiRoute, Dispatcher
from ottla.storage.cleaner.cleaning import Cleaner

if TYPE_CHECKING:
    from ottla.server.authentication.certificates import Certificates

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

    def __init__(
        self, node_id: int, clock: Clock, files: FileSystem, loop_watch: LoopWatch
    ) -> None:
        self.node_id = node_id
        self.clock = clock
        self.files = files
        self.loop_watch = loop_watch
        # None until the broker has been constructed; `running_broker` is the one to read.
        self.broker: Broker | None = None
        self.stage = Stage.STARTING
        self.endpoints: Sequence[Endpoint] = ()
        # None without TLS.
        self.certificates: Certificates | None = None
        # Of the listeners with SASL.
        self.logins: Mapping[str, LoginCounts] = {}
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
        self.rates = MeterRates(clock.monotonic())
        self._peers: Peers | None = None
        self._ask_through(lambda broker_id: None)

    @property
    def running_broker(self) -> Broker | None:
        """The broker in the stage RUNNING; None before and after."""
        return self.broker if self.stage is Stage.RUNNING else None

    def configure(self, options: Snapshot, coordination: BrokerCoordination) -> None:
        """Choose the names of metrics, and report the sessions of `coordination`."""
        self.coordination = coordination
        self.dialects = options.strings("metrics.dialects")
        if options.boolean("metrics.jvm.names"):
            self.collections = Collections(self.clock)
            self.collections.start()

    def assembled(self, broker: Broker, dispatcher: Dispatcher, channels: Channels) -> None:
        """Report a broker that is complete, and until `close` ask others about what they lead."""
        self.broker, self.dispatcher = broker, dispatcher
        self._peers = Peers(broker.current, channels, "monitoring")
        self._ask_through(self._peers.channel)

    def _ask_through(self, connect: Callable[[int], RequestChannel | None]) -> None:
        self.leaders = Leaders(connect)
        self.times = RecordTimes(self.files, self.leaders)

    def close(self) -> None:
        """Close the connections to other brokers, and stop measuring; idempotent."""
        if self._peers is not None:
            self._peers.close()
        self.stop_measuring()

    def stop_measuring(self) -> None:
        """Remove what the interpreter calls; idempotent."""
        if self.collections is not None:
            self.collections.stop()

    def tree_size(self) -> TreeSize | None:
        """Return the size of the coordination tree if this broker is the one to report it.

        The brokers of one process share a tree, which the controller reports.
        """
        coordination = self.coordination
        if coordination is None:
            return None
        broker = self.running_broker
        is_controller = broker is not None and broker.controller.is_active
        is_reporter = coordination.has_own_tree or is_controller
        return coordination.tree_size() if is_reporter else None

    def task_failures(self) -> dict[str, int]:
        """Return the number of unexpected exceptions of background tasks since the start, by kind.

        Kinds without one have the number 0.
        """
        total: Counter[str] = Counter()
        for tasks in self.tasks:
            total.update(tasks.failure_counts())
        return dict(total)

    def routes(self) -> Iterable[ApiRoute]:
        """Return the counters of the dispatcher."""
        return () if self.dispatcher is None else self.dispatcher.routes()
