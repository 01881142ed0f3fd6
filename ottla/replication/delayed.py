"""Requests that wait: a condition, a deadline, a future (Kafka's purgatory).

A waiter is attached to partitions. A change marks the partition. Once per iteration of the event
loop, each waiter first notes all of its marked partitions and then looks at them, so a thousand
appends to a thousand partitions wake a waiting fetch once.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")

PRODUCE = "Produce"
FETCH = "Fetch"


class Watched(Protocol):
    """An object that requests can wait for: it has the waiters and is marked when it changes."""

    # A dict, for its order: simulated runs must be reproducible.
    waiters: dict["Waiter", None]


class Waiter(Protocol):
    """An object that waits for a `Watched`.

    All waiters have noted all changes of an iteration before one of them looks: a response that
    contains several partitions must not miss the change of one of them.
    """

    def note(self, changed: Watched) -> None:
        """Remember a change until `look`; raises nothing."""
        ...

    def look(self) -> None:
        """Complete if the condition holds now; do nothing if no change was noted."""
        ...

    def finish(self) -> None:
        """Complete as if the timeout had expired."""
        ...


def _ignore(_: Watched) -> None:
    pass


class Waiting(Generic[T]):
    """One request that waits until `check` returns a value, or with `expire()` at the timeout.

    `seconds` None means no deadline.

    `note` is called for each partition that changed, then `check` once. If `check` or `expire`
    raises, the future has that exception, and the event loop reports it.
    """

    __slots__ = ("_check", "_expire", "_is_noted", "_note", "_timer", "_watched", "future")

    def __init__(
        self,
        watched: Iterable[Watched],
        *,
        check: Callable[[], T | None],
        expire: Callable[[], T],
        seconds: float | None,
        note: Callable[[Watched], None] = _ignore,
    ) -> None:
        loop = asyncio.get_running_loop()
        self._note = note
        self._is_noted = False
        self._check = check
        self._expire = expire
        self._watched = list(watched)
        self.future: asyncio.Future[T] = loop.create_future()
        # The owner of the request may cancel it, e.g. because its connection is lost.
        self.future.add_done_callback(self._detach)
        for target in self._watched:
            target.waiters[self] = None
        self._timer = None if seconds is None else loop.call_later(seconds, self._time_out)

    def note(self, changed: Watched) -> None:
        """Remember a change until `look`."""
        if self.future.done():
            return
        self._is_noted = True
        self._note(changed)
        if self not in changed.waiters:
            # A fetch session has waited for this partition so far; from now on it matters to this
            # request.
            self._watched.append(changed)
            changed.waiters[self] = None

    def look(self) -> None:
        """Complete if the condition holds now."""
        if not self._is_noted or self.future.done():
            return
        self._is_noted = False
        try:
            value = self._check()
        except Exception as error:
            self.future.set_exception(error)
            raise
        if value is not None:
            self.future.set_result(value)

    def finish(self) -> None:
        """Complete as if the timeout had expired."""
        self._time_out()

    def _time_out(self) -> None:
        if self.future.done():
            return
        try:
            value = self._expire()
        except Exception as error:
            self.future.set_exception(error)
            raise
        self.future.set_result(value)

    def _detach(self, _: "asyncio.Future[T]") -> None:
        if self._timer is not None:
            self._timer.cancel()
        for watched in self._watched:
            watched.waiters.pop(self, None)


class Delayed:
    """All waiting requests of one broker, and the partitions that changed since the last iteration."""

    def __init__(self) -> None:
        self._changed: dict[Watched, None] = {}
        # The waiters that have noted a change and have not looked yet.
        self._noted: dict[Waiter, None] = {}
        self._is_scheduled = False
        self._is_closed = False
        # The number of waiting requests by kind; each kind is one of Kafka's purgatories.
        self.waiting_counts = {PRODUCE: 0, FETCH: 0}

    def changed(self, watched: Watched) -> None:
        """Make the waiters of `watched` check it in the next iteration of the event loop."""
        if not watched.waiters:
            return
        self._changed[watched] = None
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._look)

    def catch_up(self, waiter: Waiter) -> None:
        """Make one waiter check now everything that has changed in this iteration."""
        for watched in self._changed:
            if waiter in watched.waiters:
                waiter.note(watched)
        waiter.look()

    def _look(self) -> None:
        self._is_scheduled = False
        changed, self._changed = self._changed, {}
        noted = self._noted
        for watched in changed:
            # A copy: a session passes the change on to its fetches, which then wait themselves.
            for waiter in tuple(watched.waiters):
                waiter.note(watched)
                noted[waiter] = None
        looks = list(noted)
        noted.clear()
        looks.reverse()
        try:
            while looks:
                looks.pop().look()
        finally:
            if looks:
                # A check that raises ends this iteration; the next one processes the rest.
                self._noted = dict.fromkeys(reversed(looks))
                self._schedule()

    def wait(
        self,
        watched: Iterable[Watched],
        *,
        check: Callable[[], T | None],
        expire: Callable[[], T],
        seconds: float | None,
        kind: str = PRODUCE,
        note: Callable[[Watched], None] = _ignore,
    ) -> "asyncio.Future[T]":
        """Return the future of `check`'s first value, or of `expire()` after `seconds`.

        None means no deadline.
        """
        if self._is_closed:
            seconds = 0.0
        future = Waiting(watched, check=check, expire=expire, seconds=seconds, note=note).future
        self.waiting_counts[kind] += 1
        future.add_done_callback(partial(self._left, kind))
        return future

    def enter(self, kind: str, seconds: float, expire: Callable[[], None]) -> asyncio.TimerHandle:
        """Count a request that waits without a future; call `expire` after `seconds`."""
        self.waiting_counts[kind] += 1
        loop = asyncio.get_running_loop()
        return loop.call_later(0.0 if self._is_closed else seconds, expire)

    def leave(self, kind: str, timer: asyncio.TimerHandle) -> None:
        """Forget a request that called `enter`."""
        self.waiting_counts[kind] -= 1
        timer.cancel()

    def _left(self, kind: str, _: object) -> None:
        self.waiting_counts[kind] -= 1

    def close(self, watched: Iterable[Watched]) -> None:
        """Complete everything that waits for `watched`; later requests do not wait."""
        self._is_closed = True
        waiting = [waiter for target in watched for waiter in target.waiters]
        with ExitStack() as stack:
            # Every waiter completes, even if one of them raises.
            for waiter in reversed(waiting):
                stack.callback(waiter.finish)
