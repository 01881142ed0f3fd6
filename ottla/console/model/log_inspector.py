"""The log of one partition through the protocol: offsets, epochs, producers, batches, directories.

Not done: segments and index files, which Kafka's protocol does not expose.
"""

from dataclasses import dataclass

from ottla.console.model.connections import ClusterConnection, planned


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

    `last_stable_offset` is below `high_watermark` while a transaction is open. `max_timestamp_offset`
    is the offset of the record with the largest timestamp, None if the log is empty.
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
    raise planned()


def read_batches(
    connection: ClusterConnection, topic: str, partition: int, *, offset: int, limit: int = 100
) -> list[BatchRow]:
    """Return up to `limit` batches from the one that contains `offset`."""
    raise planned()
