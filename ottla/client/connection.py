"""One blocking connection to a broker: requests go out one at a time, each in the highest version
that both sides speak.

For tools, tests and admin work, where starting fast matters more than throughput; asyncio is not
imported on the way here. Records in bulk go through `client/transport.py`.
"""

import socket
import struct
import time
from typing import Any

import ottla
from ottla.base.errors import ErrorCode, ProtocolError
from ottla.client.bootstrap import Address
from ottla.client.errors import NotReachable, TimedOut, Unsupported
from ottla.wire import api_keys, headers
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

CONNECT_TIMEOUT_S = 5.0
CALL_TIMEOUT_S = 30.0
# Larger answers are a foreign protocol, not Kafka's: "HTTP" reads as 1.2 GB.
RESPONSE_BYTES_MAX = 256 << 20
# Every broker since 2.4 speaks it; one that does not answers in version 0, and says what it speaks.
_HANDSHAKE_VERSION = 3
_LENGTH = struct.Struct(">i")
_CORRELATION_AND_ERROR = struct.Struct(">ih")


class Connection:
    """A socket and what the broker at its end can do. For one thread; `close` is idempotent.

    After any error but an answer, the connection is closed and every call raises NotReachable.
    """

    def __init__(
        self, address: Address, *, client_id: str = "ottla", timeout_s: float = CONNECT_TIMEOUT_S
    ) -> None:
        self.address = address
        self.client_id = client_id
        self._correlation_id = 0
        self._socket: socket.socket | None = _open_socket(address, timeout_s)
        self._versions: dict[int, tuple[int, int]] = {}
        try:
            self._handshake(timeout_s)
        except ProtocolError as error:
            self.close()
            raise NotReachable(f"{address} does not speak Kafka's protocol: {error}") from error

    def call(
        self, request: Any, *, max_version: int | None = None, timeout_s: float = CALL_TIMEOUT_S
    ) -> Any:
        """Send a request and return its response.

        NotReachable, TimedOut and Unsupported tell what went wrong; error codes are the caller's.
        """
        api = api_keys.api_of(request)
        version = self.version_of(api.key, max_version)
        payload = self._exchange(request, version, timeout_s)
        correlation_id, response = headers.decode_response(api.response, version, payload)
        if correlation_id != self._correlation_id:
            self.close()
            raise ProtocolError(
                f"{self.address} answered request {correlation_id} instead of {self._correlation_id}"
            )
        return response

    def version_of(self, api_key: int, max_version: int | None = None) -> int:
        """Return the highest version of an API that both sides speak; Unsupported if there is none."""
        api = api_keys.APIS[api_key]
        if api_key not in self._versions:
            raise Unsupported(f"The broker at {self.address} does not offer {api.name}.")
        lowest, highest = self._versions[api_key]
        chosen = min(highest, api.max_version if max_version is None else max_version)
        if chosen < max(lowest, api.min_version):
            raise Unsupported(
                f"The broker at {self.address} offers {api.name} in versions {lowest} to {highest}; "
                f"Ottla speaks {api.min_version} to {api.max_version}."
            )
        return chosen

    def offers(self, api_key: int) -> bool:
        """Tell whether the broker lists the API."""
        return api_key in self._versions

    @property
    def is_open(self) -> bool:
        """Tell whether calls can be made."""
        return self._socket is not None

    def close(self) -> None:
        """Give the socket back; idempotent."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _handshake(self, timeout_s: float) -> None:
        request = ApiVersionsRequest(
            client_software_name="ottla", client_software_version=ottla.__version__
        )
        payload = self._exchange(request, _HANDSHAKE_VERSION, timeout_s)
        version = _HANDSHAKE_VERSION
        if len(payload) < _CORRELATION_AND_ERROR.size:
            raise ProtocolError("the answer is too short")
        if _CORRELATION_AND_ERROR.unpack_from(payload)[1] == ErrorCode.UNSUPPORTED_VERSION:
            version = 0
        _, response = headers.decode_response(ApiVersionsResponse, version, payload)
        self._versions = {
            row.api_key: (row.min_version, row.max_version) for row in response.api_keys
        }

    def _exchange(self, request: Any, version: int, timeout_s: float) -> bytearray:
        if self._socket is None:
            raise NotReachable(f"the connection to {self.address} is closed")
        self._correlation_id += 1
        frame = headers.encode_request(request, version, self._correlation_id, self.client_id)
        deadline = time.monotonic() + timeout_s
        try:
            self._socket.settimeout(timeout_s)
            self._socket.sendall(_LENGTH.pack(len(frame)) + frame)
            (size,) = _LENGTH.unpack(self._receive(_LENGTH.size, deadline))
            if not 0 < size <= RESPONSE_BYTES_MAX:
                raise ProtocolError(f"a length of {size} bytes cannot be")
            return self._receive(size, deadline)
        except TimeoutError as error:
            self.close()
            name = type(request).__name__.removesuffix("Request")
            raise TimedOut(
                f"{self.address} did not answer {name} within {timeout_s:g} s"
            ) from error
        except OSError as error:
            self.close()
            raise NotReachable(f"the connection to {self.address} broke: {error}") from error
        except ProtocolError:
            self.close()
            raise

    def _receive(self, size: int, deadline: float) -> bytearray:
        assert self._socket is not None
        buffer = bytearray(size)
        view = memoryview(buffer)
        while view:
            # Each read gets what is left of the whole call's time.
            self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            count = self._socket.recv_into(view)
            if count == 0:
                raise ConnectionResetError("the broker closed it before it answered")
            view = view[count:]
        return buffer


def _open_socket(address: Address, timeout_s: float) -> socket.socket:
    try:
        opened = socket.create_connection(address, timeout=timeout_s)
    except ConnectionRefusedError as error:
        raise NotReachable(f"nothing listens on {address}") from error
    except TimeoutError as error:
        raise NotReachable(f"{address} does not answer ({timeout_s:g} s)") from error
    except socket.gaierror as error:
        raise NotReachable(f"the host of {address} is not known: {error.strerror}") from error
    except OSError as error:
        raise NotReachable(f"{address} cannot be reached: {error.strerror or error}") from error
    # Small requests must not wait for the acknowledgement of the one before.
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened
