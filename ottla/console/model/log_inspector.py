"""The log of one partition through the protocol: offsets, epochs, producers, batches, directories.

Not done: segments and index files, which Kafka's protocol does not expose.
"""

from dataclasses import dataclass
from itertools import islice

from ottla.base.buffers import Buffer
from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin.answers import check
from ottla.client.admin.offsets import EARLIEST, LATEST, MAX_TIMESTAMP
from ottla.client.admin.topics import Partition
from ottla.client.admin.transactions import ActiveProducer
from ottla.client.brokers import Brokers
from ottla.console.model.messages.statistics import CODECS
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.directories import read_directories
from ottla.operations.survey.metadata import Key, read_topic
from ottla.operations.survey.nodes import ask_nodes
from ottla.operations.survey.offsets import find_offsets
from ottla.operations.survey.producers import read_producers
from ottla.operations.survey.records import FetchLimits, fetch
from ottla.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.wire.records.batch import BatchHeader, is_crc_valid
from ottla.wire.records.records import whole_batches


@dataclass(frozen=True, slots=True)
class EpochRow:
    """A leader epoch with its first offset and the offset after its last record."""

    epoch: int
    start_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class ProducerRow:
    """A producer that the leader remembers; `transaction_start_offset` is None if none is open."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    transaction_start_offset: int | None


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A record batch as it is stored. -1 for a producer id, epoch or sequence that is not set."""

    base_offset: int
    last_offset: int
    records: int
    size_bytes: int
    magic: int
    codec: str
    timestamp_type: str
    base_timestamp_ms: int
    max_timestamp_ms: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    is_control: bool
    is_crc_valid: bool


@dataclass(frozen=True, slots=True)
class ReplicaLog:
    """A replica's log directory and size; `is_future` while it is moved between directories."""

    broker: int
    log_directory: str
    size_bytes: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class PartitionLog:
    """The state of a partition's log.

    `last_stable_offset` is below `high_watermark` while a transaction is open.
    `max_timestamp_offset` is the offset of the record with the largest timestamp, None if the log
    is empty.
    """

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    start_offset: int
    high_watermark: int
    last_stable_offset: int
    max_timestamp_offset: int | None
    max_timestamp_ms: int | None
    epochs: tuple[EpochRow, ...]
    producers: tuple[ProducerRow, ...]
    replicas: tuple[ReplicaLog, ...]


def inspect(connection: ClusterConnection, topic: str, partition: int) -> PartitionLog:
    """Return the state of a partition's log; ApiError if it does not exist or has no leader."""
    row = _partition(connection, topic, partition)
    key = topic, partition
    leaders = {key: row.leader}
    start, end, stable, newest = (
        find_offsets(connection, leaders, moment, is_committed=is_committed).get(key)
        for moment, is_committed in (
            (EARLIEST, False),
            (LATEST, False),
            (LATEST, True),
            (MAX_TIMESTAMP, False),
        )
    )
    if start is None or end is None or stable is None:
        raise _without_leader(topic, partition)
    has_newest = newest is not None and newest.offset >= 0
    return PartitionLog(
        topic=topic,
        partition=partition,
        leader=row.leader,
        leader_epoch=row.leader_epoch,
        start_offset=start.offset,
        high_watermark=end.offset,
        last_stable_offset=stable.offset,
        max_timestamp_offset=newest.offset if newest is not None and has_newest else None,
        max_timestamp_ms=newest.timestamp if newest is not None and has_newest else None,
        epochs=_epochs(connection, key, row, start.offset),
        producers=tuple(
            _producer(item) for item in read_producers(connection, leaders).get(key, [])
        ),
        replicas=_replicas(connection, key),
    )


