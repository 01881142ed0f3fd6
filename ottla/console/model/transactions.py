"""Transactions: open and hanging ones, and their abort (KIP-664)."""

from dataclasses import dataclass

from ottla.console.model.changes import Change
from ottla.console.model.connections import ClusterConnection, planned


@dataclass(frozen=True, slots=True)
class TransactionRow:
    """A transactional id; `state` is Kafka's ("Ongoing", "CompleteCommit", …).

    `duration_s` is None unless a transaction is open. `is_overdue` if it is older than its timeout.
    """

    transactional_id: str
    state: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int | None
    duration_s: float | None
    is_overdue: bool
    partitions: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class HangingTransaction:
    """An open transaction in a partition that no coordinator knows: it blocks read_committed."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_timestamp_ms: int
    age_s: float


def list_transactions(
    connection: ClusterConnection, *, only_open: bool = False, with_details: bool = True
) -> list[TransactionRow]:
    """Return the transactional ids of all coordinators; details cost one request for each broker."""
    raise planned()


def describe_transaction(connection: ClusterConnection, transactional_id: str) -> TransactionRow:
    """Return a transaction; ApiError TRANSACTIONAL_ID_NOT_FOUND."""
    raise planned()


def find_hanging(
    connection: ClusterConnection, *, topic: str | None = None, max_timeout_s: float = 900.0
) -> list[HangingTransaction]:
    """Return transactions open for longer than `max_timeout_s` that no coordinator has open."""
    raise planned()


def abort_open(connection: ClusterConnection, transactional_id: str) -> Change:
    """Fence the producer of a transactional id and abort its transaction (InitProducerId)."""
    raise planned()


def abort_hanging(connection: ClusterConnection, hanging: HangingTransaction) -> Change:
    """Write an abort marker into the partition (WriteTxnMarkers)."""
    raise planned()
