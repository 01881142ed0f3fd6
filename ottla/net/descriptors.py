"""The limit of descriptors for connections, so that some are always free for files.

Above that limit, connections that do not read, are silent or idle are closed for new ones; if no
such connection exists, new connections are refused. Responses that are sent from files need
descriptors, too: therefore connections that do not read are closed above the limit even if there is
no new one. Kafka leaves this to the operating system: `accept` and `open` fail together.
"""

import asyncio
from collections.abc import Callable, Mapping
from itertools import chain

from ottla.base.logs import provoked_logger
from ottla.base.platform import descriptors
from ottla.net.connection import Connection

# For files that are open briefly: index files, checkpoints, sealed segments, monitoring.
_HEADROOM = 96
_CONNECTIONS_MIN = 32
# Idle seconds after which a connection may be closed: the first if it has never completed a
# request, otherwise the second.
_SILENT_SECONDS = 1.0
_IDLE_SECONDS = 10.0
# Seconds after which a peer that has read nothing of a response is closed before all others. An
# endpoint notices within two of its checks, 10 s, that a peer reads.
_UNREAD_SECONDS = 15.0
# Fraction of the connections that are closed at a time: finding them takes time.
_CLOSED_AT_ONCE = 0.05
_PAUSE_SECONDS = 0.25
_WARNING_SECONDS = 60.0

_log = provoked_logger(__name__)


class DescriptorLimit:
    """Admits connections of all endpoints of a broker.

    `files_count` returns the largest number of files that the broker keeps open for its logs;
    `other_count` is the number of descriptors that were open when the broker started to listen.
    """

    def __init__(self, files_count: Callable[[], int], other_count: int) -> None:
        self.other_count = other_count
        self.closed_count = self.refused_count = 0
        self._files_count = files_count
        self._endpoints: list[Mapping[Connection, None]] = []
        # Connections that are being closed but are still counted, less those admitted in their
        # place.
        self._credit = 0
        self._fruitless_at = self._warned_at = float("-inf")

    def watch(self, connections: Mapping[Connection, None]) -> None:
        """Count the connections of one more endpoint."""
        self._endpoints.append(connections)

    @property
    def connections_max(self) -> int:
        """Return the number of connections that leaves enough descriptors for files."""
        files_count = self._files_count()
        reserved = self.other_count + files_count + files_count // 8 + _HEADROOM
        return max(_CONNECTIONS_MIN, descriptors.soft_limit() - reserved)

    def admit(self) -> bool:
        """Return True if the connection counted last may stay; closes other connections for it."""
        open_count = sum(map(len, self._endpoints))
        if open_count <= _CONNECTIONS_MIN or open_count <= (most := self.connections_max):
            self._credit = 0
            return True
        now = asyncio.get_running_loop().time()
        if self._credit <= 0 and now - self._fruitless_at >= _PAUSE_SECONDS:
            self._credit = self._make_room(max(1, int(most * _CLOSED_AT_ONCE)), now)
            if not self._credit:
                self._fruitless_at = now
        self._warn(most, now)
        if self._credit <= 0:
            self.refused_count += 1
            return False
        self._credit -= 1
        return True

    def _make_room(self, count: int, now: float) -> int:
        closed_count = self._close_unread(count, now)
        everyone = chain.from_iterable(self._endpoints)
        idle = sorted(
            (connection for connection in everyone if _is_idle(connection, now)), key=_order
        )
        for connection in idle[: count - closed_count]:
            connection.close("idle, and its descriptor is needed")
            closed_count += 1
            self.closed_count += 1
        return closed_count

    def relieve(self) -> None:
        """Close connections that do not read if files need their descriptors."""
        excess = sum(map(len, self._endpoints)) - self.connections_max
        if excess > 0:
            self._close_unread(excess, asyncio.get_running_loop().time())

    def _close_unread(self, count: int, now: float) -> int:
        everyone = chain.from_iterable(self._endpoints)
        unread = [connection for connection in everyone if _is_unread(connection, now)]
        unread.sort(key=lambda connection: connection.active_at)
        for connection in unread[:count]:
            connection.drop("responses are not read, and its descriptor is needed")
        self.closed_count += len(unread[:count])
        return len(unread[:count])

    def _warn(self, most: int, now: float) -> None:
        if now - self._warned_at >= _WARNING_SECONDS:
            self._warned_at = now
            _log.warning(
                "descriptors scarce connections_max=%d limit=%d closed=%d refused=%d",
                most,
                descriptors.soft_limit(),
                self.closed_count,
                self.refused_count,
            )


def _is_unread(connection: Connection, now: float) -> bool:
    return (
        not connection.is_closed
        and connection.unsent_bytes > 0
        and now - connection.active_at >= _UNREAD_SECONDS
    )


def _is_idle(connection: Connection, now: float) -> bool:
    if connection.is_closed or connection.is_waiting_for_answer or connection.unsent_bytes:
        return False
    enough = _IDLE_SECONDS if connection.frames_count else _SILENT_SECONDS
    return now - connection.active_at >= enough


def _order(connection: Connection) -> tuple[bool, float]:
    """Sort connections without a completed request first, then those idle for longest."""
    return connection.frames_count > 0, connection.active_at
