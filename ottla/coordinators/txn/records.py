"""What transactions write to __transaction_state and read from it, one record each."""

from typing import NamedTuple

from ottla.base.errors import ProtocolError
from ottla.coordinators.txn.state import (
    STATE_OF_CODE,
    TopicPartition,
    Transaction,
    TransactionState,
)
from ottla.wire import txn_records
from ottla.wire.records.records import Record
from ottla.wire.txn_records import PartitionsSchema, TransactionLogValue


class Change(NamedTuple):
    """A transactional id as it is from now on; None where it is gone."""

    transactional_id: str
    transaction: Transaction | None


def encode(change: Change, now_ms: int) -> Record:
    """Return the record of a change; a tombstone where the id is gone."""
    key = txn_records.encode_key(change.transactional_id)
    transaction = change.transaction
    value = None if transaction is None else txn_records.encode_value(_value(transaction))
    return Record(key=key, value=value, timestamp=now_ms)


def decode(record: Record) -> Change | None:
    """Return what a record changes; None for kinds of newer brokers. Raises ProtocolError."""
    if record.key is None:
        raise ProtocolError("a record of __transaction_state has no key")
    transactional_id = txn_records.decode_key(record.key)
    if transactional_id is None:
        return None
    if record.value is None:
        return Change(transactional_id, None)
    value = txn_records.decode_value(record.value)
    return Change(transactional_id, _transaction(transactional_id, value))


def by_topic(partitions: frozenset[TopicPartition]) -> dict[str, list[int]]:
    """Return the partitions of each topic, in order."""
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        found.setdefault(topic, []).append(partition)
    return found


def _value(transaction: Transaction) -> TransactionLogValue:
    partitions = None
    if transaction.state is not TransactionState.EMPTY:
        partitions = [
            PartitionsSchema(topic=topic, partition_ids=numbers)
            for topic, numbers in by_topic(transaction.partitions).items()
        ]
    return TransactionLogValue(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state.code,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
    )


def _transaction(transactional_id: str, value: TransactionLogValue) -> Transaction:
    state = STATE_OF_CODE.get(value.transaction_status)
    if state is None:
        raise ProtocolError(f"there is no transaction state {value.transaction_status}")
    return Transaction(
        transactional_id,
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        state,
        frozenset(
            (item.topic, number)
            for item in value.transaction_partitions or ()
            for number in item.partition_ids
        ),
        value.transaction_start_timestamp_ms,
        value.transaction_last_update_timestamp_ms,
        value.previous_producer_id,
    )
