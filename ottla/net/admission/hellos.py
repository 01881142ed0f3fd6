"""Connections between TCP and TLS: they wait for their hello, then for their turn.

The shell of `HandshakeOrder`. A connection has no transport and no objects of OpenSSL before its
first TLS record is complete. Until then the kernel holds its bytes, and wakes the loop only when
the record is there (SO_RCVLOWAT). So a peer cannot prepare many handshakes and have them begin at
once.
"""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from ottla.base.logs import provoked_logger
from ottla.base.platform.sockets import DO_NOT_WAIT
from ottla.net.admission.handshakes import HandshakeOrder
from ottla.net.admission.origins import origin_of
from ottla.net.port import ListenerTls

_log = provoked_logger(__name__)

_SWEEP_SECONDS = 0.5
# The header of a TLS record: its kind, its version and the size of the rest.
_HEADER_BYTES = 5
_SIZE_POSITION = 3
_HANDSHAKE = b"\x16"
# A record has at most so many bytes (RFC 8446); others are for OpenSSL to refuse.
_RECORD_BYTES_MAX = (1 << 14) + 256
_PEEK = socket.MSG_PEEK | DO_NOT_WAIT

Secure = Callable[[socket.socket, str], Coroutine[Any, Any, None]]


class Handshake:
    """One connection between TCP and TLS."""

    __slots__ = ("_hellos", "has_begun", "host", "needed_bytes", "socket", "task")

    def __init__(self, hellos: "Hellos", accepted: socket.socket, host: str) -> None:
        self._hellos = hellos
        self.socket = accepted
        self.host = host
        # The kernel wakes the loop if so many bytes are there.
        self.needed_bytes = 1
        self.task: asyncio.Task[None] | None = None
        # True once the socket belongs to a transport, which closes it.
        self.has_begun = False

    @property
    def is_stranger(self) -> bool:
        """True: nothing is known about the peer before TLS."""
        return True

    def close(self, reason: str) -> None:
        """Give the connection up."""
        self._hellos.give_up(self, reason)


class Hellos:
    """The connections of one listener, on the event loop running at creation.

    `secure` creates the transport of a connection with TLS from an address, and returns when it is
    established or has failed.
    """

    def __init__(self, tls: ListenerTls, secure: Secure) -> None:
        self._loop = asyncio.get_running_loop()
        self._handshakes = tls.handshakes
        self._order: HandshakeOrder[Handshake] = tls.handshakes.handshake_order
        self._secure = secure
        self._all: dict[Handshake, None] = {}
        self._has_turn = False
        self._sweep_timer: asyncio.TimerHandle | None = None

    def wait(self, accepted: socket.socket) -> None:
        """Wait for the hello of a connection, unless there are too many."""
        try:
            host = str(accepted.getpeername()[0])
        except OSError:
            # The peer has already disconnected.
            accepted.close()
            return
        handshake = Handshake(self, accepted, host)
        loser = self._handshakes.begin(handshake, host)
        if loser is handshake:
            accepted.close()
            _log.info("connection closed peer=%s reason=%s", host, "too many connections")
            return
        if loser is not None:
            loser.close("displaced by a connection from an address with fewer")
        self._all[handshake] = None
        self._order.arrive(handshake, origin_of(host), self._loop.time())
        self._loop.add_reader(accepted, self._readable, handshake)
        if self._sweep_timer is None:
            self._sweep_timer = self._loop.call_later(_SWEEP_SECONDS, self._sweep)

    def _readable(self, handshake: Handshake) -> None:
        """Look at the bytes that are there: the hello, or a part of it."""
        try:
            data = handshake.socket.recv(_HEADER_BYTES + _RECORD_BYTES_MAX, _PEEK)
        except BlockingIOError:
            return
        except OSError as error:
            self.give_up(handshake, error.strerror or str(error))
            return
        if data[:1] not in (b"", _HANDSHAKE):
            # Bytes that are not read would reset the connection.
            handshake.socket.recv(len(data), DO_NOT_WAIT)
            self.give_up(handshake, "the peer does not use TLS")
            return
        needed_bytes = _HEADER_BYTES
        if len(data) >= _HEADER_BYTES:
            size_bytes = int.from_bytes(data[_SIZE_POSITION:_HEADER_BYTES], "big")
            needed_bytes += min(size_bytes, _RECORD_BYTES_MAX)
        if len(data) >= needed_bytes:
            self._queue(handshake)
        elif len(data) < handshake.needed_bytes:
            # The loop was woken for the end of the connection.
            self.give_up(handshake, "the peer disconnected before its TLS hello")
        else:
            handshake.needed_bytes = needed_bytes
            handshake.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, needed_bytes)

    def _queue(self, handshake: Handshake) -> None:
        self._loop.remove_reader(handshake.socket)
        if handshake.needed_bytes > 1:
            handshake.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
        self._order.has_hello(handshake)
        self._come_back()

    def _come_back(self) -> None:
        """Begin handshakes in the next turn of the loop."""
        if not self._has_turn:
            self._has_turn = True
            self._loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        self._has_turn = False
        turn = self._order.take_turn(self._loop.time())
        for handshake in turn.given_up:
            self.give_up(handshake, "displaced by a handshake with an address with fewer")
        for handshake in turn.begun:
            handshake.task = self._loop.create_task(self._begin(handshake))
            handshake.task.add_done_callback(partial(self._ended, handshake))
            self._come_back()

    async def _begin(self, handshake: Handshake) -> None:
        handshake.has_begun = True
        await self._secure(handshake.socket, handshake.host)

    def _ended(self, handshake: Handshake, _task: "asyncio.Task[None]") -> None:
        handshake.task = None
        self._forget(handshake)
        if not handshake.has_begun:
            handshake.socket.close()
        if self._order.waiting_count:
            self._come_back()

    def _sweep(self) -> None:
        self._sweep_timer = None
        for handshake in self._order.overdue(self._loop.time()):
            self.give_up(handshake, "the TLS handshake was not completed in time")
        if self._order.waiting_count:
            self._come_back()
        if self._all:
            self._sweep_timer = self._loop.call_later(_SWEEP_SECONDS, self._sweep)

    def give_up(self, handshake: Handshake, reason: str) -> None:
        """Close a connection; one that has ended already is ignored."""
        if handshake not in self._all:
            return
        _log.info("connection not established peer=%s reason=%s", handshake.host, reason)
        if handshake.task is not None:
            # It closes the socket, and `_ended` follows.
            handshake.task.cancel()
            return
        self._loop.remove_reader(handshake.socket)
        self._forget(handshake)
        handshake.socket.close()

    def _forget(self, handshake: Handshake) -> None:
        del self._all[handshake]
        self._order.leave(handshake)
        self._handshakes.end(handshake, handshake.host)

    async def close(self) -> None:
        """Give up every connection; idempotent."""
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
            self._sweep_timer = None
        tasks = [one.task for one in self._all if one.task is not None]
        for handshake in list(self._all):
            self.give_up(handshake, "the broker stops")
        await asyncio.gather(*tasks, return_exceptions=True)
