"""The entry point to the transactions that this broker coordinates.

A method returns its result, or a future of it if it must wait. Errors are in the result, never
raised. The transactional id determines its partition of __transaction_state, and thereby the broker
that coordinates it. Codes are the newest versions' codes: handlers convert them to codes that
older clients know.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from ottla.base.clock import Clock
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.options import Snapshot
from ottla.base.tasks import Tasks
from ottla.cluster import names
from ottla.cluster.image import NO_LEADER, ClusterImage
from ottla.coordinators.naming import partition_of
from ottla.coordinators.ports import MarkerWriter, PartitionWriter
from ottla.coordinators.producer_ids import ProducerIds
from ottla.coordinators.replies import Reply, shaped
from ottla.coordinators.runtime import CoordinatorRuntime
from ottla.coordinators.txn import machine
from ottla.coordinators.txn.machine import (
    Ending,
    InitProducerIdParameters,
    ProducerIdAndEpoch,
    TransitionResult,
)
from ottla.coordinators.txn.settings import TransactionSettings
from ottla.coordinators.txn.shard import Dependencies, Query, TransactionShard
from ottla.coordinators.txn.state import TopicPartition, TransactionMetadata


class Environment(NamedTuple):
    """Values that are read again for each request; `version` is the finalized transaction.version."""

    options: Callable[[], Snapshot]
    image: Callable[[], ClusterImage]
    version: Callable[[], int]


class TransactionCoordinator:
    """The transactional ids of every partition of __transaction_state that this broker leads.

    `load` and `unload` follow the leadership of the partitions. Lives on the broker's loop.
    """

    def __init__(
        self,
        *,
        writer: PartitionWriter,
        markers: MarkerWriter,
        producer_ids: ProducerIds,
        clock: Clock,
        tasks: Tasks,
        now: Environment,
    ) -> None:
        self._producer_ids = producer_ids
        self._options = now.options
        self._image = now.image
        self._clock = clock
        self._tasks = tasks
        self._version = now.version
        dependencies = Dependencies(markers, self._is_gone, now.version, producer_ids.next_id)
        self._settings_of: tuple[Snapshot | None, TransactionSettings] = (
            None,
            TransactionSettings(),
        )
        self.runtime: CoordinatorRuntime[TransactionShard] = CoordinatorRuntime(
            names.TRANSACTION_STATE_TOPIC,
            lambda host: TransactionShard(host, clock, self.settings, dependencies),
            writer=writer,
            clock=clock,
            tasks=tasks,
            settings=lambda: self.settings().runtime,
        )

    def settings(self) -> TransactionSettings:
        """Return the current options for transactions."""
        snapshot = self._options()
        if self._settings_of[0] is not snapshot:
            self._settings_of = (snapshot, TransactionSettings.from_options(snapshot))
        return self._settings_of[1]

    def _is_gone(self, topic_partition: TopicPartition) -> bool:
        """Return True if a partition was deleted; False if the image is too old to contain our own
        topic.
        """
        image = self._image()
        return (
            image.topic(names.TRANSACTION_STATE_TOPIC) is not None
            and image.partition(*topic_partition) is None
        )

    # -- leadership

    def load(self, partition: int, leader_epoch: int) -> None:
        """Coordinate the ids of a partition that this broker leads since `leader_epoch`.

        Requests fail with COORDINATOR_LOAD_IN_PROGRESS until it is loaded. Transactions with a
        decided outcome are then completed.
        """
        self.runtime.load(partition, leader_epoch)

    def unload(self, partition: int, leader_epoch: int | None = None) -> None:
        """Stop coordinating a partition."""
        self.runtime.unload(partition, leader_epoch)

    @property
    def skipped_count(self) -> int:
        """Records of __transaction_state that could not be read and were skipped while loading."""
        return self.runtime.skipped_count

    def close(self) -> None:
        """Unload every partition."""
        self.runtime.close()

    # -- where an id is

    def partition_for(self, transactional_id: str) -> int:
        """Return the partition of __transaction_state for an id."""
        topic = self._image().topic(names.TRANSACTION_STATE_TOPIC)
        count = len(topic.partitions) if topic is not None else 0
        return partition_of(transactional_id, count or self.settings().state_partitions)

    def coordinator_for(self, transactional_id: str) -> int:
        """Return the broker that coordinates an id; -1 if no broker does at present."""
        topic = self._image().topic(names.TRANSACTION_STATE_TOPIC)
        if topic is None:
            return NO_LEADER
        partition = topic.partition(self.partition_for(transactional_id))
        return NO_LEADER if partition is None else partition.leader

    # -- a transaction

    def _latest(self, transactional_id: str) -> TransactionMetadata | ErrorCode | None:
        shard = self.runtime.find(self.partition_for(transactional_id))
        return shard if isinstance(shard, ErrorCode) else shard.transactions.get(transactional_id)

    async def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdAndEpoch
    ) -> TransitionResult:
        """Make the caller the id's only producer; `next` of the result has its id and epoch.

        `expected` is the producer id and epoch of a caller that continues (KIP-360).
        """
        if not 0 < timeout_ms <= self.settings().max_timeout_ms:
            return TransitionResult(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        existing = self._latest(transactional_id)
        if isinstance(existing, ErrorCode):
            return TransitionResult(existing)
        fresh_id = -1
        version = self._version()
        if machine.needs_producer_id(existing, expected, version):
            try:
                fresh_id = await self._fresh_id()
            except ApiError as error:
                return TransitionResult(error.code)
        parameters = InitProducerIdParameters(expected, timeout_ms, fresh_id, version)

        def query(transaction: TransactionMetadata | None, now_ms: int) -> TransitionResult:
            current = transaction or machine.new_transaction(transactional_id, fresh_id, timeout_ms)
            return machine.init_producer_id(current, parameters, now_ms)

        reply = self._decide(transactional_id, query)
        return await reply if isinstance(reply, asyncio.Future) else reply

    async def _fresh_id(self) -> int:
        reply = self._producer_ids.next_id()
        return await reply if isinstance(reply, asyncio.Future) else reply

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        *,
        version: int = 0,
    ) -> Reply[ErrorCode]:
        """Add partitions to the producer's transaction; `version` is the client's transaction
        version.
        """
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST

        def query(transaction: TransactionMetadata | None, now_ms: int) -> TransitionResult:
            return machine.add_partitions(
                transaction, producer, partitions, now_ms, version=version
            )

        return shaped(self._decide(transactional_id, query), _code)

    def end(
        self, transactional_id: str, producer: ProducerIdAndEpoch, *, is_commit: bool
    ) -> Reply[ErrorCode]:
        """Commit or abort; the response follows when the decision is committed, and the markers
        later.
        """
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST

        def query(transaction: TransactionMetadata | None, now_ms: int) -> TransitionResult:
            return machine.end(transaction, producer, is_commit=is_commit, now_ms=now_ms)

        return shaped(self._decide(transactional_id, query), _code)

    def end_with_bump(
        self, transactional_id: str, producer: ProducerIdAndEpoch, *, is_commit: bool
    ) -> Reply[TransitionResult]:
        """Commit or abort as `end` does; the client continues with `producer` of the result
        (KIP-890).
        """
        if not transactional_id:
            return TransitionResult(ErrorCode.INVALID_REQUEST)
        transaction = self._latest(transactional_id)
        if isinstance(transaction, ErrorCode):
            return TransitionResult(transaction)
        ending = Ending(producer, is_commit)
        if not machine.needs_next_id(transaction, machine.BUMPING_VERSION):
            return self._end_with_bump(transactional_id, ending)
        return self._tasks.spawn(
            self._end_with_next_id(transactional_id, ending), f"end of {transactional_id!r}"
        )

    def _end_with_bump(self, transactional_id: str, ending: Ending) -> Reply[TransitionResult]:
        def query(transaction: TransactionMetadata | None, now_ms: int) -> TransitionResult:
            return machine.end_with_bump(transaction, ending, now_ms)

        return self._decide(transactional_id, query)

    async def _end_with_next_id(self, transactional_id: str, ending: Ending) -> TransitionResult:
        try:
            ending = ending._replace(fresh_id=await self._fresh_id())
        except ApiError as error:
            return TransitionResult(error.code)
        reply = self._end_with_bump(transactional_id, ending)
        return await reply if isinstance(reply, asyncio.Future) else reply

    def ended(self, transactional_id: str) -> asyncio.Future[None] | None:
        """Return a future that is done when all markers of the id's decided transaction are
        written. None if the id has no decided transaction.
        """
        shard = self.runtime.find(self.partition_for(transactional_id))
        return None if isinstance(shard, ErrorCode) else shard.ended(transactional_id)

    def verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partition: TopicPartition,
        *,
        is_committed: bool = False,
    ) -> ErrorCode:
        """Return the error code for a write of a producer to a partition (KIP-890), as `machine`
        decides.

        `is_committed`: the addition of the partition is known to be committed.
        """
        shard = self.runtime.find(self.partition_for(transactional_id))
        if isinstance(shard, ErrorCode):
            return shard
        if not is_committed and shard.is_uncommitted(transactional_id):
            return ErrorCode.CONCURRENT_TRANSACTIONS
        return machine.verify_partition(
            shard.transactions.get(transactional_id), producer, partition
        )

    def _decide(self, transactional_id: str, query: Query) -> Reply[TransitionResult]:
        shard = self.runtime.find(self.partition_for(transactional_id))
        if isinstance(shard, ErrorCode):
            return TransitionResult(shard)
        return shard.decide(transactional_id, query)

    # -- looking

    def find(self, transactional_id: str) -> TransactionMetadata | ErrorCode | None:
        """Return the committed state of an id; an error code if this broker does not have it."""
        shard = self.runtime.find(self.partition_for(transactional_id))
        return shard if isinstance(shard, ErrorCode) else shard.committed(transactional_id)

    def transactions(self) -> Iterator[TransactionMetadata]:
        """Iterate over the committed states of all ids; states of partitions being loaded are
        missing.
        """
        for _, shard in self.runtime.shards():
            states = (shard.committed(transactional_id) for transactional_id in shard.transactions)
            yield from (state for state in states if state is not None)

    def is_loading(self) -> bool:
        """Return True if any partition is being loaded."""
        return self.runtime.is_loading()

    def is_long(self, transaction: TransactionMetadata, duration_ms: int) -> bool:
        """Return True if a transaction began more than `duration_ms` ago."""
        return self._clock.time_ms() - transaction.started_ms > duration_ms


def _code(result: TransitionResult) -> ErrorCode:
    return result.code
