"""Checks of passwords that take milliseconds: in another thread, a few at a time.

On the event loop, fifty strangers who guess passwords would delay each request of known clients. As
with TLS handshakes, addresses take turns, so that an address with many guesses delays its own
logins. The checks that wait are bounded by the number of connections: each has one at most.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

# Two would leave the event loop no processor of its own on a machine with two.
_AT_ONCE = 1


class _Check(NamedTuple):
    work: Callable[[], Any]
    on_done: Callable[[], Any]


class PasswordChecks:
    """The checks that wait, by address. `in_background` runs work in another thread."""

    def __init__(self, in_background: Callable[[Callable[[], Any]], Awaitable[Any]]) -> None:
        self._in_background = in_background
        self._waiting: OrderedDict[str, deque[_Check]] = OrderedDict()
        self._running_count = 0

    def submit(self, origin: str, work: Callable[[], Any], on_done: Callable[[], Any]) -> None:
        """Do the work when it is the turn of its address, then call `on_done` on the event loop."""
        self._waiting.setdefault(origin, deque()).append(_Check(work, on_done))
        self._start_some()

    def _start_some(self) -> None:
        while self._waiting and self._running_count < _AT_ONCE:
            origin, checks = next(iter(self._waiting.items()))
            check = checks.popleft()
            if checks:
                self._waiting.move_to_end(origin)
            else:
                del self._waiting[origin]
            self._running_count += 1
            done = asyncio.ensure_future(self._in_background(check.work))
            done.add_done_callback(partial(self._finished, check))

    def _finished(self, check: _Check, done: "asyncio.Future[Any]") -> None:
        self._running_count -= 1
        if done.cancelled():
            # The broker stops.
            return
        # An error occurs again in the step, which then does the work itself.
        done.exception()
        self._start_some()
        check.on_done()
