"""A fast path for produce requests that differ from an earlier request only in their records.

A producer that fills one partition at a time (librdkafka always does) repeats all bytes before the
records: acks, timeout, topic, partition. The decoded meaning of those bytes is cached by their
content, and the response is a template filled with numbers, in every version.

All other requests use the decoder and the handler: more than one partition, tagged fields,
transactions, any error. Nothing is appended until the fast path is known to apply. Whether a batch
is accepted, and when it is acknowledged, is decided by the partition, as for the handler.
"""

import struct
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ottla.base.errors import ApiError, ErrorCode
from ottla.net.connection import Connection, Reply
from ottla.net.receiving import PREFIX_BYTES
from ottla.replication.acknowledgement import AwaitedAcknowledgement
from ottla.replication.partition import ACKS_ALL, Partition
from ottla.server.produce.admission import ProduceBroker
from ottla.server.produce.appending import FIRST_VERSION_WITH_ZSTD, settle
from ottla.server.shortcuts import RouteParts, weak_target
from ottla.storage.log.validation import AppendInfo
from ottla.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from ottla.wire.primitives import uvarint
from ottla.wire.records.batch import (
    COMPRESSION_MASK,
    HEADER_SIZE,
    LOW_ATTRIBUTES_POSITION,
    TRANSACTIONAL_BIT,
)
from ottla.wire.records.compression import ZSTD
from ottla.wire.templates import Fill, ProduceLayout, produce_template

_KNOWN_MAX = 10_000
_INT32 = struct.Struct(">i")


class _Known(NamedTuple):
    """The meaning of the bytes before the records, and the template of the response."""

    # A weak reference. A replica that was replaced is no leader any more.
    find: Callable[[], Partition | None]
    acks: int
    timeout_seconds: float
    fill: Fill
    topic: str
    topic_id: bytes
    partition: int


class ProduceShortcut:
    """The requests that have been seen in one version of Produce."""

    def __init__(self, broker: ProduceBroker, version: int, parts: RouteParts) -> None:
        self._broker = broker
        self._layout = ProduceLayout(version)
        layout = self._layout
        sizes = (layout.fixed_bytes, layout.name_size_position, layout.tail_bytes)
        self._shape = (*sizes, layout.has_topic_ids, layout.is_flexible)
        self._refuses_zstd = version < FIRST_VERSION_WITH_ZSTD
        self._bytes_min = layout.fixed_bytes + HEADER_SIZE + layout.tail_bytes
        self._encode, self._probe = parts.encode, parts.probe
        self._may = parts.may
        self._known: dict[bytes, _Known] = {}

    def answer(
        self,
        connection: Connection,
        frame: memoryview,
        position: int,
        correlation_id: int,
        started_at: float,
    ) -> bool:
        """Append the records and send the response with its header; False if nothing was done.

        `position` is where the request's body begins in the frame.
        """
        fixed_bytes, name_size_position, tail_bytes, has_topic_ids, is_flexible = self._shape
        end = len(frame) - tail_bytes
        if end - position < self._bytes_min:
            return False
        start = position + fixed_bytes
        if not has_topic_ids:
            start += frame[position + name_size_position]
        known = self._known.get(frame[position:start].tobytes())
        if known is None or end <= start + 1:
            return False
        first_byte = frame[start]
        if not is_flexible:
            (size,) = _INT32.unpack_from(frame, start)
            start += 4
        elif frame[end] or frame[end + 1] or frame[end + 2]:
            return False
        elif first_byte > 127 and (second_byte := frame[start + 1]) < 128:
            # Two bytes are enough for the size of nearly every batch.
            size = first_byte + (second_byte << 7) - 129
            start += 2
        else:
            size, start = uvarint(frame, start)
            size -= 1
        if not end - start == size >= HEADER_SIZE:
            return False
        records = frame[start:end]
        find, acks, timeout_seconds, fill, _, _, _ = known
        target = find()
        attributes = records[LOW_ATTRIBUTES_POSITION]
        if (
            target is None
            or attributes & TRANSACTIONAL_BIT
            or (self._refuses_zstd and attributes & COMPRESSION_MASK == ZSTD)
            or (self._may is not None and not self._may(connection, target.topic))
        ):
            return False
        try:
            info = target.append_as_leader(records, acks=acks)
        except ApiError:
            # The handler refuses the batch again and reports the whole error.
            return False
        base_offset, last_offset, append_time_ms, log_start_offset, _, _, _, _ = info
        if target.is_awaited(acks, last_offset + 1):
            respond = self._later(connection, correlation_id, known, info, started_at)
            delayed, seconds = self._broker.replicas.delayed, max(timeout_seconds, 0.0)
            AwaitedAcknowledgement(target, delayed, acks, last_offset + 1, seconds, respond)
            return True
        connection.send_framed(fill(correlation_id, base_offset, append_time_ms, log_start_offset))
        if started_at:
            self._probe.took(started_at, self._broker.clock.monotonic())
        return True

    def _later(
        self,
        connection: Connection,
        correlation_id: int,
        known: _Known,
        info: AppendInfo,
        started_at: float,
    ) -> Callable[[ErrorCode], None]:
        """Return the function that responds when the records are acknowledged.

        Later requests need not wait for that.
        """
        reply = connection.defer(is_blocking=False)
        times = (started_at, self._broker.clock.monotonic()) if started_at else None
        return partial(self._respond, reply, correlation_id, known, info, times)

    def _respond(
        self,
        reply: Reply,
        correlation_id: int,
        known: _Known,
        info: AppendInfo,
        times: tuple[float, float] | None,
        code: ErrorCode,
    ) -> None:
        numbers = info.base_offset, info.log_append_time_ms, info.log_start_offset
        if not code:
            reply.send((known.fill(correlation_id, *numbers)[PREFIX_BYTES:],))
        else:
            partition_response = PartitionProduceResponse(
                index=known.partition,
                base_offset=info.base_offset,
                log_append_time_ms=info.log_append_time_ms,
                log_start_offset=info.log_start_offset,
            )
            settle(partition_response, code)
            topic = TopicProduceResponse(
                name=known.topic, topic_id=known.topic_id, partition_responses=[partition_response]
            )
            response = ProduceResponse(responses=[topic])
            reply.send(self._encode(response, correlation_id))
            self._probe.count_errors(response)
        if times is not None:
            self._probe.waited(*times, self._broker.clock.monotonic())

    def learn(
        self,
        frame: memoryview,
        position: int,
        request: ProduceRequest,
        response: ProduceResponse | None,
    ) -> None:
        """Remember a decoded request if requests like it can use the fast path.

        There is no response yet if the batch is written and its acknowledgement is awaited.
        """
        topics = request.topic_data
        if len(topics) != 1 or len(topics[0].partition_data) != 1:
            return
        if response is not None and response.responses[0].partition_responses[0].error_code:
            return
        if request.transactional_id is not None or request.acks not in (1, ACKS_ALL):
            return
        key = self._layout.key_of(frame, position, request)
        if key is None:
            return
        topic, index = topics[0], topics[0].partition_data[0].index
        target = self._broker.replicas.find(topic.name, topic.topic_id, index)
        former = self._known.get(key)
        if target is None or (former is not None and former.find() is target):
            return
        if len(self._known) >= _KNOWN_MAX:
            self._known.clear()
        self._known[key] = _Known(
            weak_target(target, self._known, key),
            request.acks,
            request.timeout_ms / 1000,
            produce_template(topic.name, topic.topic_id, index, self._encode),
            topic.name,
            topic.topic_id,
            index,
        )
