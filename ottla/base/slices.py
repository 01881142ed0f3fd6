"""Long work in time slices: it lets other tasks of the event loop run every few milliseconds.

By time, not by count, because the cost of a step depends on the disk. `Slices` is for one piece of
work, and `Lane` for as many as clients cause.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import TypeVar

from ottla.base.clock import Clock

T = TypeVar("T")
_Queue = deque["asyncio.Future[None]"]

SLICE_SECONDS, LANE_SLICE_SECONDS = 0.01, 0.005


class Slices:
    """Time slices of one piece of work; call `pause` after every step."""

    def __init__(self, clock: Clock, seconds: float = SLICE_SECONDS) -> None:
        self._clock = clock
        self._seconds = seconds
        self._ends = 0.0
        self.begin()

    @property
    def is_over(self) -> bool:
        """True if the slice has lasted long enough."""
        return self._clock.monotonic() >= self._ends

    def begin(self) -> None:
        """Start a slice now, after the work was suspended in another way."""
        self._ends = self._clock.monotonic() + self._seconds

    async def pause(self) -> bool:
        """Let other tasks run if the slice is over; return True if so: state may have changed then."""
        if not self.is_over:
            return False
        await self._clock.sleep(0)
        self.begin()
        return True


class _WaitingWork:
    """The work of one kind that waits for a slice."""

    def __init__(self) -> None:
        self.begun: _Queue = deque()
        # Work that has not begun, by origin.
        self.new: OrderedDict[str, _Queue] = OrderedDict()

    def next(self) -> "asyncio.Future[None] | None":
        """Return the work that comes next; None if nothing waits."""
        if self.begun:
            return self.begun.popleft()
        while self.new:
            origin, queue = self.new.popitem(last=False)
            granted = queue.popleft() if queue else None
            if queue:
                self.new[origin] = queue
            if granted is not None:
                return granted
        return None


class Lane:
    """Large work: one piece of it runs at a time, for a few milliseconds in a turn of the loop.

    The loop serves all other requests between two slices, so these are delayed by one slice at
    most, however many clients send large requests. Urgent work, for which producers, consumers and
    groups wait, has every other slice: tools do not delay it for longer than its own time. Work
    that has begun comes before work of its kind that has not, so that few large requests are in
    memory as objects. The addresses of clients take turns. Lives on one event loop.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._is_taken = False
        self._urgent, self._other = _WaitingWork(), _WaitingWork()
        self._was_urgent = False

    @property
    def waiting_count(self) -> int:
        """The number of pieces of work that have not begun."""
        return sum(
            len(queue) for kind in (self._urgent, self._other) for queue in kind.new.values()
        )

    @asynccontextmanager
    async def work(self, origin: str, *, is_urgent: bool = False) -> AsyncIterator["Turn"]:
        """Wait for the turn of an origin; the body is a piece of work, and calls `Turn.pause`."""
        kind = self._urgent if is_urgent else self._other
        await self._acquire(kind.new.setdefault(origin, deque()))
        turn = Turn(self, kind.begun)
        try:
            yield turn
        finally:
            turn.leave()

    async def come_back(self, queue: "_Queue", *, holds: bool = False) -> None:
        """Wait for the next slice of work that has begun, and holds the lane or not."""
        await self._acquire(queue, holds=holds)

    async def _acquire(self, queue: "_Queue", *, holds: bool = False) -> None:
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(granted)
        if holds or not self._is_taken:
            self._is_taken = True
            self.pass_on()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self.pass_on()
            raise

    def pass_on(self) -> None:
        """Give the lane to the next piece of work, in the next turn of the loop."""
        granted = self._next()
        if granted is None:
            self._is_taken = False
        else:
            # Not at once: a future that is done would not make its owner wait.
            asyncio.get_running_loop().call_soon(self._grant, granted)

    def _grant(self, granted: "asyncio.Future[None]") -> None:
        if granted.done():
            # The work was cancelled while it waited.
            self.pass_on()
        else:
            granted.set_result(None)

    def _next(self) -> "asyncio.Future[None] | None":
        kinds = (self._other, self._urgent) if self._was_urgent else (self._urgent, self._other)
        for kind in kinds:
            granted = kind.next()
            if granted is not None:
                self._was_urgent = kind is self._urgent
                return granted
        return None


class Turn:
    """One piece of work; holds the lane except while it waits."""

    __slots__ = ("_began_at", "_holds", "_lane", "_queue", "used_seconds")

    def __init__(self, lane: Lane, queue: "_Queue") -> None:
        self._lane = lane
        self._queue = queue
        self._holds = True
        self._began_at = lane.clock.monotonic()
        self.used_seconds = 0.0

    async def pause(self) -> None:
        """Let others run if the slice is over: state may have changed then."""
        if self._lane.clock.monotonic() - self._began_at >= LANE_SLICE_SECONDS:
            await self.end_slice()

    async def end_slice(self) -> None:
        """Let others run, before a step that takes long by itself."""
        self._count()
        self._holds = False
        await self._lane.come_back(self._queue, holds=True)
        self._begin()

    async def outside(self, work: Awaitable[T]) -> T:
        """Wait for something else, without the lane."""
        self.leave()
        try:
            return await work
        finally:
            await self._lane.come_back(self._queue)
            self._begin()

    def leave(self) -> None:
        """Release the lane; idempotent."""
        if self._holds:
            self._holds = False
            self._count()
            self._lane.pass_on()

    def _begin(self) -> None:
        self._holds = True
        self._began_at = self._lane.clock.monotonic()

    def _count(self) -> None:
        self.used_seconds += self._lane.clock.monotonic() - self._began_at
