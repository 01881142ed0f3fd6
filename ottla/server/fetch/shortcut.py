"""A fast path for fetches of one partition that can be answered at once with records.

A consumer repeats its request except for offset, session epoch and sizes. The decoded meaning of
the other bytes is cached by their content, and the response is packed around the records in a
single call.

All other requests use the decoder and the handler: several partitions, forgotten ones, a session
that begins, ends or has more partitions, tagged fields, cold bytes, no data (the fetch may have to
wait), aborted transactions, any error. Nothing is changed until the fast path is known to apply.
"""

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.base.errors import ApiError
from ottla.net.connection import Connection
from ottla.replication.fetched import READ_COMMITTED, FetchOptions, enough_bytes
from ottla.replication.partition import NO_EPOCH, Partition
from ottla.server.fetch.reading import FetchBroker, bytes_max
from ottla.server.fetch.sessions import NO_EPOCH as NO_SESSION_EPOCH
from ottla.server.fetch.sessions import NO_SESSION, Key
from ottla.wire.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from ottla.wire.primitives import encode_string_size, encode_uvarint

# First version with compact sizes: the layout has not changed since, except for the ids of the
# topic and the replica.
_FIRST_FLEXIBLE_VERSION = 12
_FIRST_VERSION_WITH_TOPIC_IDS = 13
_FIRST_VERSION_WITH_REPLICA_STATE = 15
# Replica, max wait, min bytes, max bytes, isolation level, session and its epoch.
_HEAD = struct.Struct(">4s4xiibii")
_HEAD_WITHOUT_REPLICA = struct.Struct(">0s4xiibii")
_NO_REPLICA = b"\xff\xff\xff\xff"
# Number of topics and partitions, index, leader epoch; in between the topic's name or id.
_KEY_BYTES = 10
_TOPIC_ID_BYTES = 16
_ONE = b"\x02"
_PLACE = struct.Struct(">ii")
# Offset and maximum bytes; between them the last epoch and the log start offset, which only
# followers set.
_POSITION = struct.Struct(">q12xi")
_SMALLEST_BYTES = _HEAD.size + _KEY_BYTES + _POSITION.size
# No tagged fields of the partition and the topic, no forgotten topics; the rack follows.
_NOTHING_MORE = b"\0\0\x01"
_NAME_BYTES_MAX = 126
_KNOWN_MAX = 10_000
# Throttle time, error code and session id at the beginning of a response's body.
_ANSWER_HEAD_BYTES = 10
# Placeholder for the three numbers of a response that vary, used to find the other bytes.
_OFFSETS = struct.Struct(">qqq")
_PLACEHOLDER = (0x6F74746C_61000001, 0x6F74746C_61000002, 0x6F74746C_61000003)


class _Known(NamedTuple):
    """The meaning of the bytes around the offset, and the layout of the response."""

    find: Callable[..., Partition]
    topic: str | bytes
    partition: int
    leader_epoch: int
    # The key of the partition in a session.
    key: Key
    # The bytes of the request after offset and size.
    rest: bytes
    # Packs correlation id, session id, `before`, three offsets and one of `after` into the
    # response.
    pack: Callable[..., bytes]
    before: bytes
    # The bytes after the offsets, by isolation level: aborted transactions (null or none), no
    # preferred replica.
    after: tuple[bytes, bytes]
    end: bytes


