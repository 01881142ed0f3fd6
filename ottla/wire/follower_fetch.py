"""Fetches of one partition between brokers, in one step of packing and one of unpacking.

A follower in a session names the partitions to which it has appended since its last request. While
records arrive one at a time, that is one partition, and the request and its response have only
fields of fixed size around the records. Versions 15 to 17 have the same layout; every other form of
a request or response is for the codec. No decision about a request is made here.
"""

import struct
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ottla.base.buffers import Buffer, Part
from ottla.base.errors import ProtocolError
from ottla.wire.primitives import encode_uvarint, uvarint

FIRST_VERSION, LAST_VERSION = 15, 17

# One topic with one partition; no tagged fields of either, no forgotten topics, no rack; the tagged
# field 1 of 13 bytes, which is the state of the replica.
_ONE = b"\2"
_BEHIND_PARTITION = b"\0\0\1\1\1\1\x0d"
_END = b"\0"
_REQUEST = struct.Struct(">iiibiis16ssiiqiqi7siqs")
# The header without tagged fields, no throttle time, no error; no aborted transactions, no
# preferred replica.
_RESPONSE = struct.Struct(">iBihis16ssihqqqBi")
_NO_ABORTED = 1
_NO_REPLICA = -1
# No tagged fields of the partition, the topic and the response.
_RESPONSE_END = b"\0\0\0"


class FollowerPosition(NamedTuple):
    """A request of a follower for one partition, in the order of its fields."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    session_id: int
    session_epoch: int
    topic_id: bytes
    partition: int
    leader_epoch: int
    offset: int
    last_fetched_epoch: int
    log_start_offset: int
    partition_max_bytes: int
    replica: int
    broker_epoch: int


class LeaderRecords(NamedTuple):
    """A response without errors that has records of one partition, in the order of its fields."""

    session_id: int
    topic_id: bytes
    partition: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    records: memoryview


# Built from one tuple: the class's own constructor takes twice as long.
_new_position: Callable[[tuple[object, ...]], FollowerPosition] = partial(
    tuple.__new__, FollowerPosition
)


def read_request(frame: Buffer, position: int) -> FollowerPosition | None:
    """Return the request whose body begins at `position`; None if it is for the codec."""
    if len(frame) - position != _REQUEST.size:
        return None
    (
        max_wait_ms, min_bytes, max_bytes, isolation, session_id, epoch, topics_count, topic_id,
        partitions_count, number, leader_epoch, offset, last_epoch, start, size, behind, replica,
        broker_epoch, end,
    ) = _REQUEST.unpack_from(frame, position)  # fmt: skip
    if (
        behind != _BEHIND_PARTITION
        or topics_count != _ONE
        or partitions_count != _ONE
        or end != _END
        or isolation
    ):
        return None
    return _new_position(
        (
            max_wait_ms, min_bytes, max_bytes, session_id, epoch, topic_id, number, leader_epoch,
            offset, last_epoch, start, size, replica, broker_epoch,
        )
    )  # fmt: skip


def request_body(position: FollowerPosition) -> bytes:
    """Return the body of a request."""
    (
        max_wait_ms, min_bytes, max_bytes, session_id, epoch, topic_id, number, leader_epoch,
        offset, last_epoch, start, size, replica, broker_epoch,
    ) = position  # fmt: skip
    return _REQUEST.pack(
        max_wait_ms, min_bytes, max_bytes, 0, session_id, epoch, _ONE, topic_id, _ONE, number,
        leader_epoch, offset, last_epoch, start, size, _BEHIND_PARTITION, replica, broker_epoch,
        _END,
    )  # fmt: skip


def response_parts(
    correlation_id: int,
    session_id: int,
    topic_id: bytes,
    partition: int,
    offsets: tuple[int, int],
    records: Part,
) -> tuple[Buffer, Part, Buffer]:
    """Return a response with its header; `offsets` are high watermark and log start offset.

    Followers read up to the end of the log, so the last stable offset is the high watermark.
    """
    high_watermark, log_start_offset = offsets
    head = _RESPONSE.pack(
        correlation_id, 0, 0, 0, session_id, _ONE, topic_id, _ONE, partition, 0, high_watermark,
        high_watermark, log_start_offset, _NO_ABORTED, _NO_REPLICA,
    )  # fmt: skip
    return head + encode_uvarint(len(records) + 1), records, _RESPONSE_END


def read_response(frame: memoryview) -> tuple[int, LeaderRecords] | None:
    """Return correlation id and response; None if it is for the codec.

    The codec decodes a response without records, with several partitions, or with an error.
    """
    end = len(frame) - len(_RESPONSE_END)
    if end <= _RESPONSE.size or frame[end:] != _RESPONSE_END:
        return None
    (
        correlation_id, tags, throttle_ms, error, session_id, topics_count, topic_id,
        partitions_count, number, partition_error, high_watermark, stable_offset, start, aborted,
        preferred,
    ) = _RESPONSE.unpack_from(frame)  # fmt: skip
    if (
        tags
        or throttle_ms
        or error
        or partition_error
        or topics_count != _ONE
        or partitions_count != _ONE
        or aborted != _NO_ABORTED
        or preferred != _NO_REPLICA
    ):
        return None
    try:
        size, at = uvarint(frame, _RESPONSE.size)
    except (ProtocolError, IndexError):
        return None
    if size <= 1 or at + size - 1 != end:
        return None
    records = LeaderRecords(
        session_id, topic_id, number, high_watermark, stable_offset, start, frame[at:end]
    )
    return correlation_id, records
