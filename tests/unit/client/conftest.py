"""A scripted broker on a real socket: returns the responses that a test defines, in any version."""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import pytest

from ottla.client.bootstrap import Address
from ottla.wire import headers, schema
from ottla.wire.api_keys import APIS
from ottla.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from ottla.wire.messages.metadata import MetadataResponse, MetadataResponseBroker

Responder = Callable[[Any], Any]


class ScriptedBroker:
    """Serves until closed. `answers` maps the name of an API to a function of the request.

    `requests` has (name, version, request) in the order of arrival; a response of None disconnects.
    """

    def __init__(
        self, node_id: int = 0, versions: dict[int, tuple[int, int]] | None = None
    ) -> None:
        self.node_id = node_id
        self.versions = versions or {
            key: (api.min_version, api.max_version) for key, api in APIS.items()
        }
        self.answers: dict[str, Responder] = {"Metadata": self.metadata}
        self.requests: list[tuple[str, int, Any]] = []
        self.peers: list[ScriptedBroker] = [self]
        self.controller_id = node_id
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = Address("127.0.0.1", self._listener.getsockname()[1])
        self._sockets: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def bootstrap(self) -> str:
        """Return the broker's address."""
        return str(self.address)

    def names(self) -> list[str]:
        """Return the names of the requested APIs, without the handshakes."""
        return [name for name, _, _ in self.requests if name != "ApiVersions"]

    def metadata(self, request: Any) -> MetadataResponse:
        """Return metadata with the peers and no topics."""
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(
                    node_id=peer.node_id, host=peer.address.host, port=peer.address.port
                )
                for peer in self.peers
            ],
            controller_id=self.controller_id,
        )

    def close(self) -> None:
        """Stop listening and disconnect all clients."""
        # A thread that waits in accept() keeps a closed socket open, and would never end.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        for opened in self._sockets:
            opened.close()

    def _accept(self) -> None:
        while True:
            try:
                opened, _ = self._listener.accept()
            except OSError:
                return
            self._sockets.append(opened)
            threading.Thread(target=self._serve, args=(opened,), daemon=True).start()

    def _serve(self, opened: socket.socket) -> None:
        # One stream serves the whole connection: requests may arrive before the last one has its
        # response.
        stream = opened.makefile("rb")
        try:
            while (frame := _read_frame(stream)) is not None:
                response = self._answer(frame)
                if response is None:
                    break
                opened.sendall(struct.pack(">i", len(response)) + response)
        except OSError:
            pass
        stream.close()
        opened.close()

    def _answer(self, frame: bytes) -> bytes | None:
        header = headers.decode_request_header(frame)
        api = APIS[header.api_key]
        if api.name == "ApiVersions":
            return self._handshake(header)
        request, _ = schema.decode(api.request, header.api_version, frame, header.body_position)
        self.requests.append((api.name, header.api_version, request))
        response = self.answers[api.name](request)
        if response is None or isinstance(response, bytes):
            return response
        return b"".join(
            headers.encode_response_parts(header.correlation_id, response, header.api_version)
        )

    def _handshake(self, header: headers.RequestHeader) -> bytes:
        self.requests.append(("ApiVersions", header.api_version, None))
        lowest, highest = self.versions[18]
        is_known = lowest <= header.api_version <= highest
        response = ApiVersionsResponse(
            error_code=0 if is_known else 35,
            api_keys=[
                ApiVersion(api_key=key, min_version=low, max_version=high)
                for key, (low, high) in self.versions.items()
            ],
        )
        version = header.api_version if is_known else 0
        return b"".join(headers.encode_response_parts(header.correlation_id, response, version))


def _read_frame(stream: BinaryIO) -> bytes | None:
    prefix = stream.read(4)
    if len(prefix) < 4:
        return None
    return stream.read(struct.unpack(">i", prefix)[0])


@pytest.fixture
def new_broker() -> Iterator[Callable[..., ScriptedBroker]]:
    """Yield a function that creates scripted brokers, which are closed after the test."""
    scripted_brokers: list[ScriptedBroker] = []

    def make(*words: Any, **named: Any) -> ScriptedBroker:
        scripted_brokers.append(ScriptedBroker(*words, **named))
        return scripted_brokers[-1]

    yield make
    for broker in scripted_brokers:
        broker.close()


@pytest.fixture
def broker(new_broker: Callable[..., ScriptedBroker]) -> ScriptedBroker:
    """Return one scripted broker."""
    return new_broker()


@pytest.fixture
def silent_port() -> Iterator[Address]:
    """Yield the address of a listener that accepts and never sends anything."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield Address("127.0.0.1", listener.getsockname()[1])


@pytest.fixture
def free_port() -> Address:
    """Return an address on which no process listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return Address("127.0.0.1", listener.getsockname()[1])
