"""Named deadlines on the event loop; a coordinator has one `Timers` for each partition.

Heartbeats move a deadline thousands of times for each time it expires. Moving one to a later time
therefore only stores the new time: the loop's timer is kept, and when it fires too early it is set
again.
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
    """Deadlines by key, on the event loop that runs when the object is created; `close` cancels
    all.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._deadlines: dict[Hashable, _Deadline] = {}

    def __len__(self) -> int:
        return len(self._deadlines)

    def set(self, key: Hashable, delay_ms: int, action: Callable[[], None]) -> None:
        """Run `action` once in `delay_ms` milliseconds, replacing an earlier deadline of the key."""
        at = self._loop.time() + delay_ms / MS_PER_S
        current = self._deadlines.get(key)
        if current is not None and at >= current.fires_at:
            current.at, current.action = at, action
            return
        self.cancel(key)
        deadline = _Deadline(at, at, action)
        self._deadlines[key] = deadline
        deadline.handle = self._loop.call_at(at, self._fire, key, deadline)

    def has(self, key: Hashable) -> bool:
        """Return True if the deadline is set."""
        return key in self._deadlines

    def cancel(self, key: Hashable) -> None:
        """Cancel the deadline; does nothing if it is not set."""
        deadline = self._deadlines.pop(key, None)
        if deadline is not None and deadline.handle is not None:
            deadline.handle.cancel()

    def close(self) -> None:
        """Cancel every deadline."""
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
