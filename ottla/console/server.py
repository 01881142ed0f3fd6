"""The door to uvicorn: serves the console in a thread and an event loop of its own.

Inside a broker's process the broker's loop never runs a line of the console; both share the
processor through Python's lock only.
"""

import asyncio
import logging
import socket
import threading

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ottla.base.errors import OttlaError
from ottla.console.app import create_app
from ottla.console.configuration import check_address
from ottla.console.state import Console, ConsoleSettings, open_console
from ottla.net.port import remedy

_log = logging.getLogger(__name__)

_START_S = 30.0
# Open streams (live tail) end at once when the console stops.
_GRACE_S = 1
_BACKLOG = 128
# Seconds in which a request has to be complete.
REQUEST_S = 30.0
CONNECTIONS_MAX = 512
# All users behind one proxy have its address.
ADDRESS_CONNECTIONS_MAX = 256


class ConsoleServer:
    """A listening console; `start` returns when it responds, `stop` when its thread has ended."""

    def __init__(self, settings: ConsoleSettings) -> None:
        self._settings = settings
        self._console: Console | None = None
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()
        self.port = settings.port
        # About the address; empty for loopback.
        self.warning = ""

    @property
    def url(self) -> str:
        """The address for a browser."""
        host = self._settings.host
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)  # noqa: S104
        return f"http://{f'[{host}]' if ':' in host and '[' not in host else host}:{self.port}"

    @property
    def console(self) -> Console:
        """The state of the running console."""
        assert self._console is not None, "the console has been started"
        return self._console

    def start(self, listener: socket.socket | None = None) -> None:
        """Listen and serve; OSError if the port is taken. A `listener` is used as it is.

        ConfigError if others can reach the address, and the settings do not allow that.
        """
        settings = self._settings
        self.warning = check_address(settings.host, allows_insecure=settings.allows_insecure)
        if self.warning:
            _log.warning("console without encryption host=%s", settings.host)
        listener = listener or listen(self._settings.host, self._settings.port)
        self.port = listener.getsockname()[1]
        # Header and body are separate writes: with Nagle's algorithm the body of each response
        # waits for the client's delayed acknowledgement, 40 ms. asyncio does not set it for such
        # sockets.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self._console = open_console(self._settings)
        except BaseException:
            listener.close()
            raise
        self._server = _Server(
            uvicorn.Config(
                create_app(self._console),
                log_config=None,
                access_log=False,
                lifespan="off",
                loop="asyncio",
                http=_Connection,
                ws="none",
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=_GRACE_S,
            ),
            self._ready,
        )
        self._thread = threading.Thread(
            target=self._serve, args=(listener,), name="ottla-console", daemon=True
        )
        self._thread.start()
        if not self._ready.wait(_START_S) or not self._thread.is_alive():
            raise OttlaError("the console did not start: see the log")
        self._console.sampler.start()

    def stop(self) -> None:
        """Stop and wait for the thread; idempotent."""
        if self._server is not None:
            self._server.should_exit = True
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._console is not None:
            self._console.close()
            self._console = None

    def _serve(self, listener: socket.socket) -> None:
        assert self._server is not None, "the thread starts with a server"
        try:
            with asyncio.Runner() as runner:
                runner.run(self._server.serve(sockets=[listener]))
        finally:
            listener.close()
            self._ready.set()


class _Connection(H11Protocol):
    """A connection whose requests have to arrive in time, head and body together.

    If there are too many connections, of all addresses or of one, a new one takes the place of the
    oldest idle one: half requests cannot keep others out.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Admit the connection, and wait for its first request."""
        self._began_at = self.loop.time()
        self._timer: asyncio.TimerHandle | None = None
        super().connection_made(transport)
        if self._is_admitted():
            self._watch()
        else:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Handle bytes; a request that they begin has to be complete in time."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Let uvicorn close the connection unless another request begins."""
        self._stop_watching()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_watching()
        super().connection_lost(exc)

    @property
    def is_idle(self) -> bool:
        """True if no response is owed."""
        return self.cycle is None or self.cycle.response_complete

    def _is_admitted(self) -> bool:
        host = self.client[0] if self.client else ""
        every = [other for other in self.connections if isinstance(other, _Connection)]
        same = [other for other in every if other.client and other.client[0] == host]
        for group, most in ((same, ADDRESS_CONNECTIONS_MAX), (every, CONNECTIONS_MAX)):
            # This connection is one of them.
            if len(group) > most:
                idle = [other for other in group if other.is_idle and other is not self]
                if not idle:
                    return False
                oldest = min(idle, key=lambda other: other._began_at)
                self.connections.discard(oldest)
                oldest.transport.abort()
        return True

    def _watch(self) -> None:
        is_complete = not self.is_idle and not self.cycle.more_body
        if is_complete:
            self._stop_watching()
        elif self._timer is None:
            self._timer = self.loop.call_later(REQUEST_S, self.transport.abort)

    def _stop_watching(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Server(uvicorn.Server):
    """Reports when it listens."""

    def __init__(self, config: uvicorn.Config, ready: threading.Event) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening."""
        await super().startup(sockets)
        self._ready.set()


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; OSError names the address that is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        # create_server adds the address to the reason.
        reason = f"{error}" if error.errno is None else f"{error.strerror}".partition(" (while")[0]
        raise OttlaError(
            f"The console cannot listen on {host}:{port}: {reason}. "
            f"{remedy(error, 'choose another port with --console-port')}."
        ) from error


# uvicorn logs its own start and stop: the command prints them.
logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