def read_batches(
    connection: ClusterConnection, topic: str, partition: int, *, offset: int, limit: int = 100
) -> list[BatchRow]:
    """Return up to `limit` batches from the one that contains `offset`, as far as one response
    goes.

    ApiError OFFSET_OUT_OF_RANGE if the log does not contain the offset.
    """
    row = _partition(connection, topic, partition)
    key = topic, partition
    results = ask_nodes(
        connection, [row.leader], lambda brokers, node: fetch(brokers, node, {key: offset}, _LIMITS)
    )
    data = results.get(row.leader, {}).get(key)
    if data is None:
        raise _without_leader(topic, partition)
    check(data.error_code, subject=f"{topic}-{partition} at offset {offset}")
    batches = islice(whole_batches(data.records), limit)
    return [_batch(data.records, position, header) for position, header in batches]


_LIMITS = FetchLimits(max_bytes=8 << 20, partition_bytes=8 << 20)
_EPOCHS_MAX = 200


def _partition(connection: ClusterConnection, topic: str, partition: int) -> Partition:
    rows = {row.partition: row for row in read_topic(connection, topic).partitions}
    if partition not in rows:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic {topic!r} has no partition {partition}."
        )
    if rows[partition].leader < 0:
        raise _without_leader(topic, partition)
    return rows[partition]


def _without_leader(topic: str, partition: int) -> ApiError:
    return ApiError(
        ErrorCode.LEADER_NOT_AVAILABLE,
        f"{topic}-{partition} has no running leader: start one of its brokers.",
    )


def _epochs(
    connection: ClusterConnection, key: Key, row: Partition, start_offset: int
) -> tuple[EpochRow, ...]:
    """Walk down from the current epoch: the answer for an epoch names the largest one up to it."""
    ends: list[tuple[int, int]] = []
    epoch = row.leader_epoch
    while epoch >= 0 and len(ends) < _EPOCHS_MAX:
        epoch_and_end = _end_of_epoch(connection, key, row.leader, epoch)
        if epoch_and_end is None or epoch_and_end[0] < 0 or epoch_and_end[1] < start_offset:
            break
        ends.append(epoch_and_end)
        epoch = epoch_and_end[0] - 1
    ends.reverse()
    starts = [start_offset, *(end for _, end in ends)]
    return tuple(
        EpochRow(epoch, max(start, start_offset), end)
        for (epoch, end), start in zip(ends, starts, strict=False)
        if end > start or epoch == row.leader_epoch
    )


def _end_of_epoch(
    connection: ClusterConnection, key: Key, leader: int, epoch: int
) -> tuple[int, int] | None:
    item = OffsetForLeaderPartition(partition=key[1], leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic(topic=key[0], partitions=[item])]
    )

    def ask(brokers: Brokers, node: int) -> tuple[int, int] | None:
        response = brokers.ask_node(node, request, OffsetForLeaderEpochResponse)
        result = response.topics[0].partitions[0]
        return None if result.error_code else (result.leader_epoch, result.end_offset)

    return ask_nodes(connection, [leader], ask).get(leader)


def _producer(row: ActiveProducer) -> ProducerRow:
    start = row.transaction_start_offset
    return ProducerRow(
        producer_id=row.producer_id,
        producer_epoch=row.producer_epoch,
        last_sequence=row.last_sequence,
        last_timestamp_ms=row.last_timestamp,
        coordinator_epoch=row.coordinator_epoch,
        transaction_start_offset=start if start >= 0 else None,
    )


def _replicas(connection: ClusterConnection, key: Key) -> tuple[ReplicaLog, ...]:
    return tuple(
        ReplicaLog(node, row.path, size.size, size.offset_lag, size.is_future)
        for node, rows in sorted(read_directories(connection, is_fresh=True).items())
        for row in rows
        if (size := row.replicas.get(key)) is not None
    )


def _batch(buffer: Buffer, position: int, header: BatchHeader) -> BatchRow:
    codec = header.compression
    return BatchRow(
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        records=header.records_count,
        size_bytes=header.size_bytes,
        magic=header.magic,
        codec=CODECS[codec] if codec < len(CODECS) else str(codec),
        timestamp_type="logappend" if header.has_log_append_time else "create",
        base_timestamp_ms=header.base_timestamp,
        max_timestamp_ms=header.max_timestamp,
        leader_epoch=header.leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
        is_control=header.is_control,
        is_crc_valid=is_crc_valid(buffer, position, header),
    )
