"""Transactional producers of a simulated cluster: each transaction writes to several partitions."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ottla.base.errors import ErrorCode
from ottla.testing.checkers.kafka import Status, acknowledge
from ottla.testing.sim.cluster.clients import (
    GROUP,
    TRANSACTION,
    Refused,
    Unavailable,
    check,
)
from ottla.testing.sim.cluster.producers import (
    ACKS_ALL,
    Identity,
    batch_of,
    produce_request,
    produced,
)
from ottla.testing.sim.cluster.workers import JOINT, Work, Worker
from ottla.wire.fields import Message
from ottla.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    end_txn,
    init_producer_id,
    produce,
    txn_offset_commit,
)

M = TypeVar("M", bound=Message)

_TIMEOUT_MS = 8000
_PRODUCE_VERSION = 9
# After these errors the transaction cannot continue: the producer initializes again, which ends it.
_FATAL = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)


class TransactionalProducer(Worker):
    """Writes one value to some partitions in each transaction, with an offset of a group.

    It commits three of four transactions. A transaction that runs into its timeout is aborted by
    the coordinator; the producer then begins again with a new epoch.
    """

    def __init__(self, work: Work, name: str) -> None:
        super().__init__(work, name)
        self._identity: Identity | None = None
        self._sequences: dict[int, int] = {}
        self._count = 0

    async def run(self) -> None:
        """Run transactions until it is over and the last one is decided."""
        while not self.work.is_over or self._identity is None:
            try:
                if self._identity is None:
                    await self.initialize()
                if not self.work.is_over:
                    await self.transact()
                await self.client.clock.sleep((20 + self.rng.below(150)) / 1000)
            except Unavailable as error:
                self.state = str(error)
                await self.client.pause()
        self.client.close()

    async def initialize(self) -> None:
        """Get a new epoch; an earlier transaction ends before the response."""
        request = init_producer_id.InitProducerIdRequest(
            transactional_id=self.name, transaction_timeout_ms=_TIMEOUT_MS
        )
        response = await self._ask_coordinator(request, 4, init_producer_id.InitProducerIdResponse)
        self._check(response.error_code)
        self._identity = Identity(response.producer_id, response.producer_epoch)
        self._sequences.clear()

    async def transact(self) -> None:
        """Run one transaction to its end, with a new epoch if the former one was fenced."""
        if self._identity is None:
            await self.initialize()
        name = f"{self.name}.{self._count}"
        self._count += 1
        outcomes = self.work.history.outcomes
        # Aborted for certain until a commit is requested.
        outcomes[name] = Status.FAILED
        is_commit = self.rng.below(4) > 0
        first = self.rng.below(self.work.partitions)
        partitions = sorted({first, self.rng.below(self.work.partitions)})
        assert self._identity is not None
        try:
            await self._repeat(lambda: self._add_partitions(partitions))
            for partition in partitions:
                await self._write(name, partition)
            if self.rng.below(2):
                await self._repeat(self._add_offsets)
                await self._repeat(self._commit_offset)
            if is_commit:
                del outcomes[name]
            await self._repeat(lambda: self._end(is_commit=is_commit))
        except Refused as error:
            self.state = f"{name}: {error}"
            if error.error not in _FATAL:
                self.complain(f"{error} in transaction {name}")
            self._identity = None
            return
        if is_commit:
            outcomes[name] = Status.OK
        self.progress += 1

    async def _repeat(self, step: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while True:
            try:
                await step()
                return
            except Unavailable as error:
                self.state = str(error)
                await self.client.pause()

    async def _add_partitions(self, partitions: list[int]) -> None:
        identity = self._current()
        topic = add_partitions_to_txn.AddPartitionsToTxnTopic(name=JOINT, partitions=partitions)
        request = add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=identity.producer_id,
            v3_and_below_producer_epoch=identity.epoch,
            v3_and_below_topics=[topic],
        )
        response = await self._ask_coordinator(
            request, 3, add_partitions_to_txn.AddPartitionsToTxnResponse
        )
        for result in response.results_by_topic_v3_and_below[0].results_by_partition:
            self._check(result.partition_error_code)

    async def _write(self, name: str, partition: int) -> None:
        identity = self._current()
        values = [f"{name}.{partition}"]
        sequence = self._sequences.get(partition, 0)
        data = batch_of(self.client, values, identity, sequence, is_transactional=True)
        writes = self.work.history.send(self.name, (JOINT, partition), values, transaction=name)
        request = produce_request(JOINT, partition, data, ACKS_ALL, self.name)

        async def send() -> None:
            response = await self.client.ask_leader(
                JOINT, partition, request, _PRODUCE_VERSION, produce.ProduceResponse
            )
            result = produced(response)
            if result.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                acknowledge(writes, -1)
                return
            try:
                check(result.error_code)
            except Unavailable:
                self.client.forget_leader(JOINT, partition)
                raise
            acknowledge(writes, result.base_offset)

        await self._repeat(send)
        self._sequences[partition] = sequence + 1

    async def _add_offsets(self) -> None:
        identity = self._current()
        request = add_offsets_to_txn.AddOffsetsToTxnRequest(
            transactional_id=self.name,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            group_id=self.name,
        )
        response = await self._ask_coordinator(
            request, 3, add_offsets_to_txn.AddOffsetsToTxnResponse
        )
        self._check(response.error_code)

    async def _commit_offset(self) -> None:
        identity = self._current()
        requested = txn_offset_commit.TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=self._count, committed_metadata=""
        )
        request = txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=self.name,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            topics=[
                txn_offset_commit.TxnOffsetCommitRequestTopic(name=JOINT, partitions=[requested])
            ],
        )
        response = await self.client.ask_coordinator(
            GROUP, self.name, request, 3, txn_offset_commit.TxnOffsetCommitResponse
        )
        try:
            check(response.topics[0].partitions[0].error_code)
        except Unavailable:
            self.client.forget_coordinator(GROUP, self.name)
            raise

    async def _end(self, *, is_commit: bool) -> None:
        identity = self._current()
        request = end_txn.EndTxnRequest(
            transactional_id=self.name,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            committed=is_commit,
        )
        response = await self._ask_coordinator(request, 3, end_txn.EndTxnResponse)
        self._check(response.error_code)

    def _current(self) -> Identity:
        assert self._identity is not None
        return self._identity

    async def _ask_coordinator(self, request: Message, version: int, response: type[M]) -> M:
        return await self.client.ask_coordinator(TRANSACTION, self.name, request, version, response)

    def _check(self, code: int) -> None:
        try:
            check(code)
        except Unavailable as error:
            if str(error) != ErrorCode.CONCURRENT_TRANSACTIONS.name:
                self.client.forget_coordinator(TRANSACTION, self.name)
            raise
