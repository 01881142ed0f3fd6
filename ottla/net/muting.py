"""The time for which a connection is muted because its client has exceeded a quota (KIP-219)."""

import asyncio
from collections.abc import Callable


class Mute:
    """The mute of one connection: ends at `until` (s, the loop's clock)."""

    __slots__ = ("timer", "until")

    def __init__(self) -> None:
        # None if it is not muted.
        self.timer: asyncio.TimerHandle | None = None
        # The end of the present or the last mute; 0 before the first mute.
        self.until = 0.0

    def extend(
        self, loop: asyncio.AbstractEventLoop, seconds: float, on_end: Callable[[], None]
    ) -> bool:
        """Mute for `seconds` from now, then call `on_end`; return False for no time, and if it is
        muted for longer already.
        """
        until = loop.time() + seconds
        if seconds <= 0 or until <= self.until:
            return False
        self.end()
        self.until = until
        self.timer = loop.call_later(seconds, on_end)
        return True

    def end(self) -> None:
        """End the mute without the call."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


# Shared by all connections that have never been muted.
NEVER_MUTED = Mute()
