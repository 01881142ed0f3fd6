"""The short way of a produce request that differs from an earlier one only in its records.

A producer that fills one partition at a time (librdkafka always does) repeats everything before the
records: acks, time-out, topic, partition. What those bytes mean is remembered by their content, and
the answer is a ready-made packing. This is a third of the broker's time for a small request.

Whatever is unusual goes the long way through decoder and handler: more than one partition, tagged
fields, transactions, an answer that has to wait, any error. Nothing is appended before that is known.
"""

import struct
from collections.abc import Callable
from typing import NamedTuple

from ottla.base.errors import ApiError
from ottla.net.connection import Connection
from ottla.replication.partition import ACKS_ALL, Partition
from ottla.server.context import Broker
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
_TAIL = b"\0\0\0"
_SMALLEST_BYTES = _FIXED_BYTES + HEADER_SIZE + len(_TAIL)
# Low byte of the batch's attributes.
_ATTRIBUTES_POSITION = 22
_KNOWN_MAX = 10_000
# Stands for the three numbers of an answer that vary, while its other bytes are found out.
_OFFSETS = struct.Struct(">qqq")
_PLACEHOLDER = (0x6F74746C_61000001, 0x6F74746C_61000002, 0x6F74746C_61000003)


class _Known(NamedTuple):
    """What the bytes before the records mean, and how to answer."""

    find: Callable[..., Partition]
    topic: str | bytes
    partition: int
    acks: int
    # From correlation id, `before`, three offsets and `after` to the whole answer.
    pack: Callable[..., bytes]
    before: bytes
    after: bytes


class ProduceShortcut:
    """The requests that have been seen in one version of Produce."""

    def __init__(
        self, broker: Broker, version: int, encode: Callable[[ProduceResponse], bytes]
    ) -> None:
        self._replicas = broker.replicas
        self._is_served = version >= _FIRST_FLEXIBLE_VERSION
        self._has_topic_ids = version >= _FIRST_VERSION_WITH_TOPIC_IDS
        self._encode = encode
        self._known: dict[bytes, _Known] = {}

    def answer(
        self, connection: Connection, frame: memoryview, position: int, correlation_id: int
    ) -> bool:
        """Append and send the answer with its header; False has done nothing.

        `position` is where the request's body begins in the frame.
        """
        end = len(frame) - len(_TAIL)
        if end - position < _SMALLEST_BYTES:
            return False
        start = self._records_size_position(frame, position)
        known = self._known.get(frame[position:start].tobytes())
        if known is None or end - start < HEADER_SIZE or frame[end:] != _TAIL:
            return False
        size, start = uvarint(frame, start)
        records = frame[start:end]
        if len(records) != size - 1 or records[_ATTRIBUTES_POSITION] & TRANSACTIONAL_BIT:
            return False
        acks = known.acks
        try:
            target = known.find(known.topic, known.partition)
            if not target.acknowledges_at_once(acks):
                return False
            info = target.append_as_leader(records, acks=acks)
        except ApiError:
            # The same once more, to be told in full.
            return False
        connection.send_one(
            known.pack(
                correlation_id,
                known.before,
                info.base_offset,
                info.log_append_time_ms,
                info.log_start_offset,
                known.after,
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
        start = self._records_size_position(frame, position)
        if start >= len(frame) or frame[start - 4 : start] != item.index.to_bytes(4, "big"):
            return
        before, after = self._encode(_with_placeholder(response)).split(
            _OFFSETS.pack(*_PLACEHOLDER)
        )
        if len(self._known) >= _KNOWN_MAX:
            self._known.clear()
        replicas = self._replicas
        self._known[frame[position:start].tobytes()] = _Known(
            replicas.get_by_id if self._has_topic_ids else replicas.get,
            topic.topic_id if self._has_topic_ids else topic.name,
            item.index,
            request.acks,
            struct.Struct(f">ix{len(before)}sqqq{len(after)}s").pack,
            before,
            after,
        )

    def _records_size_position(self, frame: memoryview, position: int) -> int:
        """Return where the size of the records is if the request has the usual layout."""
        if self._has_topic_ids:
            return position + _FIXED_BYTES + _TOPIC_ID_BYTES
        return position + _FIXED_BYTES + frame[position + _NAME_SIZE_POSITION]


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
