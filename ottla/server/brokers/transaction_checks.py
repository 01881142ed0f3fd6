"""Checks of transactional writes by a coordinator on another broker (KIP-890).

Checks of one iteration of the event loop are sent as one AddPartitionsToTxn request per
coordinator. Follows AddPartitionsToTxnManager.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode
from ottla.base.tasks import Tasks
from ottla.cluster.image import NO_LEADER
from ottla.coordinators.txn.machine import ProducerIdAndEpoch
from ottla.coordinators.txn.service import TransactionCoordinator
from ottla.server.brokers.peers import Peers
from ottla.server.brokers.remote import known_code
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

VERSION = 5
TIMEOUT_SECONDS = 30.0
# The default of Kafka's add.partitions.to.txn.retry.backoff.ms.
RETRY_SECONDS = 0.02

TopicPartition = tuple[str, int]
Codes = Mapping[TopicPartition, ErrorCode]


class _Check(NamedTuple):
    """A write to verify, and the future of the coordinator's result."""

    transaction: AddPartitionsToTxnTransaction
    partitions: Sequence[TopicPartition]
    codes: "asyncio.Future[Codes]"

    def finish(self, codes: Codes, default: ErrorCode) -> None:
        """Complete the future; partitions without a code have the default."""
        if not self.codes.done():
            self.codes.set_result({key: codes.get(key, default) for key in self.partitions})


class TransactionChecks:
    """Asks the coordinators on other brokers."""

    def __init__(
        self,
        node_id: int,
        transactions: TransactionCoordinator,
        peers: Peers,
        clock: Clock,
        tasks: Tasks,
    ) -> None:
        self._node_id = node_id
        self._transactions = transactions
        self._peers = peers
        self._clock = clock
        self._tasks = tasks
        # The checks of this iteration of the event loop, by coordinator.
        self._batches: dict[int, list[_Check]] = {}

    def is_elsewhere(self, transactional_id: str) -> bool:
        """Return True if another broker coordinates an id."""
        coordinator = self._transactions.coordinator_for(transactional_id)
        return coordinator not in (NO_LEADER, self._node_id)

    def check(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Sequence[TopicPartition],
        *,
        adds: bool,
    ) -> "asyncio.Future[Codes]":
        """Ask whether partitions are part of the producer's transaction, or add them if `adds`.

        The future does not fail; NETWORK_EXCEPTION if the coordinator cannot be reached.
        """
        topics: dict[str, AddPartitionsToTxnTopic] = {}
        for name, number in partitions:
            topic = topics.setdefault(name, AddPartitionsToTxnTopic(name=name))
            topic.partitions.append(number)
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            verify_only=not adds,
            topics=list(topics.values()),
        )
        loop = asyncio.get_running_loop()
        pending = _Check(transaction, partitions, loop.create_future())
        if not self._batches:
            loop.call_soon(self._flush)
        coordinator = self._transactions.coordinator_for(transactional_id)
        self._batches.setdefault(coordinator, []).append(pending)
        return pending.codes

    async def pause(self) -> None:
        """Wait until it is time to ask again."""
        await self._clock.sleep(RETRY_SECONDS)

    def _flush(self) -> None:
        batches, self._batches = self._batches, {}
        for coordinator, batch in batches.items():
            self._tasks.supervise(partial(self._send, coordinator, batch), "transaction checks")

    async def _send(self, coordinator: int, batch: Sequence[_Check]) -> None:
        channel = self._peers.channel(coordinator)
        codes: dict[str, Codes] = {}
        default = ErrorCode.COORDINATOR_NOT_AVAILABLE
        if channel is not None:
            request = AddPartitionsToTxnRequest(transactions=[check.transaction for check in batch])
            try:
                response = await channel.request(request, VERSION, seconds=TIMEOUT_SECONDS)
            except OSError:
                default = ErrorCode.NETWORK_EXCEPTION
            else:
                assert isinstance(response, AddPartitionsToTxnResponse)
                default = known_code(response.error_code) or ErrorCode.UNKNOWN_SERVER_ERROR
                codes = _codes(response)
        for check in batch:
            check.finish(codes.get(check.transaction.transactional_id, {}), default)


def _codes(response: AddPartitionsToTxnResponse) -> dict[str, Codes]:
    """Return the code of each partition, by transactional id."""
    return {
        result.transactional_id: {
            (topic.name, partition.partition_index): known_code(partition.partition_error_code)
            for topic in result.topic_results
            for partition in topic.results_by_partition
        }
        for result in response.results_by_transaction
    }
