"""Transactions: open and hanging ones, and their abort (KIP-664)."""

from dataclasses import dataclass

from ottla.base.errors import ConfigError
from ottla.client.admin import transactions as admin
from ottla.client.admin.answers import check
from ottla.client.admin.transactions import ActiveProducer, TransactionDescription
from ottla.client.brokers import Brokers
from ottla.operations import transactions
from ottla.operations.changes import Change
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.metadata import leaders_of, read_metadata, read_topic
from ottla.operations.survey.nodes import ask_nodes
from ottla.operations.survey.producers import read_producers
from ottla.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from ottla.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)


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
    """Return the transactional ids of all coordinators; details cost one more request to each."""
    states = list(_OPEN_STATES) if only_open else []

    def ask(brokers: Brokers, node: int) -> list[TransactionRow]:
        request = ListTransactionsRequest(state_filters=states)
        response = brokers.ask_node(node, request, ListTransactionsResponse)
        check(response.error_code)
        rows = response.transaction_states
        if not with_details or not rows:
            return [_listed(node, row) for row in rows]
        details = DescribeTransactionsRequest(
            transactional_ids=[row.transactional_id for row in rows]
        )
        described = brokers.ask_node(node, details, DescribeTransactionsResponse)
        return [
            _described(admin.transaction(row, node), now_ms)
            for row in described.transaction_states
            if not row.error_code
        ]

    now_ms = connection.now_ms()
    results = ask_nodes(connection, read_metadata(connection).nodes, ask)
    listed = [row for rows in results.values() for row in rows]
    return sorted(listed, key=lambda row: row.transactional_id)


def describe_transaction(connection: ClusterConnection, transactional_id: str) -> TransactionRow:
    """Return a transaction; ApiError TRANSACTIONAL_ID_NOT_FOUND."""
    with connection.brokers() as brokers:
        transaction = admin.describe_transaction(brokers, transactional_id)
    return _described(transaction, connection.now_ms())


def find_hanging(
    connection: ClusterConnection, *, topic: str | None = None, max_timeout_s: float = 900.0
) -> list[HangingTransaction]:
    """Return transactions open for longer than `max_timeout_s` that no coordinator has open.

    Asks the leader of each partition for its producers. `max_timeout_s` should be at least the
    brokers' transaction.max.timeout.ms: younger transactions may still be completed.
    """
    leaders = read_metadata(connection, is_fresh=True).leaders()
    if topic is not None:
        leaders = leaders_of(read_topic(connection, topic))
    now_ms = connection.now_ms()
    producers = read_producers(connection, leaders)
    suspects = admin.long_open(producers, now_ms=now_ms, max_timeout_ms=max_timeout_s * 1000)
    if not suspects:
        return []
    known = {
        (row.producer_id, *key) for row in list_transactions(connection) for key in row.partitions
    }
    return [_hanging(row, now_ms) for row in admin.without_known(suspects, known)]


def check_hanging(connection: ClusterConnection, hanging: HangingTransaction) -> None:
    """Raise ConfigError unless a transaction hangs, of whatever age.

    An abort marker for a transaction that its coordinator knows would break its atomicity.
    """
    found = find_hanging(connection, topic=hanging.topic, max_timeout_s=_ANY_AGE_S)
    wanted = hanging.partition, hanging.producer_id, hanging.start_offset
    if wanted not in {(row.partition, row.producer_id, row.start_offset) for row in found}:
        raise ConfigError(
            f"the transaction of producer {hanging.producer_id} at offset {hanging.start_offset} of "
            f"{hanging.topic}-{hanging.partition} does not hang: list the hanging transactions again"
        )


def abort_open(connection: ClusterConnection, transactional_id: str) -> Change:
    """Fence the producer of a transactional id and abort its transaction (InitProducerId).

    ApiError CONCURRENT_TRANSACTIONS if the transaction is still being completed after the timeout.
    """
    with connection.brokers() as brokers:
        described = admin.describe_transaction(brokers, transactional_id)
        return transactions.abort(brokers, described, cluster=connection.name)


def abort_hanging(connection: ClusterConnection, hanging: HangingTransaction) -> Change:
    """Write an abort marker into the partition (WriteTxnMarkers), as kafka-transactions does.

    ApiError INVALID_PRODUCER_EPOCH if the producer has continued since `hanging` was read.
    """
    producer = ActiveProducer(
        hanging.producer_id,
        hanging.producer_epoch,
        -1,
        hanging.last_timestamp_ms,
        hanging.start_offset,
        hanging.coordinator_epoch,
    )
    key = hanging.topic, hanging.partition
    with connection.brokers() as brokers:
        return transactions.abort_hanging(brokers, key, producer, cluster=connection.name)


# Also transactions with a timestamp in the future.
_ANY_AGE_S = float("-inf")
# A prepared transaction has been decided, but not all partitions have their marker yet.
_OPEN_STATES = ("Ongoing", "PrepareCommit", "PrepareAbort")


def _listed(node: int, row: TransactionState) -> TransactionRow:
    return TransactionRow(
        transactional_id=row.transactional_id,
        state=row.transaction_state,
        coordinator=node,
        producer_id=row.producer_id,
        producer_epoch=-1,
        timeout_ms=-1,
        start_ms=None,
        duration_s=None,
        is_overdue=False,
        partitions=(),
    )


def _described(transaction: TransactionDescription, now_ms: int) -> TransactionRow:
    is_open = transaction.state in _OPEN_STATES and transaction.start_ms >= 0
    age_ms = now_ms - transaction.start_ms
    return TransactionRow(
        transactional_id=transaction.transactional_id,
        state=transaction.state,
        coordinator=transaction.coordinator,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        timeout_ms=transaction.timeout_ms,
        start_ms=transaction.start_ms if is_open else None,
        duration_s=max(0.0, age_ms / 1000) if is_open else None,
        is_overdue=is_open and age_ms > transaction.timeout_ms,
        partitions=tuple(sorted(transaction.partitions)),
    )


def _hanging(row: admin.HangingTransaction, now_ms: int) -> HangingTransaction:
    producer = row.producer
    return HangingTransaction(
        topic=row.topic,
        partition=row.partition,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        coordinator_epoch=producer.coordinator_epoch,
        start_offset=producer.transaction_start_offset,
        last_timestamp_ms=producer.last_timestamp,
        age_s=(now_ms - producer.last_timestamp) / 1000,
    )
