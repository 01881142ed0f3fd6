"""The time for which a connection is muted because its client has exceeded a quota (KIP-219)."""

import asyncio
from collections.abc import Callable


class Mute:
    """The mute of one connection: ends at `until` (s, the loop's clock), with a call of `on_end`."""

    __slots__ = ("_on_end", "timer", "until")

    def __init__(self, on_end: Callable[[], None]) -> None:
        self._on_end = on_end
        # None if it is not muted.
        self.timer: asyncio.TimerHandle | None = None
        # The end of the present or the last mute; 0 if there was none.
        self.until = 0.0

    def extend(self, loop: asyncio.AbstractEventLoop, seconds: float) -> bool:
        """Mute for `seconds` from now; return False if it is muted for longer already."""
        until = loop.time() + seconds
        if until <= self.until:
            return False
        self.end()
        self.until = until
        self.timer = loop.call_later(seconds, self._on_end)
        return True

    def end(self) -> None:
        """End the mute; `on_end` is not called any more."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
