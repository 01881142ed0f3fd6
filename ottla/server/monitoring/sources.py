"""The sources of the collectors: the parts of a running broker, each as soon as it exists."""

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum

from ottla.base.clock import Clock
from ottla.base.files import FileSystem
from ottla.base.tasks import Tasks
from ottla.net.descriptors import DescriptorLimit
from ottla.net.endpoint import Endpoint
from ottla.net.receive_budget import ReceiveBudget
from ottla.server.context import Broker
from ottla.server.loop_lag import LoopWatch
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

    def __init__(
        self, node_id: int, clock: Clock, files: FileSystem, loop_watch: LoopWatch
    ) -> None:
        self.node_id = node_id
        self.clock = clock
        self.files = files
        self.loop_watch = loop_watch
        # Set from the stage RUNNING on.
        self.broker: Broker | None = None
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

    def task_failures(self) -> dict[str, int]:
        """Return the number of unexpected exceptions of background tasks since the start, by kind."""
        total: Counter[str] = Counter()
        for tasks in self.tasks:
            total += tasks.failures
        return dict(total)

    def routes(self) -> Iterable[Route]:
        """Return the counters of the dispatcher."""
        return () if self.dispatcher is None else self.dispatcher.routes()
