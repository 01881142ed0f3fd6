"""Transactions and producers: list, describe, fence, and abort what hangs (KIP-664)."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin.answers import check, check_leader
from ottla.client.brokers import Brokers
from ottla.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducerState,
    TopicRequest,
)
from ottla.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

# A new producer with the id replaces this timeout with its own.
FENCING_TIMEOUT_MS = 60_000


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """A transactional id with the state of its transaction, and the broker that coordinates it."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator: int = -1


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """A transaction; `start_ms` is -1 if none is open."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int
    partitions: tuple[tuple[str, int], ...]
    coordinator: int = -1


@dataclass(frozen=True, slots=True)
class ActiveProducer:
    """An idempotent or transactional producer of a partition; -1 for unknown values."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    transaction_start_offset: int
    coordinator_epoch: int = -1


class HangingTransaction(NamedTuple):
    """An open transaction in a partition that no coordinator will end: it blocks read_committed."""

    topic: str
    partition: int
    producer: ActiveProducer


def list_transactions(
    brokers: Brokers,
    *,
    states: Sequence[str] = (),
    producer_ids: Sequence[int] = (),
    min_duration_ms: int = -1,
    pattern: str | None = None,
) -> list[TransactionListing]:
    """Return the transactional ids of all coordinators, optionally only those in some states, of
    some producers, that have been open for longer, or that match a regular expression of RE2.
    """
    listings = read_transactions(
        brokers,
        states=states,
        producer_ids=producer_ids,
        min_duration_ms=min_duration_ms,
        pattern=pattern,
    )
    return sorted(listings, key=lambda row: row.transactional_id)


def read_transactions(
    brokers: Brokers,
    *,
    states: Sequence[str] = (),
    producer_ids: Sequence[int] = (),
    min_duration_ms: int = -1,
    pattern: str | None = None,
) -> list[TransactionListing]:
    """Return the same as `list_transactions`, in the order of the coordinators."""
    request = ListTransactionsRequest(
        state_filters=list(states),
        producer_id_filters=list(producer_ids),
        duration_filter=min_duration_ms,
        transactional_id_pattern=pattern,
    )

    requests = dict.fromkeys(brokers.node_ids(), request)

    def attempt() -> list[TransactionListing]:
        responses = brokers.ask_nodes(requests, ListTransactionsResponse)
        for response in responses.values():
            check(response.error_code)
        return [
            TransactionListing(
                row.transactional_id, row.producer_id, row.transaction_state, node_id
            )
            for node_id, response in responses.items()
            for row in response.transaction_states
        ]

    return brokers.retry(attempt)


def describe_transaction(brokers: Brokers, transactional_id: str) -> TransactionDescription:
    """Return a transaction; ApiError TRANSACTIONAL_ID_NOT_FOUND if the id is unknown."""
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])

    def attempt() -> TransactionDescription:
        response = brokers.ask_transaction_coordinator(
            transactional_id, request, DescribeTransactionsResponse
        )
        (row,) = response.transaction_states
        check(row.error_code, subject=f"Transactional id {transactional_id!r}")
        return transaction(row, brokers.transaction_coordinator(transactional_id))

    return brokers.retry(attempt)


def transaction(row: TransactionState, coordinator: int) -> TransactionDescription:
    """Return a transaction of a response of DescribeTransactions."""
    return TransactionDescription(
        transactional_id=row.transactional_id,
        state=row.transaction_state,
        producer_id=row.producer_id,
        producer_epoch=row.producer_epoch,
        timeout_ms=row.transaction_timeout_ms,
        start_ms=row.transaction_start_time_ms,
        partitions=tuple(
            (topic.topic, number) for topic in row.topics for number in topic.partitions
        ),
        coordinator=coordinator,
    )


def describe_producers(
    brokers: Brokers, topic: str, partition: int, *, node_id: int | None = None
) -> list[ActiveProducer]:
    """Return the producers that a replica of a partition remembers: by default, its leader's."""
    request = DescribeProducersRequest(
        topics=[TopicRequest(name=topic, partition_indexes=[partition])]
    )

    def attempt() -> list[ActiveProducer]:
        node = node_id
        if node is None:
            node = brokers.leaders([(topic, partition)])[topic, partition]
        response = brokers.ask_node(node, request, DescribeProducersResponse)
        (row,) = response.topics[0].partitions
        # A replica that is named is not looked up again.
        checked = check_leader if node_id is None else check
        checked(row.error_code, row.error_message, subject=f"{topic}-{partition}")
        return [active_producer(producer) for producer in row.active_producers]

    return brokers.retry(attempt)


