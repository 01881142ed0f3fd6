"""The transport of a connection that has been lost.

asyncio's transport of TLS refers to its protocol for ever, so a protocol that keeps its transport
is freed by the garbage collector only, with 24 KiB and more of OpenSSL's memory. A connection
therefore exchanges its transport for this one in `connection_lost`.
"""

import asyncio
from typing import Any


class LostTransport(asyncio.Transport):
    """Accepts every call and does nothing."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return the default: nothing is known about the peer."""
        return default

    def is_closing(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Do nothing."""

    def abort(self) -> None:
        """Do nothing."""

    def write(self, data: object) -> None:
        """Drop the data."""

    def writelines(self, list_of_data: object) -> None:
        """Drop the data."""

    def get_write_buffer_size(self) -> int:
        """Return 0."""
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing."""

    def can_write_eof(self) -> bool:
        """Return False."""
        return False

    def pause_reading(self) -> None:
        """Do nothing."""

    def resume_reading(self) -> None:
        """Do nothing."""


# Shared by all connections that were lost.
LOST = LostTransport()
