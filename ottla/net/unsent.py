"""The bytes of responses in memory that peers have not received, of all connections of a broker.

A peer that does not read sends no further requests, but the response to the last one stays in
memory. At the limit, fetches return fewer bytes. Half as much above it, connections are closed:
first those that hold much and have not read for long. Records that are sent from their file do not
count.
"""

import asyncio
from typing import Protocol

from ottla.net.limits import Budget

_REASON = "responses are not read, and their memory is needed"


class UnsentHolder(Protocol):
    """A connection with responses that its peer has not received."""

    # When bytes were last received from the peer, or read by it.
    active_at: float

    def drop(self, reason: str) -> None:
        """Close the connection at once and release its bytes."""
        ...


class UnsentBudget(Budget):
    """The bytes that each connection holds, and their sum, which is at most `bytes_max`."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(limit_bytes)
        self.bytes_max = limit_bytes + limit_bytes // 2
        self._held: dict[UnsentHolder, int] = {}
        self._is_closing = False

    def hold_for(self, holder: UnsentHolder, size_bytes: int) -> None:
        """Count `size_bytes` for a connection, in place of those counted before."""
        former_bytes = self._held.get(holder, 0)
        if size_bytes == former_bytes:
            return
        if size_bytes:
            self._held[holder] = size_bytes
        else:
            del self._held[holder]
        self.held_bytes += size_bytes - former_bytes
        if self.held_bytes > self.bytes_max and not self._is_closing:
            self._is_closing = True
            # Not at once: the connection is in the middle of sending.
            asyncio.get_running_loop().call_soon(self._close_some)

    def release(self, holder: UnsentHolder) -> None:
        """Release the bytes of a connection."""
        self.held_bytes -= self._held.pop(holder, 0)

    def _close_some(self) -> None:
        """Close connections until the others hold no more than is allowed."""
        self._is_closing = False
        now = asyncio.get_running_loop().time()

        def cost(holder: UnsentHolder) -> float:
            """Return the byte-seconds, so that a peer that reads slowly outlasts one that does not."""
            return self._held[holder] * (1.0 + max(0.0, now - holder.active_at))

        for holder in sorted(self._held, key=cost, reverse=True):
            if self.held_bytes <= self.bytes_max:
                return
            holder.drop(_REASON)