def active_producer(row: ProducerState) -> ActiveProducer:
    """Return a producer of a response of DescribeProducers."""
    return ActiveProducer(
        row.producer_id,
        row.producer_epoch,
        row.last_sequence,
        row.last_timestamp,
        row.current_txn_start_offset,
        row.coordinator_epoch,
    )


def find_open_transaction(
    brokers: Brokers, topic: str, partition: int, start_offset: int
) -> ActiveProducer | None:
    """Return the producer whose open transaction in a partition starts at an offset, if any."""
    for producer in describe_producers(brokers, topic, partition):
        if producer.transaction_start_offset == start_offset:
            return producer
    return None


def find_hanging_transactions(
    brokers: Brokers,
    partitions: Iterable[tuple[str, int]],
    *,
    now_ms: int,
    max_timeout_ms: int,
    node_id: int | None = None,
) -> list[HangingTransaction]:
    """Return the open transactions of partitions that their coordinators do not have (KIP-664).

    `max_timeout_ms` should be at least the brokers' transaction.max.timeout.ms: younger
    transactions may still be completed. With `node_id`, the replicas of that broker are read
    instead of the leaders.
    """
    producers = {
        (topic, partition): describe_producers(brokers, topic, partition, node_id=node_id)
        for topic, partition in partitions
    }
    suspects = long_open(producers, now_ms=now_ms, max_timeout_ms=max_timeout_ms)
    if not suspects:
        return []
    producer_ids = sorted({row.producer.producer_id for row in suspects})
    known: set[tuple[int, str, int]] = set()
    for listing in list_transactions(brokers, producer_ids=producer_ids):
        try:
            state = describe_transaction(brokers, listing.transactional_id)
        except ApiError as error:
            if error.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise
            continue
        known |= {(listing.producer_id, *key) for key in state.partitions}
    return without_known(suspects, known)


def long_open(
    producers: Mapping[tuple[str, int], Iterable[ActiveProducer]],
    *,
    now_ms: int,
    max_timeout_ms: float,
) -> list[HangingTransaction]:
    """Return the transactions that have been open in partitions for longer than a timeout. Pure."""
    return [
        HangingTransaction(topic, partition, producer)
        for (topic, partition), rows in producers.items()
        for producer in rows
        if producer.transaction_start_offset >= 0
        and now_ms - producer.last_timestamp > max_timeout_ms
    ]


def without_known(
    suspects: Iterable[HangingTransaction], known: Container[tuple[int, str, int]]
) -> list[HangingTransaction]:
    """Return the transactions that hang: no coordinator has their partition. Pure.

    `known` has the producer ids of the coordinators' transactions with each of their partitions.
    """
    return [
        row for row in suspects if (row.producer.producer_id, row.topic, row.partition) not in known
    ]


def abort_transaction(
    brokers: Brokers, topic: str, partition: int, producer: ActiveProducer
) -> None:
    """Write an abort marker for a transaction that its coordinator has forgotten (KIP-664).

    `describe_producers` returns the producer. Never use it for a transaction that the coordinator
    still knows: that would break its atomicity.
    """
    marker = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
        coordinator_epoch=max(0, producer.coordinator_epoch),
    )
    request = WriteTxnMarkersRequest(markers=[marker])

    def attempt() -> None:
        leader = brokers.leaders([(topic, partition)])[topic, partition]
        response = brokers.ask_node(leader, request, WriteTxnMarkersResponse)
        (row,) = response.markers[0].topics[0].partitions
        check_leader(row.error_code, subject=f"{topic}-{partition}")

    brokers.retry(attempt)


def fence_producer(
    brokers: Brokers, transactional_id: str, *, timeout_ms: int = FENCING_TIMEOUT_MS
) -> tuple[int, int]:
    """Fence the producer with this transactional id and abort its transaction (KIP-664).

    Return the producer id and the new epoch. `timeout_ms` applies to the id's next transaction.
    """
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
    )

    def attempt() -> tuple[int, int]:
        response = brokers.ask_transaction_coordinator(
            transactional_id, request, InitProducerIdResponse, max_version=5
        )
        check(response.error_code, subject=f"Transactional id {transactional_id!r}")
        return int(response.producer_id), int(response.producer_epoch)

    return brokers.retry(attempt)
