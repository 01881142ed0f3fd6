"""The records that transactions write to and read from __transaction_state."""

from typing import NamedTuple

from ottla.base.errors import ProtocolError
from ottla.coordinators.txn.state import (
    NO_PRODUCER_ID,
    STATE_OF_CODE,
    TopicPartition,
    TransactionMetadata,
    TransactionState,
)
from ottla.wire import txn_records
from ottla.wire.records.records import Record
from ottla.wire.txn_records import PartitionsSchema, TransactionLogValue


class TransactionUpdate(NamedTuple):
    """The new state of a transactional id; None if it is deleted."""

    transactional_id: str
    transaction: TransactionMetadata | None


def encode(change: TransactionUpdate, now_ms: int, transaction_version: int) -> Record:
    """Return the record of a change; a tombstone if the id is deleted.

    `transaction_version` is the cluster's: from 1 on records are flexible (KIP-890). A record with
    a next producer id is always flexible, whereas Kafka would lose that id.
    """
    key = txn_records.encode_key(change.transactional_id)
    transaction = change.transaction
    value = None
    if transaction is not None:
        has_next = transaction.next_producer_id != NO_PRODUCER_ID
        version = min(max(transaction_version, has_next), txn_records.VALUE_VERSION_MAX)
        value = txn_records.encode_value(_value(transaction), version)
    return Record(key=key, value=value, timestamp=now_ms)


def decode(record: Record) -> TransactionUpdate | None:
    """Return the change in a record; None for types of newer brokers. Raises ProtocolError."""
    if record.key is None:
        raise ProtocolError("a record of __transaction_state has no key")
    transactional_id = txn_records.decode_key(record.key)
    if transactional_id is None:
        return None
    if record.value is None:
        return TransactionUpdate(transactional_id, None)
    value = txn_records.decode_value(record.value)
    return TransactionUpdate(transactional_id, _transaction(transactional_id, value))


def by_topic(partitions: frozenset[TopicPartition]) -> dict[str, list[int]]:
    """Return the partitions of each topic, in order."""
    by_name: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        by_name.setdefault(topic, []).append(partition)
    return by_name


def _value(transaction: TransactionMetadata) -> TransactionLogValue:
    partitions = None
    if transaction.state is not TransactionState.EMPTY:
        partitions = [
            PartitionsSchema(topic=topic, partition_ids=numbers)
            for topic, numbers in by_topic(transaction.partitions).items()
        ]
    return TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state.code,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.client_version,
    )


def _transaction(transactional_id: str, value: TransactionLogValue) -> TransactionMetadata:
    state = STATE_OF_CODE.get(value.transaction_status)
    if state is None:
        raise ProtocolError(f"unknown transaction state {value.transaction_status}")
    return TransactionMetadata(
        transactional_id,
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        state,
        frozenset(
            (topic.topic, number)
            for topic in value.transaction_partitions or ()
            for number in topic.partition_ids
        ),
        value.transaction_start_timestamp_ms,
        value.transaction_last_update_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        client_version=value.client_transaction_version,
    )
