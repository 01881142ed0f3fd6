"""One blocking connection to a broker: one request at a time, each in the highest common version.

For tools, tests and admin work, where starting fast matters more than throughput: this module
imports neither asyncio nor the table of all APIs; a message knows its own key and versions.
`client/transport.py` transfers records in bulk.
"""

import math
import reprlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import ottla
from ottla.base.buffers import Buffer
from ottla.base.errors import ApiError, ErrorCode, ProtocolError
from ottla.base.loading import deferred_module
from ottla.client.bootstrap import Address
from ottla.client.errors import NoBroker, NotReachable, TimedOut, Unsupported
from ottla.wire import primitives, schema
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

# Only secured connections, and servers that are no brokers, need it.
if TYPE_CHECKING:
    from ottla.client import strangers
    from ottla.client.security import authentication, refusals
    from ottla.client.security.options import Security
else:
    strangers = deferred_module("ottla.client.strangers")
    authentication = deferred_module("ottla.client.security.authentication")
    refusals = deferred_module("ottla.client.security.refusals")

M = TypeVar("M", bound=schema.Message)
# Takes the address, the request and its version.
OnRequest = Callable[[Address, schema.Message, int], None]

CONNECT_TIMEOUT_S = 5.0
CALL_TIMEOUT_S = 30.0
# How long other brokers are preferred to one that did not respond.
_SILENT_S, _SILENT_MAX_S = 3.0, 24.0
# How long a server that is no broker may take for each question about its kind.
_STRANGER_S = 1.0
# A larger response is not Kafka's protocol: "HTTP" reads as 1.2 GB.
RESPONSE_BYTES_MAX = 256 << 20
# Brokers since 2.4 support it; older ones respond in version 0 with the versions they support.
_HANDSHAKE_VERSION = 3
_OBJECTS_MAX = 100 * primitives.OBJECT_BUDGET
# Java's clients renew a session after 85 to 95 % of its lifetime. A broker refuses to renew one
# more than once in a second: shorter ones end, and the client connects again.
_RENEWED_AT = 0.85
_RENEWABLE_MS = 2000
_LENGTH = struct.Struct(">i")
_REQUEST_HEADER = struct.Struct(">hhih")
_CORRELATION_ID = struct.Struct(">i")
_CORRELATION_AND_ERROR = struct.Struct(">ih")


class _NoLength(ProtocolError):
    """The first four bytes of a response are no length; a server that is no broker sent them."""

    def __init__(self, received: bytes) -> None:
        (size,) = _LENGTH.unpack(received)
        super().__init__(f"a length of {size} bytes cannot be")
        self.received = received


