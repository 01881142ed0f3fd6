"""Aborts of transactions, also of those that hang: open in a partition, and unknown to their
coordinators (KIP-664).
"""

import time
from collections.abc import Iterable

from ottla.base.errors import OttlaError
from ottla.client.admin import topics
from ottla.client.admin import transactions as admin
from ottla.client.admin.transactions import ActiveProducer, TransactionDescription
from ottla.client.brokers import Brokers
from ottla.operations.changes import Change, if_possible

Key = tuple[str, int]
# Also transactions that were written a moment ago, or with a timestamp in the future.
_ANY_AGE_MS = -(1 << 62)


def partitions_on(described: Iterable[topics.Topic], node_id: int | None) -> list[Key]:
    """Return the partitions of topics that have a replica on a broker, or all without a broker."""
    return [
        (topic.name, row.partition)
        for topic in described
        for row in topic.partitions
        if node_id is None or node_id in row.replicas
    ]


def hanging_producer(brokers: Brokers, key: Key, start_offset: int) -> ActiveProducer:
    """Return the producer of a transaction that hangs; OttlaError if it does not.

    A marker for a transaction that its coordinator knows would break its atomicity.
    """
    name = f"{key[0]}-{key[1]}"
    producer = admin.find_open_transaction(brokers, *key, start_offset)
    if producer is None:
        raise OttlaError(
            f"no open transaction starts at offset {start_offset} of {name}: `ottla transaction "
            f"producers {key[0]}:{key[1]}` lists them"
        )
    hanging = admin.find_hanging_transactions(
        brokers, [key], now_ms=time.time_ns() // 1_000_000, max_timeout_ms=_ANY_AGE_MS
    )
    if producer.producer_id not in {row.producer.producer_id for row in hanging}:
        listings = admin.list_transactions(brokers, producer_ids=[producer.producer_id])
        known = next((row.transactional_id for row in listings), "ID")
        raise OttlaError(
            f"the transaction at offset {start_offset} of {name} does not hang, its coordinator "
            f"knows it: abort it with `ottla transaction abort {known}`"
        )
    return producer


def abort(brokers: Brokers, described: TransactionDescription, *, cluster: str = "") -> Change:
    """Fence the producer of a transactional id and abort its transaction (InitProducerId).

    ApiError CONCURRENT_TRANSACTIONS if the transaction is still being completed after the timeout.
    """
    name = described.transactional_id
    fence(brokers, name, timeout_ms=max(1, described.timeout_ms))
    after = if_possible(lambda: _facts(admin.describe_transaction(brokers, name))) or {}
    return Change(cluster, "transaction.abort", name, before=_facts(described), after=after)


def fence(
    brokers: Brokers,
    name: str,
    *,
    timeout_ms: int = admin.FENCING_TIMEOUT_MS,
    cluster: str = "",
) -> Change:
    """Fence the producer of a transactional id, which may be unknown (InitProducerId).

    `timeout_ms` applies to the id's next transaction.
    """
    producer_id, epoch = admin.fence_producer(brokers, name, timeout_ms=timeout_ms)
    after = {"producer_id": str(producer_id), "producer_epoch": str(epoch)}
    return Change(cluster, "transaction.fence", name, after=after)


def abort_hanging(
    brokers: Brokers, key: Key, producer: ActiveProducer, *, cluster: str = ""
) -> Change:
    """Write an abort marker into a partition (WriteTxnMarkers), as kafka-transactions does.

    ApiError INVALID_PRODUCER_EPOCH if the producer has continued since it was described.
    """
    admin.abort_transaction(brokers, *key, producer)
    return Change(
        cluster,
        "transaction.abort-hanging",
        f"{key[0]}-{key[1]}",
        before={
            "producer_id": str(producer.producer_id),
            "producer_epoch": str(producer.producer_epoch),
            "start_offset": str(producer.transaction_start_offset),
        },
    )


def _facts(transaction: TransactionDescription) -> dict[str, str]:
    return {"state": transaction.state, "producer_epoch": str(transaction.producer_epoch)}