class FetchShortcut:
    """The requests that have been seen in one version of Fetch."""

    def __init__(self, broker: FetchBroker, version: int, encode: Callable[..., Any]) -> None:
        self._broker = broker
        self._is_served = version >= _FIRST_FLEXIBLE_VERSION
        self._has_topic_ids = version >= _FIRST_VERSION_WITH_TOPIC_IDS
        has_replica = version < _FIRST_VERSION_WITH_REPLICA_STATE
        head = _HEAD if has_replica else _HEAD_WITHOUT_REPLICA
        self._unpack_head, self._head_bytes = head.unpack_from, head.size
        self._replica = _NO_REPLICA if has_replica else b""
        self._encode = encode
        self._known: dict[bytes, _Known] = {}

    def answer(
        self, connection: Connection, frame: memoryview, position: int, correlation_id: int
    ) -> bool:
        """Read the records and send the response with its header; False if nothing was done.

        `position` is where the request's body begins in the frame.
        """
        if len(frame) - position < _SMALLEST_BYTES:
            return False
        start = position + self._head_bytes
        at = start + _KEY_BYTES
        at += _TOPIC_ID_BYTES if self._has_topic_ids else frame[start + 1]
        known = self._known.get(frame[start:at].tobytes())
        if known is None or frame[at + _POSITION.size :] != known.rest:
            return False
        replica, min_bytes, max_bytes, isolation, session_id, epoch = self._unpack_head(
            frame, position
        )
        if replica != self._replica or not 0 <= isolation <= READ_COMMITTED:
            return False
        broker, session = self._broker, None
        if epoch != NO_SESSION_EPOCH or session_id != NO_SESSION:
            session = broker.fetch_sessions.find_single(session_id, epoch, known.key)
            if session is None:
                return False
        offset, partition_bytes_max = _POSITION.unpack_from(frame, at)
        left = bytes_max(broker, connection, max_bytes)
        options = FetchOptions(isolation, connection.range_bytes_min)
        try:
            partition = known.find(known.topic, known.partition)
            fetched = partition.fetch(
                offset,
                min(partition_bytes_max, left),
                known.leader_epoch,
                options,
                at_least_one=True,
            )
        except ApiError:
            # The handler refuses the fetch again and reports the whole error.
            return False
        records = fetched.records
        if not records or fetched.aborted or len(records) < enough_bytes(min_bytes):
            # The handler reads again.
            if records is not None:
                partition.fetches_count -= 1
                partition.take_back(fetched)
            return False
        _, high_watermark, stable_offset, log_start_offset, _, _ = fetched
        if session is not None:
            wanted = session.partitions[known.key]
            wanted.go_on(offset, partition_bytes_max, known.leader_epoch)
            wanted.tell(high_watermark, log_start_offset)
            session.due[known.key] = wanted
            broker.fetch_sessions.advance(session)
        head = known.pack(
            correlation_id,
            session_id,
            known.before,
            high_watermark,
            stable_offset,
            log_start_offset,
            known.after[isolation],
        )
        connection.send((head + encode_uvarint(len(records) + 1), records, known.end))
        return True

    def learn(
        self, frame: memoryview, position: int, request: FetchRequest, response: FetchResponse
    ) -> None:
        """Remember a decoded request if requests like it can use the fast path."""
        topics = request.topics
        if not self._is_served or response.error_code or len(topics) != 1:
            return
        topic, partitions = topics[0], topics[0].partitions
        name = topic.topic.encode()
        if len(partitions) != 1 or len(name) > _NAME_BYTES_MAX:
            return
        wanted = partitions[0]
        place = _PLACE.pack(wanted.partition, wanted.current_leader_epoch)
        told = topic.topic_id if self._has_topic_ids else encode_string_size(len(name) + 1) + name
        rack = request.rack_id.encode()
        rest = _NOTHING_MORE + encode_string_size(len(rack) + 1) + rack + b"\0"
        start = position + self._head_bytes
        usual = _ONE + told + _ONE + place
        at = start + len(usual)
        # Decoders accept several encodings of the same request; only this one is looked up.
        if frame[start:at] != usual or frame[at + _POSITION.size :] != rest:
            return
        if len(self._known) >= _KNOWN_MAX:
            self._known.clear()
        replicas = self._broker.replicas
        what = topic.topic_id if self._has_topic_ids else topic.topic
        before, after, end = self._answer_of(topic.topic, topic.topic_id, wanted.partition)
        self._known[usual] = _Known(
            replicas.get_by_id if self._has_topic_ids else replicas.get,
            what,
            wanted.partition,
            max(wanted.current_leader_epoch, NO_EPOCH),
            (what, wanted.partition),
            rest,
            struct.Struct(f">ix6xi{len(before)}sqqq{len(after[0])}s").pack,
            before,
            after,
            end,
        )

    def _answer_of(
        self, topic: str, topic_id: bytes, partition: int
    ) -> tuple[bytes, tuple[bytes, bytes], bytes]:
        """Return the bytes around the numbers and the records of a response."""
        high_watermark, stable_offset, log_start_offset = _PLACEHOLDER
        before, after, end = b"", [], b""
        lists: tuple[list[AbortedTransaction] | None, ...] = (None, [])
        for aborted in lists:
            answer = PartitionData(
                partition_index=partition,
                high_watermark=high_watermark,
                last_stable_offset=stable_offset,
                log_start_offset=log_start_offset,
                aborted_transactions=aborted,
                records=b"?",
            )
            told = FetchableTopicResponse(topic=topic, topic_id=topic_id, partitions=[answer])
            head, _, end = self._encode(FetchResponse(responses=[told]))
            before, rest = head.split(_OFFSETS.pack(*_PLACEHOLDER))
            # Without the size of the records, which takes one byte here.
            after.append(rest[:-1])
        return before[_ANSWER_HEAD_BYTES:], (after[0], after[1]), end
