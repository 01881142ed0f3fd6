"""A connection of the tree's server: packets in, replies out in the order of the requests.

Also supports ZooKeeper's commands of four letters (`ruok`, `srvr`), with which scripts test a
server.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import cast

from ottla.base.errors import OttlaError, ProtocolError
from ottla.base.tasks import Tasks
from ottla.cluster.zk.jute import PACKET_BYTES_MAX

_log = logging.getLogger(__name__)

_LENGTH_BYTES = 4
_BUFFER_BYTES = 64 * 1024
# Requests of one connection that may be under way; more are left in the socket.
_REQUESTS_MAX = 1_000
_COMMANDS = {b"ruok": b"imok", b"srvr": b"Zookeeper version: Ottla\nMode: standalone\n"}

Receive = Callable[["PacketConnection", bytes], Awaitable[bytes]]


class PacketConnection(asyncio.BufferedProtocol):
    """One client. The first packet gets its response before the second is read."""

    def __init__(
        self, tasks: Tasks, receive: Receive, on_end: Callable[["PacketConnection"], None]
    ) -> None:
        self._tasks = tasks
        self._receive = receive
        self._on_end = on_end
        self._transport: asyncio.Transport | None = None
        # A view: asyncio's TLS reads into slices of it.
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._unread = bytearray()
        # The replies in the order of their requests; None until one is there.
        self._replies: deque[list[bytes | None]] = deque()
        self._is_greeted = False
        self._is_closing = False
        self._is_paused = False
        self._is_blocked = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        """Report the end."""
        self._transport = None
        self._on_end(self)

    def get_buffer(self, size_hint: int) -> memoryview:
        """Return the memory for the next read."""
        return self._buffer

    def buffer_updated(self, count: int) -> None:
        """Start every request that has arrived whole."""
        self._unread += self._buffer[:count]
        self._proceed()

    def pause_writing(self) -> None:
        """Read no more requests while the client does not read replies."""
        self._is_blocked = True
        self._adjust_reading()

    def resume_writing(self) -> None:
        """Read requests again."""
        self._is_blocked = False
        self._adjust_reading()

    def send(self, packet: bytes) -> None:
        """Send a packet, unless the connection has ended."""
        if self._transport is not None:
            self._transport.write(packet)

    def close(self) -> None:
        """Close the connection after all packets that were sent before."""
        self._is_closing = True
        if self._transport is not None:
            self._transport.close()

    def close_after_reply(self) -> None:
        """Close the connection when the replies under way have been sent; start no more requests."""
        self._is_closing = True

    def _proceed(self) -> None:
        while not self._is_closing and (self._is_greeted or not self._replies):
            packet = self._next_packet()
            if packet is None:
                break
            slot: list[bytes | None] = [None]
            self._replies.append(slot)
            self._tasks.spawn(self._answer(packet, slot), "coordination request")
        self._adjust_reading()

    def _next_packet(self) -> bytes | None:
        if len(self._unread) < _LENGTH_BYTES:
            return None
        head = bytes(self._unread[:_LENGTH_BYTES])
        if not self._is_greeted and head in _COMMANDS:
            self.send(_COMMANDS[head])
            self.close()
            return None
        length = int.from_bytes(head, "big", signed=True)
        if not 0 <= length <= PACKET_BYTES_MAX:
            _log.warning("coordination connection closed packet_bytes=%d", length)
            self.close()
            return None
        end = _LENGTH_BYTES + length
        if len(self._unread) < end:
            return None
        packet = bytes(self._unread[_LENGTH_BYTES:end])
        del self._unread[:end]
        return packet

    async def _answer(self, packet: bytes, slot: list[bytes | None]) -> None:
        try:
            slot[0] = await self._receive(self, packet)
        except ProtocolError as error:
            _log.warning("coordination connection closed reason=%r", str(error))
            self.close()
        except OttlaError:
            # The tree has failed, which its owner reports; the client connects to another server.
            self.close()
        self._send_replies()

    def _send_replies(self) -> None:
        while self._replies and self._replies[0][0] is not None:
            (packet,) = self._replies.popleft()
            assert packet is not None
            self.send(packet)
            self._is_greeted = True
        if self._is_closing and not self._replies:
            self.close()
            return
        self._proceed()

    def _adjust_reading(self) -> None:
        should_pause = self._is_blocked or len(self._replies) >= _REQUESTS_MAX
        if self._transport is None or self._is_closing or should_pause is self._is_paused:
            return
        self._is_paused = should_pause
        if should_pause:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()
