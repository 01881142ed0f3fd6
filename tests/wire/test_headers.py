"""Headers of requests and responses."""

import struct

import pytest
from kafka.protocol.api_header import RequestHeader as KafkaPythonHeader

from ottla.base.errors import ProtocolError
from ottla.wire import headers, schema
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.produce import ProduceRequest


@pytest.mark.parametrize("client_id", [None, "", "client", "ünïcode"])
@pytest.mark.parametrize("version", [3, 4])
def test_request_header_round_trips(version: int, client_id: str | None) -> None:
    """Both header versions, with and without a client id, are decoded as they were encoded."""
    frame = headers.encode_request(HeartbeatRequest(group_id="g"), version, 77, client_id)
    header = headers.decode_request_header(memoryview(frame))
    assert header[:4] == (12, version, 77, client_id)
    body, _ = schema.decode(HeartbeatRequest, version, frame, header.body_position)
    assert body.group_id == "g"


@pytest.mark.parametrize(("version", "flexible"), [(3, False), (4, True)])
def test_request_header_has_the_bytes_of_kafka_python(version: int, flexible: bool) -> None:
    """The bytes before the body are the same as in kafka-python."""
    foreign = KafkaPythonHeader(
        request_api_key=12, request_api_version=version, correlation_id=5, client_id="c"
    ).encode(flexible=flexible)
    frame = headers.encode_request(HeartbeatRequest(), version, 5, "c")
    assert frame.startswith(bytes(foreign))
    assert headers.decode_request_header(frame).body_position == len(foreign)


def test_request_header_starts_anywhere_in_a_buffer() -> None:
    """`position` is the start of the frame; `body_position` counts from the buffer's start."""
    frame = headers.encode_request(HeartbeatRequest(), 0, 5, "c")
    assert headers.decode_request_header(b"xyz" + frame, 3) == (12, 0, 5, "c", 3 + 11)


def test_tags_in_a_flexible_request_header_are_skipped() -> None:
    """Tagged fields are skipped, although no client sends any yet."""
    frame = struct.pack(">hhih", 12, 4, 5, -1) + bytes.fromhex("01 03 02 ffff") + b"body"
    header = headers.decode_request_header(frame)
    assert frame[header.body_position :] == b"body"


def test_header_of_an_unknown_api_is_read_up_to_the_client_id() -> None:
    """The server must be able to log the unknown key."""
    frame = struct.pack(">hhih", 999, 0, 5, 1) + b"c"
    assert headers.decode_request_header(frame) == (999, 0, 5, "c", 11)


def test_header_of_a_future_api_versions_request_is_read() -> None:
    """A client may send a future version; the response has version 0."""
    frame = struct.pack(">hhih", 18, 42, 5, 1) + b"c\0"
    assert headers.decode_request_header(frame) == (18, 42, 5, "c", 12)


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        bytes(9),
        struct.pack(">hhih", 12, 0, 5, 9) + b"short",
        bytes.fromhex("000c0004000000050001ff"),
    ],
)
def test_broken_request_headers_are_rejected(frame: bytes) -> None:
    """Headers that are too short, or whose client id is too long or not text, are rejected."""
    with pytest.raises(ProtocolError):
        headers.decode_request_header(frame)


def test_every_truncated_flexible_header_is_rejected() -> None:
    """A truncation in the middle of tagged fields is rejected, too."""
    frame = struct.pack(">hhih", 12, 4, 5, 1) + b"c" + bytes.fromhex("02 03 02 ffff 04 01 00")
    for size in range(len(frame)):
        with pytest.raises(ProtocolError):
            headers.decode_request_header(frame[:size])


def test_response_header_is_flexible_with_the_message() -> None:
    """A flexible response has tagged fields after its correlation id."""
    old = b"".join(headers.encode_response_parts(5, HeartbeatResponse(error_code=27), 3))
    new = b"".join(headers.encode_response_parts(5, HeartbeatResponse(error_code=27), 4))
    assert old == bytes.fromhex("00000005 00000000 001b")
    assert new == bytes.fromhex("00000005 00 00000000 001b 00")
    assert headers.decode_response(HeartbeatResponse, 3, old) == (
        5,
        HeartbeatResponse(error_code=27),
    )
    assert headers.decode_response(HeartbeatResponse, 4, new) == (
        5,
        HeartbeatResponse(error_code=27),
    )


def test_response_header_of_api_versions_is_never_flexible() -> None:
    """A client reads it before it knows the versions of the broker."""
    data = b"".join(headers.encode_response_parts(5, ApiVersionsResponse(), 3))
    assert data.startswith(bytes.fromhex("00000005 0000 01"))
    assert headers.decode_response(ApiVersionsResponse, 3, data) == (5, ApiVersionsResponse())


def test_request_header_of_api_versions_is_flexible() -> None:
    """Only the response is special."""
    frame = headers.encode_request(ApiVersionsRequest(), 3, 5, None)
    assert frame == bytes.fromhex("0012 0003 00000005 ffff 00 01 01 00")


def test_response_parts_keep_record_buffers_apart() -> None:
    """The header is in the first small buffer, and batches are not copied."""
    batch = bytearray(b"batch")
    partition = PartitionData(records=batch)
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])
    first, second, _ = headers.encode_response_parts(9, response, 12)
    assert bytes(first).startswith(bytes.fromhex("00000009 00"))
    assert second is batch


def test_request_without_records_is_one_buffer() -> None:
    """A request without batches can be sent as one buffer."""
    (frame,) = headers.encode_request_parts(HeartbeatRequest(), 0, 1, None)
    assert headers.encode_request(HeartbeatRequest(), 0, 1, None) == frame
    assert len(headers.encode_request_parts(ProduceRequest(), 9, 1, None)) == 1


@pytest.mark.parametrize(
    "data", [b"", b"\0\0\0", bytes.fromhex("00000005"), bytes.fromhex("00000005 01")]
)
def test_broken_response_headers_are_rejected(data: bytes) -> None:
    """Headers that are too short for a correlation id, or for its tagged fields, are rejected."""
    with pytest.raises(ProtocolError):
        headers.decode_response(HeartbeatResponse, 4, data)
