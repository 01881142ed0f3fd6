"""Finite limits of connections, and the bytes that all of them together may hold.

Most of these are unlimited by default in Kafka (`queued.max.request.bytes` -1, `max.connections`
2**31 - 1).
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.net.port import SYSTEM_BUFFERS, SocketBuffers

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one connection; times are in seconds of the loop's clock."""

    # socket.request.max.bytes
    frame_bytes_max: int = 100 * MIB
    # Requests that were read ahead and wait for their response.
    pending_max: int = 64
    # Unsent bytes of responses at which the connection stops reading from the peer.
    unsent_bytes_high: int = 256 * 1024
    # connections.max.idle.ms
    idle_seconds: float = 600.0
    # authentication.timeout.ms: from the connection to the end of authentication, or to the end of
    # the first request without one.
    authentication_seconds: float = 10.0
    # From the first to the last byte of a request.
    frame_seconds: float = 60.0
    # max.connections
    connections_max: int = 10_000
    # max.connections.per.ip
    connections_per_host_max: int = 2**31 - 1
    # max.connections.per.ip.overrides, by address
    connections_by_host_max: Mapping[str, int] = field(default_factory=dict)
    # socket.send.buffer.bytes, socket.receive.buffer.bytes
    socket_buffers: SocketBuffers = SYSTEM_BUFFERS

    def connections_from(self, host: str) -> int:
        """Return the maximum number of connections from an address."""
        return self.connections_by_host_max.get(host, self.connections_per_host_max)


class Budget:
    """Bytes that all connections together hold; `ReceiveBudget` also limits them."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.held_bytes = 0

    def hold(self, size_bytes: int) -> None:
        """Count `size_bytes` in any case: they are in memory already."""
        self.held_bytes += size_bytes

    def hold_until(self, size_bytes: int, done: "asyncio.Future[Any]") -> None:
        """Count `size_bytes` that a handler holds until `done`, the future of its response."""
        self.hold(size_bytes)
        done.add_done_callback(lambda _: self.give_back(size_bytes))

    def give_back(self, size_bytes: int) -> None:
        """Release bytes."""
        self.held_bytes -= size_bytes
        assert self.held_bytes >= 0, "more bytes were released than held"