class Connection:
    """A socket, and the API versions of the broker behind it. For one thread; `close` is
    idempotent. `on_request` is called before the request for the versions is sent.

    Any error but an error code in a response closes the connection; later calls raise NotReachable.
    If the broker limits sessions, the connection authenticates again in time (KIP-368).
    """

    def __init__(
        self,
        address: Address,
        *,
        client_id: str = "ottla",
        timeout_s: float = CONNECT_TIMEOUT_S,
        security: "Security | None" = None,
        on_request: OnRequest | None = None,
    ) -> None:
        self.address = address
        self.client_id = client_id
        self._correlation_id = 0
        self._socket: socket.socket | None = _open_socket(address, timeout_s, security)
        self._versions: dict[int, tuple[int, int]] = {}
        self._credentials = None if security is None else security.credentials
        # By the monotonic clock in seconds.
        self._renew_at = math.inf
        try:
            self._introduce(timeout_s, on_request, is_plain=security is None)
            self._authenticate(timeout_s)
        except ProtocolError as error:
            self.close()
            raise NotReachable(f"{address} does not speak Kafka's protocol: {error}") from error
        except BaseException:
            self.close()
            raise

    def call(
        self,
        request: schema.Message,
        response_type: type[M],
        *,
        max_version: int | None = None,
        timeout_s: float = CALL_TIMEOUT_S,
    ) -> M:
        """Send a request and return its response, of type `response_type`.

        Raises NotReachable, TimedOut or Unsupported; error codes in the response are left to the
        caller.
        """
        started = self.start(request, response_type, max_version=max_version, timeout_s=timeout_s)
        return started()

    def start(
        self,
        request: schema.Message,
        response_type: type[M],
        *,
        max_version: int | None = None,
        timeout_s: float = CALL_TIMEOUT_S,
    ) -> Callable[[], M]:
        """Send a request; return a function that waits for its response and returns it, as `call`
        does. Responses are read in the order of their requests.
        """
        self.renew_session(timeout_s)
        version = self.version_of(type(request), max_version)
        receive = self._send(request, version, timeout_s)
        correlation_id = self._correlation_id
        return lambda: self._decode(response_type, version, receive(), correlation_id)

    def version_of(self, request: type[schema.Message], max_version: int | None = None) -> int:
        """Return the highest version of a request that both sides support, up to `max_version`.

        Unsupported if they share no version.
        """
        name = request.__name__.removesuffix("Request")
        if request.API_KEY not in self._versions:
            raise Unsupported(
                f"The broker at {self.address} does not offer {name}.",
                api=name,
            )
        lowest, highest = self._versions[request.API_KEY]
        ours = request.MAX_VERSION if max_version is None else max_version
        chosen = min(highest, ours)
        if chosen < max(lowest, request.MIN_VERSION):
            raise Unsupported(
                f"The broker at {self.address} offers {name} in versions {lowest} to {highest}; "
                f"Ottla speaks {request.MIN_VERSION} to {ours}.",
                api=name,
            )
        return chosen

    @property
    def is_open(self) -> bool:
        """True until the connection is closed."""
        return self._socket is not None

    def close(self) -> None:
        """Close the socket; idempotent."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def renew_session(self, timeout_s: float) -> None:
        """Authenticate again if the session ends soon; ApiError closes the connection."""
        if time.monotonic() < self._renew_at or not self.is_open:
            return
        self._renew_at = math.inf
        try:
            self._authenticate(timeout_s)
        except ApiError:
            self.close()
            raise

    def _authenticate(self, timeout_s: float) -> None:
        if self._credentials is None:
            return
        started = time.monotonic()
        lifetime_ms = authentication.authenticate(self, self._credentials, timeout_s)
        if lifetime_ms >= _RENEWABLE_MS:
            self._renew_at = started + _RENEWED_AT * lifetime_ms / 1000

    def _introduce(self, timeout_s: float, on_request: OnRequest | None, *, is_plain: bool) -> None:
        """Exchange the versions; NoBroker if another kind of server is identified."""
        try:
            self._handshake(timeout_s, on_request)
        except (ProtocolError, NotReachable, TimedOut) as error:
            received = error.received if isinstance(error, _NoLength) else b""
            patience_s = min(timeout_s, _STRANGER_S)
            stranger = strangers.identify(self.address, received, patience_s) if is_plain else None
            if stranger is None:
                raise
            raise NoBroker(stranger.text, is_tls=stranger.is_tls) from error

    def _handshake(self, timeout_s: float, on_request: OnRequest | None) -> None:
        request = ApiVersionsRequest(
            client_software_name="ottla", client_software_version=ottla.__version__
        )
        if on_request is not None:
            on_request(self.address, request, _HANDSHAKE_VERSION)
        frame = self._send(request, _HANDSHAKE_VERSION, timeout_s)()
        version = _HANDSHAKE_VERSION
        if len(frame) < _CORRELATION_AND_ERROR.size:
            raise ProtocolError("the response is too short")
        if _CORRELATION_AND_ERROR.unpack_from(frame)[1] == ErrorCode.UNSUPPORTED_VERSION:
            version = 0
        response = self._decode(ApiVersionsResponse, version, frame, self._correlation_id)
        self._versions = {
            row.api_key: (row.min_version, row.max_version) for row in response.api_keys
        }

    def _encode(self, request: schema.Message, version: int) -> list[Buffer]:
        """Return the next request as buffers; ApiError names a value that no request can hold."""
        self._correlation_id += 1
        client = self.client_id.encode()
        header = (
            _REQUEST_HEADER.pack(request.API_KEY, version, self._correlation_id, len(client))
            + client
        )
        if version >= request.FLEXIBLE_HEADER_SINCE:
            header += b"\0"
        try:
            return schema.encode_parts(request, version, header)
        except schema.WrongValue as error:
            api = type(request).__name__.removesuffix("Request")
            value = reprlib.repr(error.value)
            text = f"{value} cannot be sent as {error.place} of {api}: {error.why}"
            raise ApiError(ErrorCode.INVALID_REQUEST, text) from error

    def _decode(self, response_type: type[M], version: int, frame: Buffer, requested_id: int) -> M:
        try:
            (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
            position = _CORRELATION_ID.size
            if version >= response_type.FLEXIBLE_HEADER_SINCE:
                position, _ = primitives.skip_tags(frame, position, primitives.OBJECT_BUDGET)
            if correlation_id != requested_id:
                raise ProtocolError(
                    f"{self.address} responded to request {correlation_id} instead of "
                    f"{requested_id}"
                )
            response, _ = schema.decoder(response_type, version)(frame, position, _OBJECTS_MAX)
        except (struct.error, IndexError) as error:
            self.close()
            raise ProtocolError(f"{self.address} sent a response that ends too early") from error
        except ProtocolError:
            self.close()
            raise
        return response

    def _send(
        self, request: schema.Message, version: int, timeout_s: float
    ) -> Callable[[], bytearray]:
        """Send a request; return a function that returns the frame of its response."""
        opened = self._opened()
        frame = b"".join(self._encode(request, version))
        deadline = time.monotonic() + timeout_s
        api = type(request).__name__.removesuffix("Request")
        with self._transfer(api, timeout_s):
            opened.settimeout(timeout_s)
            opened.sendall(_LENGTH.pack(len(frame)) + frame)

        def receive() -> bytearray:
            with self._transfer(api, timeout_s):
                length = self._receive(_LENGTH.size, deadline)
                (size,) = _LENGTH.unpack(length)
                if not 0 < size <= RESPONSE_BYTES_MAX:
                    raise _NoLength(bytes(length))
                return self._receive(size, deadline)

        return receive

    @contextmanager
    def _transfer(self, api: str, timeout_s: float) -> Iterator[None]:
        """Close the connection if this block, which sends or receives, fails."""
        try:
            yield
        except TimeoutError as error:
            self.close()
            raise TimedOut(
                f"{self.address} did not respond to {api} within {timeout_s:g} s"
            ) from error
        except OSError as error:
            self.close()
            raise NotReachable(f"the connection to {self.address} broke: {error}") from error
        except ProtocolError:
            self.close()
            raise

    def _opened(self) -> socket.socket:
        if self._socket is None:
            raise NotReachable(f"the connection to {self.address} is closed")
        return self._socket

    def _receive(self, size: int, deadline: float) -> bytearray:
        opened = self._opened()
        buffer = bytearray(size)
        view = memoryview(buffer)
        while view:
            # Each read gets the time that remains of the call.
            opened.settimeout(max(deadline - time.monotonic(), 0.001))
            count = opened.recv_into(view)
            if count == 0:
                raise ConnectionResetError("the broker closed it before it responded")
            view = view[count:]
        return buffer


class SilentBrokers:
    """The brokers that did not respond in time, by a key of the caller; any thread may use it.

    A frozen process accepts connections and never responds: without this memory, each request that
    any broker can serve waits for it again.

    A broker is silent for 3 seconds after a time-out, and twice as long after each further one, up
    to 24 seconds; a response ends that. `clock` returns seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._until: dict[Hashable, tuple[float, float]] = {}
        self.timeouts = 0

    def is_silent(self, key: Hashable) -> bool:
        """Return True if a broker did not respond a moment ago."""
        until, _ = self._until.get(key, (float("-inf"), 0.0))
        return self._clock() < until

    def on_timeout(self, key: Hashable) -> None:
        """Take note that a broker did not respond in time."""
        with self._lock:
            self.timeouts += 1
            _, former_s = self._until.get(key, (0.0, 0.0))
            pause_s = min(2 * former_s or _SILENT_S, _SILENT_MAX_S)
            self._until[key] = self._clock() + pause_s, pause_s

    def on_refusal(self, key: Hashable) -> None:
        """Take note that a broker cannot be reached: such a request costs no time."""
        with self._lock:
            self._until[key] = self._clock() + _SILENT_S, 0.0

    def on_response(self, key: Hashable) -> None:
        """Take note that a broker responds."""
        if key in self._until:
            with self._lock:
                self._until.pop(key, None)


def _open_socket(address: Address, timeout_s: float, security: "Security | None") -> socket.socket:
    try:
        opened = socket.create_connection(address, timeout=timeout_s)
    except ConnectionRefusedError as error:
        raise NotReachable(f"nothing listens on {address}") from error
    except TimeoutError as error:
        raise NotReachable(f"{address} does not respond ({timeout_s:g} s)") from error
    except socket.gaierror as error:
        raise NotReachable(f"the host of {address} is not known: {error.strerror}") from error
    except UnicodeError as error:
        # A label that is empty or has more than 63 letters.
        raise NotReachable(f"{address.host!r} is not the name of a host") from error
    except OSError as error:
        raise NotReachable(f"{address} cannot be reached: {error.strerror or error}") from error
    # Disable Nagle's algorithm: a small request must not wait for the acknowledgement of the
    # previous one.
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if security is None:
        return opened
    try:
        return security.wrap(opened, address.host)
    except OSError as error:
        opened.close()
        raise refusals.failed_handshake(address, error) from error
