"""The real Net: TCP on the running event loop, asyncio's or uvloop's.

Connections are accepted by `RealListener` and not by the loop's own server, because that one does
not leave descriptors to files. In addition, asyncio's accepts the whole backlog before the first
protocol is notified of its connection, and logs an error per waiting connection if no descriptor
is free. uvloop's accepts one connection at a time, in C: it is used while enough descriptors are
free, because it takes a tenth less time per connection.
"""

import asyncio
import errno
import os
import socket
import ssl
from collections import deque
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, cast

from ottla.base.buffers import Buffer, RangeSource
from ottla.base.files import Descriptor
from ottla.base.loading import deferred_module
from ottla.base.logs import provoked_logger
from ottla.base.platform import descriptors, sockets
from ottla.net.port import SYSTEM_BUFFERS, ListenerTls, ProtocolFactory, SocketBuffers
from ottla.net.tls import ACCEPTED, HANDSHAKE_SECONDS

if TYPE_CHECKING:
    from ottla.net.admission import hellos
else:
    # Only listeners with TLS need it.
    hellos = deferred_module("ottla.net.admission.hellos")

# Connections that may wait in the kernel while the loop is busy.
BACKLOG = 1024
# The largest number of connections accepted per iteration of the loop and listening socket.
ACCEPTS_PER_TURN = 64
# The largest number of iterations between two that look for a second connection.
_SINGLE_TURNS_MAX = 64
# Pause in seconds after `accept` failed and no connection could be refused.
PAUSE_SECONDS = 1.0
# At most one warning in this many seconds.
_WARNING_SECONDS = 60.0
# The last descriptors are for files: so many, or an eighth of all if that is less.
_RESERVED_COUNT = 64
# The loop's own server accepts so many connections between two queries of the free descriptors.
_UNCHECKED_MAX = 16
# For a free port, which all addresses of a listener share.
_PORT_ATTEMPTS = 10
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

_log = provoked_logger(__name__)


class _Socket(socket.socket):
    """A socket whose family and type are plain numbers.

    The enumerations of `socket.socket` are converted on every access: for each connection that
    takes longer than accepting it.
    """

    __slots__ = ()

    family = socket.SocketType.family  # type: ignore[assignment]
    type = socket.SocketType.type  # type: ignore[assignment]

    def accept_one(self) -> "_Socket":
        """Return the socket of a connection; raises OSError."""
        return _Socket(self.family, self.type, self.proto, sockets.accept_descriptor(self))


class AcceptLimit:
    """The number of connections to accept in each iteration of the loop: one, and while more are
    waiting, twice as many as before.

    The `accept` that finds none costs as much as one that succeeds. After each, more and more
    iterations accept one connection without looking for a second.
    """

    __slots__ = ("_count", "_single_turns", "_singles_left")

    def __init__(self) -> None:
        self._count = 1
        self._singles_left = 0
        self._single_turns = 1

    def next_count(self) -> int:
        """Return the number for this iteration, after which `found_all` or `found_none` is called."""
        return 1 if self._singles_left else self._count

    def found_all(self) -> None:
        """Note that all were accepted: more may be waiting."""
        if self._singles_left:
            self._singles_left -= 1
            return
        if self._count > 1:
            self._single_turns = 1
        self._count = min(2 * self._count, ACCEPTS_PER_TURN)

    def found_none(self) -> None:
        """Note that no other connection was waiting."""
        self._count = 2
        self._singles_left = self._single_turns
        self._single_turns = min(2 * self._single_turns, _SINGLE_TURNS_MAX)


