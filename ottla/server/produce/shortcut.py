"""The short way of a produce request that differs from an earlier one only in its records.

A producer that fills one partition at a time (librdkafka always does) repeats everything before the
records: acks, time-out, topic, partition. What those bytes mean is remembered by their content, and
the answer is a ready-made packing. This is a third of the broker's time for a small request.

Whatever is unusual goes the long way through decoder and handler: more than one partition, tagged
fields, transactions, an answer that has to wait, any error. Nothing is appended before that is known.
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

# Compact sizes: the same layout since then, but for the topic's id.
_FIRST_FLEXIBLE_VERSION = 9
_FIRST_VERSION_WITH_TOPIC_IDS = 13
# Behind the transactional id (null), acks, the time-out and the count of topics: the size of the name.
_NAME_SIZE_POSITION = 8
# Up to the records without the name: those, the count of partitions, the index; size of a topic id.
_FIXED_BYTES = 13
_TOPIC_ID_BYTES = 16
# Behind the records: no tagged fields of the partition, the topic, the request.
_TAIL_BYTES = 3
_SMALLEST_BYTES = _FIXED_BYTES + HEADER_SIZE + _TAIL_BYTES
# Low byte of the batch's attributes.
_ATTRIBUTES_POSITION = 22
_KNOWN_MAX = 10_000
# Stands for the three numbers of an answer that vary, while its other bytes are found out.
_OFFSETS = struct.Struct(">qqq")
_PLACEHOLDER = (0x6F74746C_61000001, 0x6F74746C_61000002, 0x6F74746C_61000003)


class ProduceBroker(Protocol):
    """The parts of a broker that the short path of a produce needs."""

    replicas: Replicas


class _Known(NamedTuple):
    """What the bytes before the records mean, and how to answer."""

    # Weak: what is deleted must go. A replica that was replaced leads nothing any more.
    find: Callable[[], Partition | None]
    acks: int
    # From the size, correlation id, `before`, three offsets and `after` to the whole answer.
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
        # Up to the size of the records, without the name.
        self._fixed_bytes = _FIXED_BYTES + (_TOPIC_ID_BYTES if self._has_topic_ids else 0)
        self._encode = encode
        self._known: dict[bytes, _Known] = {}

    def answer(
        self, connection: Connection, frame: memoryview, position: int, correlation_id: int
    ) -> bool:
        """Append and send the answer with its header; False has done nothing.

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
        # Two bytes tell the size of nearly every batch.
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
        if not target.acknowledges_at_once(acks):
            return False
        try:
            info = target.append_as_leader(records, acks=acks)
        except ApiError:
            # The same once more, to be told in full.
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
        """Remember a request that went the long way, if the next of its kind need not."""
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


def _with_placeholder(response: ProduceResponse) -> ProduceResponse:
    """Return the answer with numbers that can be found again in its bytes."""
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
