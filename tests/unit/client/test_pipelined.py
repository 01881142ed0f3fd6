"""Pipelined requests: responses in order, failures reported, no request hangs."""

import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

import pytest

from ottla.base.errors import ProtocolError
from ottla.client.bootstrap import Address
from ottla.client.errors import NotReachable, TimedOut
from ottla.client.pipelined import PipelinedConnection
from ottla.wire.messages.api_versions import ApiVersionsResponse
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)


def _open(broker: Any, timeout_s: float = 5.0) -> PipelinedConnection:
    return PipelinedConnection(broker.address, client_id="test", timeout_s=timeout_s)


def test_responses_arrive_in_the_order_of_the_requests(broker: Any) -> None:
    """Several requests are in flight, and each response belongs to the oldest of them."""
    broker.answers["FindCoordinator"] = lambda request: FindCoordinatorResponse(host=request.key)
    connection = _open(broker)
    for key in ("a", "b", "c"):
        connection.send(FindCoordinatorRequest(key=key), max_version=3)
    assert connection.in_flight == 3
    assert [connection.receive(FindCoordinatorResponse).host for _ in range(3)] == ["a", "b", "c"]
    assert connection.in_flight == 0
    connection.close()


def test_request_of_many_large_parts_is_sent(broker: Any) -> None:
    """Record bytes are sent without a copy, however many buffers and bytes there are."""
    received: list[bytes] = []

    def answer(request: Any) -> ProduceResponse:
        received.append(bytes(request.topic_data[0].partition_data[0].records))
        return ProduceResponse()

    broker.answers["Produce"] = answer
    parts = [bytes([number % 256]) * 2000 for number in range(3000)]
    data = PartitionProduceData(index=0, records=list(parts))
    topic = TopicProduceData(name="t", partition_data=[data])
    connection = _open(broker)
    connection.send(ProduceRequest(acks=1, topic_data=[topic]), max_version=12)
    connection.receive(ProduceResponse)
    assert received == [b"".join(parts)]
    connection.close()


def test_broker_that_disconnects_is_not_reachable(broker: Any) -> None:
    """The connection stays closed."""
    broker.answers["FindCoordinator"] = lambda request: None
    connection = _open(broker)
    connection.send(FindCoordinatorRequest(key="a"), max_version=3)
    with pytest.raises(NotReachable):
        connection.receive(FindCoordinatorResponse)
    assert not connection.is_open
    assert connection.in_flight == 0
    with pytest.raises(NotReachable, match="is closed"):
        connection.send(FindCoordinatorRequest(key="a"), max_version=3)


def test_broker_without_a_handshake_times_out(
    silent_port: Address,
) -> None:
    """The writer or reader then retries."""
    with pytest.raises(TimedOut):
        PipelinedConnection(silent_port, client_id="test", timeout_s=0.1)


def test_missing_response_times_out(broker: Any) -> None:
    """A broker that does not respond in time is disconnected."""
    done = threading.Event()
    broker.answers["FindCoordinator"] = lambda request: done.wait() and None
    connection = _open(broker)
    connection.send(FindCoordinatorRequest(key="a"), max_version=3)
    with pytest.raises(TimedOut):
        connection.receive(FindCoordinatorResponse, timeout_s=0.05)
    assert not connection.is_open
    done.set()


def _answer_once(frame: bytes) -> tuple[Address, Callable[[], None]]:
    """Run a broker that completes the handshake, and then responds to everything with `frame`."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        opened, _ = listener.accept()
        with opened, listener:
            opened.recv(4096)
            # ApiVersions v0: correlation id 1, no error, FindCoordinator 0 to 3.
            opened.sendall(struct.pack(">iihihhh", 16, 1, 0, 1, 10, 0, 3))
            opened.recv(4096)
            opened.sendall(frame)
            opened.recv(4096)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return Address("127.0.0.1", listener.getsockname()[1]), thread.join


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(struct.pack(">i", -5), id="negative size"),
        pytest.param(struct.pack(">i", 1 << 30), id="impossible size"),
        pytest.param(struct.pack(">ii", 4, 99), id="another correlation id"),
        pytest.param(struct.pack(">ii", 4, 2), id="cut short"),
        pytest.param(struct.pack(">ih", 2, 0), id="shorter than its header"),
    ],
)
def test_invalid_responses_close_the_connection(
    frame: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes that are no response are not used."""
    monkeypatch.setattr("ottla.client.connection._HANDSHAKE_VERSION", 0)
    assert ApiVersionsResponse.MIN_VERSION == 0
    address, join = _answer_once(frame)
    connection = PipelinedConnection(address, client_id="test", timeout_s=5.0)
    connection.send(FindCoordinatorRequest(key="a"), max_version=3)
    with pytest.raises(ProtocolError):
        connection.receive(FindCoordinatorResponse)
    assert not connection.is_open
    join()