class RealListener:
    """The listening sockets of one address, on the event loop running at creation.

    Accepts connections from `start` to `close`.
    """

    def __init__(
        self,
        sockets: list[_Socket],
        factory: ProtocolFactory,
        tls: ListenerTls | None = None,
    ) -> None:
        self._tls = tls
        self._hellos = None if tls is None else hellos.Hellos(tls, self._secure)
        self._loop = asyncio.get_running_loop()
        self._sockets = sockets
        self._factory = factory
        self._address = sockets[0].getsockname()
        self._resume_timers: dict[_Socket, asyncio.TimerHandle] = {}
        self._turns = {listening: AcceptLimit() for listening in sockets}
        # Accepted in the last turns: each coroutine waits for its future, which is done when the
        # protocol has been notified, and then only has to be ended.
        self._connecting: deque[tuple[Coroutine[Any, Any, object], asyncio.Future[None]]] = deque()
        # The highest descriptor of a connection that was accepted.
        self._highest_fd = -1
        self._warned_at = float("-inf")
        # Closed for a moment to refuse a connection when no other descriptor is free.
        self._spare = _spare_descriptor()
        self.refused_count = 0
        # uvloop's servers, which accept instead of this object until half of the descriptors are
        # used; they listen on duplicates of the sockets.
        self._servers: list[asyncio.Server] = []
        self._unchecked_count = 0

    async def start(self) -> None:
        """Start to accept; raises OSError."""
        for listening in self._sockets:
            listening.listen(BACKLOG)
        is_own = isinstance(self._loop, asyncio.BaseEventLoop) or self._tls is not None
        if is_own or _is_half_used():
            self._resume_all()
            return
        for listening in self._sockets:
            server = await self._loop.create_server(
                self._served, sock=listening.dup(), backlog=BACKLOG
            )
            self._servers.append(server)

    def _served(self) -> asyncio.BufferedProtocol:
        """Return the protocol of a connection that the loop's own server has accepted."""
        self._unchecked_count += 1
        if self._unchecked_count == _UNCHECKED_MAX:
            self._unchecked_count = 0
            if _is_half_used():
                # Not at once: the server still needs its socket for this connection.
                self._loop.call_soon(self._replace_servers)
        return self._factory()

    def _replace_servers(self) -> None:
        """Accept here from now on."""
        servers, self._servers = self._servers, []
        for server in servers:
            server.close()
        if servers:
            self._resume_all()

    @property
    def host(self) -> str:
        """The address that it is bound to."""
        return str(self._address[0])

    @property
    def port(self) -> int:
        """The port that it is bound to."""
        return int(self._address[1])

    async def close(self) -> None:
        """Stop accepting; established connections stay open. Idempotent."""
        for timer in self._resume_timers.values():
            timer.cancel()
        self._resume_timers.clear()
        for server in self._servers:
            server.close()
        self._servers.clear()
        self._end_connected()
        while self._connecting:
            self._connecting.popleft()[0].close()
        sockets, self._sockets = self._sockets, []
        for listening in sockets:
            self._loop.remove_reader(listening)
            listening.close()
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1
        if self._hellos is not None:
            await self._hellos.close()

    def _resume_all(self) -> None:
        for listening in self._sockets:
            self._resume(listening)

    def _resume(self, listening: _Socket) -> None:
        self._resume_timers.pop(listening, None)
        self._loop.add_reader(listening, self._accept, listening)

    def _pause(self, listening: _Socket) -> None:
        self._loop.remove_reader(listening)
        self._resume_timers[listening] = self._loop.call_later(
            PAUSE_SECONDS, self._resume, listening
        )

    def _accept(self, listening: _Socket) -> None:
        turns = self._turns[listening]
        self._end_connected()
        for _ in range(turns.next_count()):
            try:
                accepted = listening.accept_one()
            except BlockingIOError:
                turns.found_none()
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    # The peer of that connection has already disconnected (ECONNABORTED and
                    # similar).
                    continue
                if not self._refuse(listening, error):
                    return
                continue
            if accepted.fileno() <= self._highest_fd or self._may_use(accepted.fileno()):
                self._connect(accepted)
                continue
            accepted.close()
            self.refused_count += 1
            self._warn(OSError(errno.EMFILE, os.strerror(errno.EMFILE)))
        turns.found_all()

    def _may_use(self, fd: int) -> bool:
        """Return False for the last descriptors, which are for files.

        The system assigns the lowest free descriptor, so the limit concerns only numbers higher
        than any before.
        """
        limit = descriptors.soft_limit()
        if fd >= limit - min(_RESERVED_COUNT, limit // 8):
            return False
        self._highest_fd = fd
        return True

    def _connect(self, accepted: socket.socket) -> None:
        """Create the transport of a connection, without a task, which would cost as much again."""
        if self._hellos is not None:
            self._hellos.wait(accepted)
            return
        connecting = self._loop.connect_accepted_socket(self._factory, accepted)
        try:
            # It waits once, until the protocol has been notified of its connection.
            connected: asyncio.Future[None] = connecting.send(None)
        except OSError as error:
            accepted.close()
            _log.info("connection not established reason=%s", error.strerror or error)
        else:
            self._connecting.append((connecting, connected))

    async def _secure(self, accepted: socket.socket, host: str) -> None:
        """Create the transport of a connection with TLS, which waits for the handshake."""
        assert self._tls is not None
        # For this task, and the callbacks that it registers.
        ACCEPTED.set(accepted)
        try:
            await self._loop.connect_accepted_socket(
                self._factory,
                accepted,
                ssl=self._tls.context,
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
            )
        except OSError as error:
            accepted.close()
            _log.info("connection not established reason=%s", error.strerror or error)
            if isinstance(error, ssl.SSLError):
                self._tls.handshakes.failed(host, error.reason or "")
            _free_frames(error)

    def _end_connected(self) -> None:
        """End the coroutines of connections that their protocols know.

        In the next turn, because a callback for each costs as much as accepting it.
        """
        connecting = self._connecting
        while connecting and connecting[0][1].done():
            coroutine, _ = connecting.popleft()
            try:
                coroutine.send(None)
            except StopIteration:
                continue
            raise AssertionError("a connection was awaited twice")

    def _refuse(self, listening: _Socket, error: OSError) -> bool:
        """Accept and close one waiting connection; return False if nothing more can be done now.

        Pauses accepting if even the spare descriptor is gone.
        """
        self._warn(error)
        if self._spare < 0:
            self._spare = _spare_descriptor()
        if self._spare < 0:
            self._pause(listening)
            return False
        os.close(self._spare)
        try:
            listening.accept_one().close()
            self.refused_count += 1
        except BlockingIOError:
            # Linux reports the lack of descriptors even if no connection is waiting.
            return False
        except OSError:
            self._pause(listening)
            return False
        finally:
            self._spare = _spare_descriptor()
        return True

    def _warn(self, error: OSError) -> None:
        if self._loop.time() - self._warned_at >= _WARNING_SECONDS:
            self._warned_at = self._loop.time()
            _log.warning("connections refused port=%d reason=%r", self.port, error.strerror)


class RealFileSocket:
    """The descriptor of a transport of asyncio or uvloop; valid until `connection_lost`."""

    __slots__ = ("_fd", "_socket")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        # The transport owns the descriptor. Without family and type Python would query the system.
        self._socket = socket.socket(socket.AF_INET, sockets.STREAM, 0, fd)

    def __del__(self) -> None:
        # The object must not close the descriptor.
        self._socket.detach()

    def send(self, parts: Sequence[Buffer], *, has_more: bool) -> int:
        """Send without blocking; return how many bytes the socket has accepted."""
        try:
            return self._socket.sendmsg(parts, (), sockets.MORE if has_more else 0)
        except BlockingIOError:
            return 0

    def send_file(self, source: RangeSource, position: int, size_bytes: int) -> int:
        """Send bytes of a file without copying them through this process."""
        fd = cast(Descriptor, source).fileno()
        try:
            return sockets.send_file(self._fd, fd, position, size_bytes)
        except BlockingIOError:
            return 0

    def queued_bytes(self) -> int:
        """Return the number of bytes in the kernel's send queue."""
        return sockets.queued_bytes(self._socket)


def _free_frames(error: OSError) -> None:
    """Cut the traceback of a handshake that failed.

    A frame of asyncio in it refers to the error, and to OpenSSL's objects: only the garbage
    collector would free them.
    """
    error.__traceback__ = None


def _no_name(host: str) -> socket.gaierror:
    """Return the error for a host with a label that is empty or has more than 63 letters."""
    return socket.gaierror(socket.EAI_NONAME, f"{host!r} is not the name of a host")


class RealNet:
    """Sockets of the operating system."""

    async def listen(
        self,
        host: str,
        port: int,
        factory: ProtocolFactory,
        buffers: SocketBuffers = SYSTEM_BUFFERS,
        tls: ListenerTls | None = None,
    ) -> RealListener:
        """Accept on host and port; an empty host means every address of the machine."""
        try:
            addresses = await asyncio.get_running_loop().getaddrinfo(
                host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
        except UnicodeError as error:
            raise _no_name(host) from error
        rows = [(family, address) for family, _, _, _, address in dict.fromkeys(addresses)]
        sockets = _bind_all(rows, port, buffers)
        try:
            if not sockets:
                raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
            listener = RealListener(sockets, factory, tls)
            try:
                await listener.start()
            except OSError:
                await listener.close()
                raise
            return listener
        except OSError:
            for bound in sockets:
                bound.close()
            raise

    async def connect(
        self,
        host: str,
        port: int,
        factory: ProtocolFactory,
        tls: ssl.SSLContext | None = None,
    ) -> tuple[asyncio.Transport, asyncio.BufferedProtocol]:
        """Connect over TCP, and with `tls` over TLS."""
        loop = asyncio.get_running_loop()
        handshake_s = None if tls is None else HANDSHAKE_SECONDS
        try:
            transport, protocol = await loop.create_connection(
                factory, host, port, ssl=tls, ssl_handshake_timeout=handshake_s
            )
        except UnicodeError as error:
            raise _no_name(host) from error
        except OSError as error:
            _free_frames(error)
            raise
        return transport, protocol

    async def resolve(self, host: str) -> list[str]:
        """Return the addresses of a host, as the system resolves its name."""
        try:
            rows = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except UnicodeError as error:
            raise _no_name(host) from error
        return [str(address[0]) for *_, address in rows]

    def file_socket(self, transport: asyncio.BaseTransport) -> RealFileSocket | None:
        """Return the socket of a TCP transport; None for TLS, which encrypts what it sends."""
        if transport.get_extra_info("sslcontext") is not None:
            return None
        sock = transport.get_extra_info("socket")
        return None if sock is None else RealFileSocket(sock.fileno())


def _bind_all(
    rows: Sequence[tuple[int, tuple[Any, ...]]], port: int, buffers: SocketBuffers
) -> list[_Socket]:
    """Return sockets bound to the addresses, all to the same port also if any is free."""
    for attempt in range(_PORT_ATTEMPTS):
        sockets: list[_Socket] = []
        try:
            for family, address in rows:
                chosen = sockets[0].getsockname()[1] if sockets and not port else address[1]
                bound = _bind(family, (address[0], chosen, *address[2:]), buffers)
                if bound is not None:
                    sockets.append(bound)
        except OSError as error:
            for bound in sockets:
                bound.close()
            # Another program may have the port in the other family.
            is_taken = error.errno == errno.EADDRINUSE and not port and sockets
            if not is_taken or attempt == _PORT_ATTEMPTS - 1:
                raise
        else:
            return sockets
    raise AssertionError("the last attempt returns or raises")


def _bind(family: int, address: tuple[object, ...], buffers: SocketBuffers) -> _Socket | None:
    """Return a socket bound to the address; None if the machine lacks that address family."""
    try:
        # asyncio sets TCP_NODELAY only on sockets that name their protocol.
        bound = _Socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as error:
        if error.errno in (errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT):
            return None
        raise
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        # Accepted connections inherit both. Linux doubles them, for its own bookkeeping.
        for option, size_bytes in (
            (socket.SO_SNDBUF, buffers.send_bytes),
            (socket.SO_RCVBUF, buffers.receive_bytes),
        ):
            if size_bytes >= 0:
                bound.setsockopt(socket.SOL_SOCKET, option, size_bytes)
        bound.setblocking(False)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


def _spare_descriptor() -> int:
    """Return a descriptor of the null device; -1 if none is free."""
    try:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1


def _is_half_used() -> bool:
    """Return True if the lowest free descriptor is in the upper half, or none is free."""
    descriptor = _spare_descriptor()
    if descriptor < 0:
        return True
    os.close(descriptor)
    return 2 * descriptor >= descriptors.soft_limit()
