"""A fast path for produce requests that differ from an earlier request only in their records.

A producer that fills one partition at a time (librdkafka always does) repeats all bytes before the
records: acks, timeout, topic, partition. The decoded meaning of those bytes is cached by their
content, and the response is packed in a single call. For small requests this saves a third of the
broker's time.

All other requests use the decoder and the handler: more than one partition, tagged fields,
transactions, a response that has to wait, any error. Nothing is appended until the fast path is
known to apply.
"""

import struct
import weakref
from collections.abc import Callable
from typing import NamedTuple, Protocol

from ottla.base.errors import ApiError
from ottla.net.connection import PREFIX_BYTES, Connection
from ottla.replication.partition import ACKS_ALL, Partition
from ottla.replication.replicas import Replicas
from ottla.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from ottla.wire.primitives import uvarint
from ottla.wire.records.batch import HEADER_SIZE, TRANSACTIONAL_BIT

# First version with compact sizes: the layout has not changed since, except for the topic's id.
_FIRST_FLEXIBLE_VERSION = 9
_FIRST_VERSION_WITH_TOPIC_IDS = 13
# After the transactional id (null), acks, the timeout and the number of topics: the size of the
# name.
_NAME_SIZE_POSITION = 8
# The fields up to the records without the name: the ones above, the number of partitions, the
# index; size of a topic id.
_FIXED_BYTES = 13
_TOPIC_ID_BYTES = 16
# After the records: no tagged fields of the partition, the topic, the request.
_TAIL_BYTES = 3
_SMALLEST_BYTES = _FIXED_BYTES + HEADER_SIZE + _TAIL_BYTES
# Position of the low byte of the batch's attributes.
_ATTRIBUTES_POSITION = 22
_KNOWN_MAX = 10_000
# Placeholder for the three numbers of a response that vary, used to find the other bytes.
_OFFSETS = struct.Struct(">qqq")
_PLACEHOLDER = (0x6F74746C_61000001, 0x6F74746C_61000002, 0x6F74746C_61000003)


class ProduceBroker(Protocol):
    """The parts of a broker that the fast path for produce requests needs."""

    replicas: Replicas


class _Known(NamedTuple):
    """The meaning of the bytes before the records, and the layout of the response."""

    # A weak reference, because a deleted partition must be freed. A replica that was replaced is no
    # leader any more.
    find: Callable[[], Partition | None]
    acks: int
    # Packs size, correlation id, `before`, three offsets and `after` into the whole response.
    pack: Callable[..., bytes]
    size_bytes: int
    before: bytes
    after: bytes


class ProduceShortcut:
    """The requests that have been seen in one version of Produce."""

    def __init__(
        self, broker: ProduceBroker, version: int, encode: Callable[[ProduceResponse], bytes]
    ) -> None:
        self._replicas = broker.replicas
        self._is_served = version >= _FIRST_FLEXIBLE_VERSION
        self._has_topic_ids = version >= _FIRST_VERSION_WITH_TOPIC_IDS
        # Size of the request up to the size of the records, without the name.
        self._fixed_bytes = _FIXED_BYTES + (_TOPIC_ID_BYTES if self._has_topic_ids else 0)
        self._encode = encode
        self._known: dict[bytes, _Known] = {}

    def answer(
        self, connection: Connection, frame: memoryview, position: int, correlation_id: int
    ) -> bool:
        """Append the records and send the response with its header; False if nothing was done.

        `position` is where the request's body begins in the frame.
        """
        end = len(frame) - _TAIL_BYTES
        if end - position < _SMALLEST_BYTES:
            return False
        start = position + self._fixed_bytes
        if not self._has_topic_ids:
            start += frame[position + _NAME_SIZE_POSITION]
        known = self._known.get(frame[position:start].tobytes())
        if known is None or end - start < HEADER_SIZE:
            return False
        find, acks, pack, size_bytes, before, after = known
        # Two bytes are enough for the size of nearly every batch.
        if frame[start] > 127 and frame[start + 1] < 128:
            size = frame[start] + (frame[start + 1] << 7) - 128
            start += 2
        else:
            size, start = uvarint(frame, start)
        has_tags = frame[end] or frame[end + 1] or frame[end + 2]
        if end - start != size - 1 or has_tags:
            return False
        records = frame[start:end]
        target = find()
        if target is None or records[_ATTRIBUTES_POSITION] & TRANSACTIONAL_BIT:
            return False
        if not _acknowledges_at_once(target, acks):
            return False
        try:
            info = target.append_as_leader(records, acks=acks)
        except ApiError:
            # The handler refuses the batch again and reports the whole error.
            return False
        base_offset, _, append_time_ms, log_start_offset, _, _, _, _ = info
        connection.send_framed(
            pack(
                size_bytes,
                correlation_id,
                before,
                base_offset,
                append_time_ms,
                log_start_offset,
                after,
            )
        )
        return True

    def learn(
        self, frame: memoryview, position: int, request: ProduceRequest, response: ProduceResponse
    ) -> None:
        """Remember a decoded request if requests like it can use the fast path."""
        topics = request.topic_data
        if len(topics) != 1 or len(topics[0].partition_data) != 1:
            return
        answer = response.responses[0].partition_responses[0]
        is_plain = self._is_served and request.transactional_id is None and answer.error_code == 0
        if not is_plain or request.acks not in (1, ACKS_ALL):
            return
        topic, item = topics[0], topics[0].partition_data[0]
        start = position + self._fixed_bytes
        if not self._has_topic_ids:
            start += frame[position + _NAME_SIZE_POSITION]
        if start >= len(frame) or frame[start - 4 : start] != item.index.to_bytes(4, "big"):
            return
        if self._has_topic_ids:
            target = self._replicas.get_by_id(topic.topic_id, item.index)
        else:
            target = self._replicas.get(topic.name, item.index)
        before, after = self._encode(_with_placeholder(response)).split(
            _OFFSETS.pack(*_PLACEHOLDER)
        )
        if len(self._known) >= _KNOWN_MAX:
            self._known.clear()
        layout = struct.Struct(f">iix{len(before)}sqqq{len(after)}s")
        self._known[frame[position:start].tobytes()] = _Known(
            weakref.ref(target),
            request.acks,
            layout.pack,
            layout.size - PREFIX_BYTES,
            before,
            after,
        )


def _acknowledges_at_once(target: Partition, acks: int) -> bool:
    """Return True if an append is acknowledged as soon as it returns."""
    isr = target.isr
    if isr is None or target.log.config.flush_on_ack:
        return False
    return acks != ACKS_ALL or not isr.followers


def _with_placeholder(response: ProduceResponse) -> ProduceResponse:
    """Return the response with placeholder numbers that can be found in its bytes."""
    base_offset, log_append_time_ms, log_start_offset = _PLACEHOLDER
    topic = response.responses[0]
    answer = PartitionProduceResponse(
        index=topic.partition_responses[0].index,
        base_offset=base_offset,
        log_append_time_ms=log_append_time_ms,
        log_start_offset=log_start_offset,
    )
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name, topic_id=topic.topic_id, partition_responses=[answer]
            )
        ]
    )
