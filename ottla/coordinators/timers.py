"""Named deadlines on the event loop; a coordinator has one `Timers` a partition.

Heartbeats move a deadline thousands of times for each time it passes, so moving one later only
writes a number down: the loop's timer stays, and looks when it fires whether it came too early.
"""

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass

MS_PER_S = 1000


@dataclass(slots=True)
class _Deadline:
    at: float
    fires_at: float
    action: Callable[[], None]
    handle: asyncio.TimerHandle | None = None


class Timers:
    """Deadlines by key. Lives on the loop that runs when it is made; `close` ends all of them."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._deadlines: dict[Hashable, _Deadline] = {}

    def __len__(self) -> int:
        return len(self._deadlines)

    def set(self, key: Hashable, delay_ms: int, action: Callable[[], None]) -> None:
        """Run `action` once, `delay_ms` from now, in the place of what the key stood for."""
        at = self._loop.time() + delay_ms / MS_PER_S
        found = self._deadlines.get(key)
        if found is not None and at >= found.fires_at:
            found.at, found.action = at, action
            return
        self.cancel(key)
        deadline = _Deadline(at, at, action)
        self._deadlines[key] = deadline
        deadline.handle = self._loop.call_at(at, self._fire, key, deadline)

    def has(self, key: Hashable) -> bool:
        """Tell whether the deadline is set."""
        return key in self._deadlines

    def cancel(self, key: Hashable) -> None:
        """Forget the deadline; no error where there is none."""
        found = self._deadlines.pop(key, None)
        if found is not None and found.handle is not None:
            found.handle.cancel()

    def close(self) -> None:
        """Forget every deadline."""
        for key in list(self._deadlines):
            self.cancel(key)

    def _fire(self, key: Hashable, deadline: _Deadline) -> None:
        if deadline.at > deadline.fires_at:
            deadline.fires_at = deadline.at
            deadline.handle = self._loop.call_at(deadline.at, self._fire, key, deadline)
            return
        # Before the action, which may set the same key again.
        del self._deadlines[key]
        deadline.action()
