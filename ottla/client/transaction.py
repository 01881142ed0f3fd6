"""Transactions step by step (KIP-98): begin, add, commit or abort, possibly in different processes.

For one thread, blocking. A transaction is identified by its transactional id and the producer id
and epoch that the coordinator assigned: a process that knows the three can end it. Therefore only
versions before the second part of KIP-890 are used, in which an epoch lasts from one `begin` to the
next and partitions are added by request; every broker supports them.
"""

import contextlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin.answers import check
from ottla.client.admin.offsets import CommittedOffset, TopicPartition
from ottla.client.brokers import Brokers
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from ottla.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from ottla.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

T = TypeVar("T")

# Later versions are for two-phase commit, for brokers, and for epochs that change with every
# transaction.
_INIT_VERSION_MAX = 5
_ADD_PARTITIONS_VERSION_MAX = 3
_VERSION_MAX = 4
_ONGOING = "Ongoing"
# Typical time until the markers of the last transaction are written.
_PAUSE_S = 0.005
_PAUSE_S_MAX = 0.1

# Errors of a transaction that was aborted, or replaced by a later one.
LOST = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)


class ProducerIdAndEpoch(NamedTuple):
    """The producer of a transaction."""

    producer_id: int
    epoch: int


@dataclass(frozen=True)
class Transaction:
    """One transaction, for the processes that write in it or end it."""

    transactional_id: str
    producer: ProducerIdAndEpoch

    def add(self, brokers: Brokers, topic: str, partitions: Sequence[int]) -> None:
        """Add partitions to the transaction, before anything is written to them."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer.producer_id,
            v3_and_below_producer_epoch=self.producer.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
        )

        def attempt() -> None:
            response = brokers.ask_transaction_coordinator(
                self.transactional_id,
                request,
                AddPartitionsToTxnResponse,
                max_version=_ADD_PARTITIONS_VERSION_MAX,
            )
            for topic_result in response.results_by_topic_v3_and_below:
                for row in topic_result.results_by_partition:
                    check(row.partition_error_code, subject=f"{topic}-{row.partition_index}")

        _settle(brokers, attempt)

    def add_offsets(
        self,
        brokers: Brokers,
        group_id: str,
        committed: Mapping[TopicPartition, CommittedOffset],
    ) -> None:
        """Commit a group's offsets as part of the transaction."""
        adding = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch,
            group_id=group_id,
        )

        def add() -> None:
            response = brokers.ask_transaction_coordinator(
                self.transactional_id, adding, AddOffsetsToTxnResponse, max_version=_VERSION_MAX
            )
            check(response.error_code, subject=f"Transaction {self.transactional_id!r}")

        _settle(brokers, add)
        request = self._offsets_request(group_id, committed)

        def commit() -> None:
            response = brokers.ask_coordinator(
                group_id, request, TxnOffsetCommitResponse, max_version=_VERSION_MAX
            )
            for topic in response.topics:
                for row in topic.partitions:
                    check(row.error_code, subject=f"Group {group_id!r}, {topic.name}")

        _settle(brokers, commit)

    def _offsets_request(
        self, group_id: str, committed: Mapping[TopicPartition, CommittedOffset]
    ) -> TxnOffsetCommitRequest:
        by_topic: dict[str, list[TxnOffsetCommitRequestPartition]] = defaultdict(list)
        for (topic, partition), value in committed.items():
            row = TxnOffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=value.offset,
                committed_leader_epoch=value.leader_epoch,
                committed_metadata=value.metadata,
            )
            by_topic[topic].append(row)
        return TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group_id,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch,
            topics=[
                TxnOffsetCommitRequestTopic(name=name, partitions=rows)
                for name, rows in by_topic.items()
            ],
        )

    def commit(self, brokers: Brokers) -> None:
        """Commit; idempotent. ApiError with a code in LOST if the transaction no longer exists."""
        self._end(brokers, committed=True)

    def abort(self, brokers: Brokers) -> None:
        """Abort; does nothing if the transaction was aborted already, or replaced by a later one."""
        with contextlib.suppress(ApiError):
            self._end(brokers, committed=False)

    def _end(self, brokers: Brokers, *, committed: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch,
            committed=committed,
        )

        def attempt() -> None:
            response = brokers.ask_transaction_coordinator(
                self.transactional_id, request, EndTxnResponse, max_version=_VERSION_MAX
            )
            check(response.error_code, subject=f"Transaction {self.transactional_id!r}")

        _settle(brokers, attempt)


def begin(brokers: Brokers, transactional_id: str, timeout_ms: int) -> Transaction:
    """Begin a transaction: an open one with this id is aborted and its producer fenced.

    The coordinator aborts the new one if it has not ended `timeout_ms` after the first write.
    """
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
    )

    def attempt() -> Transaction:
        response = brokers.ask_transaction_coordinator(
            transactional_id, request, InitProducerIdResponse, max_version=_INIT_VERSION_MAX
        )
        if response.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            raise ApiError(
                ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                f"The brokers allow no transactions of {timeout_ms} ms: set "
                "kafka.transaction.timeout.ms to what their transaction.max.timeout.ms allows.",
            )
        check(response.error_code, subject=f"Transaction {transactional_id!r}")
        producer = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
        return Transaction(transactional_id, producer)

    return _settle(brokers, attempt)


def find_lost(brokers: Brokers, transactions: Iterable[Transaction]) -> list[Transaction]:
    """Return the transactions that are no longer open as they began (DescribeTransactions,
    KIP-664).
    """

    def is_lost(transaction: Transaction) -> bool:
        name = transaction.transactional_id
        request = DescribeTransactionsRequest(transactional_ids=[name])

        def attempt() -> bool:
            response = brokers.ask_transaction_coordinator(
                name, request, DescribeTransactionsResponse
            )
            (state,) = response.transaction_states
            if state.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                return True
            check(state.error_code, subject=f"Transaction {name!r}")
            now = ProducerIdAndEpoch(state.producer_id, state.producer_epoch)
            return state.transaction_state != _ONGOING or now != transaction.producer

        return brokers.retry(attempt)

    return [transaction for transaction in transactions if is_lost(transaction)]


def list_open(brokers: Brokers, prefix: str) -> list[str]:
    """Return the transactional ids with this prefix that have an open transaction (KIP-664)."""
    request = ListTransactionsRequest(state_filters=[_ONGOING])
    names: list[str] = []
    for node_id in brokers.node_ids():
        response = brokers.ask_node(node_id, request, ListTransactionsResponse)
        check(response.error_code)
        names += [row.transactional_id for row in response.transaction_states]
    return sorted(name for name in names if name.startswith(prefix))


def _settle(brokers: Brokers, attempt: Callable[[], T]) -> T:
    """Return the result of `attempt`, retrying while the previous transaction is still ending."""
    deadline = time.monotonic() + brokers.timeout_s
    pause = _PAUSE_S
    while True:
        try:
            return brokers.retry(attempt)
        except ApiError as error:
            is_passing = error.code is ErrorCode.CONCURRENT_TRANSACTIONS
            if not is_passing or time.monotonic() + pause > deadline:
                raise
        time.sleep(pause)
        pause = min(pause * 2, _PAUSE_S_MAX)
