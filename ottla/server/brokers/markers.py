"""Transaction markers for the partitions of all brokers (the MarkerWriter port of `coordinators`).

Markers for partitions that this broker leads are written here; the others are sent to their leaders
with WriteTxnMarkers, the markers of one iteration of the event loop in one request per broker. The
coordinator repeats a marker that was not written. Follows TransactionMarkerChannelManager.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from ottla.base.errors import ErrorCode
from ottla.base.tasks import Tasks
from ottla.cluster.image import NO_LEADER
from ottla.coordinators.ports import Marker, MarkerWriter
from ottla.coordinators.replies import Reply, gathered
from ottla.server.brokers.peers import Peers
from ottla.server.brokers.remote import known_code
from ottla.server.current import Current
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

TIMEOUT_SECONDS = 30.0
# Version 2 has the version of the transaction (KIP-1228), which Apache Kafka 3.9 does not know.
_VERSION = 2
_VERSION_OF_KAFKA_3 = 1

TopicPartition = tuple[str, int]
Codes = Mapping[TopicPartition, ErrorCode]


class _Waiting(NamedTuple):
    """A marker for partitions of one leader, and the future of its result."""

    marker: Marker
    partitions: Sequence[TopicPartition]
    done: "asyncio.Future[Codes]"

    def finish(self, codes: Codes, default: ErrorCode) -> None:
        """Complete the future; partitions without a code have the default."""
        if not self.done.done():
            self.done.set_result({key: codes.get(key, default) for key in self.partitions})


class ClusterMarkers:
    """Writes markers to partitions of any broker; `local` writes to those that this broker leads.

    `is_mixed` is True if the other brokers may be Apache Kafka's.
    """

    def __init__(
        self,
        *,
        node_id: int,
        current: Current,
        peers: Peers,
        local: MarkerWriter,
        tasks: Tasks,
        is_mixed: bool,
    ) -> None:
        self._node_id = node_id
        self._current = current
        self._peers = peers
        self._local = local
        self._tasks = tasks
        self._version = _VERSION_OF_KAFKA_3 if is_mixed else _VERSION
        # The markers of this iteration of the event loop, by leader.
        self._batches: dict[int, list[_Waiting]] = {}

    def write(self, marker: Marker, partitions: Sequence[TopicPartition]) -> Reply[Codes]:
        """Write the marker to each partition; return for each whether it is committed."""
        by_leader: dict[int, list[TopicPartition]] = {}
        for key in partitions:
            by_leader.setdefault(self._leader_of(key), []).append(key)
        if by_leader.keys() <= {self._node_id}:
            return self._local.write(marker, partitions)
        replies = [self._write(leader, marker, keys) for leader, keys in by_leader.items()]
        return gathered(replies, _merged)

    def _leader_of(self, key: TopicPartition) -> int:
        partition = self._current.image.partition(*key)
        if partition is not None and partition.leader != NO_LEADER:
            return partition.leader
        # This broker may have become the leader before its metadata is updated.
        return self._node_id if partition is None else NO_LEADER

    def _write(self, leader: int, marker: Marker, keys: Sequence[TopicPartition]) -> Reply[Codes]:
        if leader == self._node_id:
            return self._local.write(marker, keys)
        if self._current.image.broker(leader) is None:
            return dict.fromkeys(keys, ErrorCode.LEADER_NOT_AVAILABLE)
        loop = asyncio.get_running_loop()
        codes_written: asyncio.Future[Codes] = loop.create_future()
        if not self._batches:
            loop.call_soon(self._flush)
        self._batches.setdefault(leader, []).append(_Waiting(marker, keys, codes_written))
        return codes_written

    def _flush(self) -> None:
        batches, self._batches = self._batches, {}
        for leader, batch in batches.items():
            for request in _distinct(batch):
                self._tasks.supervise(partial(self._send, leader, request), "transaction markers")

    async def _send(self, leader: int, batch: Sequence[_Waiting]) -> None:
        channel = self._peers.channel(leader)
        if channel is None:
            _finish(batch, {}, ErrorCode.LEADER_NOT_AVAILABLE)
            return
        try:
            response = await channel.request(
                _request(batch), self._version, seconds=TIMEOUT_SECONDS
            )
        except OSError:
            # The markers may have been written; a repetition does no harm.
            _finish(batch, {}, ErrorCode.NETWORK_EXCEPTION)
            return
        assert isinstance(response, WriteTxnMarkersResponse), "a response has its request's class"
        _finish(batch, _codes(response), ErrorCode.UNKNOWN_SERVER_ERROR)


def _merged(results: list[Codes]) -> Codes:
    return {key: code for codes in results for key, code in codes.items()}


def _distinct(batch: Sequence[_Waiting]) -> list[list[_Waiting]]:
    """Split a batch, so that no producer has two markers in one request: results name producers."""
    requests: list[dict[int, _Waiting]] = []
    for waiting in batch:
        producer_id = waiting.marker.producer_id
        free = next((request for request in requests if producer_id not in request), None)
        if free is None:
            requests.append({producer_id: waiting})
        else:
            free[producer_id] = waiting
    return [list(request.values()) for request in requests]


def _request(batch: Sequence[_Waiting]) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(markers=[_marker(waiting) for waiting in batch])


def _marker(waiting: _Waiting) -> WritableTxnMarker:
    topics: dict[str, WritableTxnMarkerTopic] = {}
    for name, number in waiting.partitions:
        topic = topics.setdefault(name, WritableTxnMarkerTopic(name=name))
        topic.partition_indexes.append(number)
    marker = waiting.marker
    return WritableTxnMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transaction_result=marker.is_commit,
        topics=list(topics.values()),
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.transaction_version,
    )


def _codes(response: WriteTxnMarkersResponse) -> dict[int, dict[TopicPartition, ErrorCode]]:
    """Return the code of each partition, by producer."""
    codes: dict[int, dict[TopicPartition, ErrorCode]] = {}
    for marker in response.markers:
        of_producer = codes.setdefault(marker.producer_id, {})
        for topic in marker.topics:
            for partition in topic.partitions:
                of_producer[topic.name, partition.partition_index] = known_code(
                    partition.error_code
                )
    return codes


def _finish(batch: Sequence[_Waiting], codes: Mapping[int, Codes], default: ErrorCode) -> None:
    for waiting in batch:
        waiting.finish(codes.get(waiting.marker.producer_id, {}), default)
