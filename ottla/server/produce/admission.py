"""Admission of transactional batches: their partitions must be part of an open transaction.

Otherwise a producer that was fenced, or whose transaction was ended by the coordinator, would leave
records that no marker ever ends, and read-committed consumers would wait at them for ever
(KIP-890). Clients of transaction.version 2 do not add partitions themselves: the broker adds them
here. Follows AddPartitionsToTxnManager and ReplicaManager.

`Admission` decides about a write. The functions at the end find the write of a produce request, and
apply the decision to each of its batches.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol, TypeVar, Union

from ottla.base.clock import Clock
from ottla.base.errors import ApiError, ErrorCode, ProtocolError
from ottla.base.options import Snapshot
from ottla.base.tasks import Tasks
from ottla.cluster.image import BrokerImage, ClusterImage
from ottla.coordinators.replies import Reply
from ottla.coordinators.txn.machine import BUMPING_VERSION, ProducerIdAndEpoch
from ottla.coordinators.txn.service import TransactionCoordinator
from ottla.net.connection import Connection
from ottla.replication.partition import Partition
from ottla.replication.replicas import Replicas
from ottla.server.produce.heavy_batches import HeavyBatches
from ottla.server.quotas.clients import RequestUsage
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records.batch import is_transactional, parse_header
from ottla.wire.schema import first_version

_FIRST_VERSION_WITH_ABORTABLE = 11
_FIRST_VERSION_THAT_ADDS = 12
_FIRST_VERSION_WITH_TOPIC_IDS = first_version(TopicProduceData, "topic_id")

T = TypeVar("T")
TopicPartition = tuple[str, int]
# The error of each refused partition; partitions that may be written are not included.
Refusals = Mapping[TopicPartition, ErrorCode]

_MS_PER_S = 1000
_UNREACHABLE = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_COORDINATOR,
    }
)


class TransactionSupport(Enum):
    """The transaction features that a client supports, by the version of its request."""

    # The client gets INVALID_TXN_STATE if a partition is not part of the transaction.
    OLD = "old"
    # The client gets TRANSACTION_ABORTABLE in that case.
    ABORTABLE = "abortable"
    # The client leaves it to the broker to add partitions.
    ADDING = "adding"


class TransactionalWrite(NamedTuple):
    """The producer, the partitions and the transaction of a write."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    partitions: Sequence[Partition]
    support: TransactionSupport


class RemoteCoordinators(Protocol):
    """The coordinators on other brokers."""

    def is_elsewhere(self, transactional_id: str) -> bool:
        """Return True if another broker coordinates an id."""
        ...

    def check(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Sequence[TopicPartition],
        *,
        adds: bool,
    ) -> "asyncio.Future[Mapping[TopicPartition, ErrorCode]]":
        """Verify that partitions are part of a transaction, or add them if `adds`; never fails."""
        ...

    async def pause(self) -> None:
        """Wait until it is time to ask again."""
        ...


class _RemoteCheck(NamedTuple):
    """A check that the coordinator on another broker performs.

    `guards` is the state of each partition when the check was sent: if a transaction has ended
    there since, the result may be about that transaction.
    """

    refused: Mapping[TopicPartition, ErrorCode]
    guards: Mapping[TopicPartition, tuple[int, int]]
    codes: "asyncio.Future[Mapping[TopicPartition, ErrorCode]]"


# Refusals, a pending check by a coordinator, or None if the previous transaction of the id is still
# being completed.
_Verdict = Union[Refusals, "asyncio.Future[ErrorCode]", _RemoteCheck, None]


class Admission:
    """Admits transactional batches; those of one transactional id in the order of their arrival."""

    def __init__(
        self,
        transactions: TransactionCoordinator,
        tasks: Tasks,
        options: Callable[[], Snapshot],
        remote: RemoteCoordinators | None = None,
    ) -> None:
        self._transactions = transactions
        self._remote = remote
        self._tasks = tasks
        self._options = options
        # The last pending turn of each transactional id whose writes have to wait.
        self._turns: dict[str, asyncio.Future[None]] = {}

    def ask(self, write: TransactionalWrite) -> "Refusals | Waiting":
        """Return the refusals, or a `Waiting` if they are not known yet."""
        before = self._turns.get(write.transactional_id)
        verdict = None if before is not None else self._decide(write)
        if isinstance(verdict, Mapping):
            return verdict
        return Waiting(self, write, before, verdict)

    def take_turn(self, transactional_id: str) -> "asyncio.Future[None]":
        """Make all later writes of the id wait for the returned future."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._turns[transactional_id] = turn
        return turn

    def end_turn(self, transactional_id: str, turn: "asyncio.Future[None]") -> None:
        """Let the next write of the id proceed; further calls have no effect."""
        if self._turns.get(transactional_id) is turn:
            del self._turns[transactional_id]
        if not turn.done():
            turn.set_result(None)

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]":
        """Start a background task that is cancelled when the broker stops."""
        return self._tasks.spawn(work, name)

    def _decide(self, write: TransactionalWrite) -> _Verdict:
        refused, unverified = _split(write)
        if not unverified:
            return refused
        if self._remote is not None and self._remote.is_elsewhere(write.transactional_id):
            return self._check_remotely(self._remote, write, refused, unverified)
        if write.support is TransactionSupport.ADDING:
            return self._add(write, refused, unverified)
        if self._options().boolean("transaction.partition.verification.enable"):
            refused |= self._verify(write, unverified, is_committed=False)
        return refused

    def _check_remotely(
        self,
        remote: RemoteCoordinators,
        write: TransactionalWrite,
        refused: Mapping[TopicPartition, ErrorCode],
        partitions: Sequence[TopicPartition],
    ) -> _Verdict:
        adds = write.support is TransactionSupport.ADDING
        if not adds and not self._options().boolean("transaction.partition.verification.enable"):
            return refused
        codes = remote.check(write.transactional_id, write.producer, partitions, adds=adds)
        guards = {
            partition: guard
            for partition, guard in _guards(write).items()
            if partition in partitions
        }
        return _RemoteCheck(refused, guards, codes)

    async def _refusals_of(self, write: TransactionalWrite, check: _RemoteCheck) -> Refusals | None:
        """Return the refusals; None if the check has to be repeated."""
        codes = await check.codes
        now = _guards(write)
        is_outdated = any(now[partition] != guard for partition, guard in check.guards.items())
        if is_outdated or ErrorCode.CONCURRENT_TRANSACTIONS in codes.values():
            return None
        failed = {
            partition: code for partition, code in codes.items() if code is not ErrorCode.NONE
        }
        return {**check.refused, **failed}

    def _verify(
        self, write: TransactionalWrite, partitions: Sequence[TopicPartition], *, is_committed: bool
    ) -> dict[TopicPartition, ErrorCode]:
        verify = self._transactions.verify
        name, producer = write.transactional_id, write.producer
        codes = {
            partition: verify(name, producer, partition, is_committed=is_committed)
            for partition in partitions
        }
        return {partition: code for partition, code in codes.items() if code is not ErrorCode.NONE}

    def _add(
        self,
        write: TransactionalWrite,
        refused: dict[TopicPartition, ErrorCode],
        partitions: Sequence[TopicPartition],
    ) -> _Verdict:
        reply = self._transactions.add_partitions(
            write.transactional_id, write.producer, partitions, version=BUMPING_VERSION
        )
        if isinstance(reply, asyncio.Future):
            return reply
        if reply is ErrorCode.CONCURRENT_TRANSACTIONS:
            return None
        if reply is not ErrorCode.NONE:
            refused |= dict.fromkeys(partitions, reply)
        return refused

    async def confirm(self, write: TransactionalWrite) -> Refusals:
        """Return the refusals of a batch that was admitted before and has been validated since.

        Its transaction may have ended meanwhile (KIP-890). Does not wait for a turn: the caller
        holds it.
        """
        verdict = self._decide(write)
        if isinstance(verdict, Mapping):
            return verdict
        return await self.verdict(write, None, verdict)

    async def verdict(
        self, write: TransactionalWrite, before: "asyncio.Future[None] | None", verdict: _Verdict
    ) -> Refusals:
        """Return the refusals; CONCURRENT_TRANSACTIONS if the previous one takes too long to end."""
        if before is not None:
            await before
            verdict = self._decide(write)
        patience_ms = self._options().integer("add.partitions.to.txn.retry.backoff.max.ms")
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience_ms / _MS_PER_S
        while True:
            if isinstance(verdict, _RemoteCheck):
                refusals = await self._refusals_of(write, verdict)
                if refusals is not None:
                    return refusals
                assert self._remote is not None
                await self._remote.pause()
            elif isinstance(verdict, asyncio.Future):
                code = await verdict
                if code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                    return self._settled(write, code)
            elif verdict is not None:
                return verdict
            remaining_s = deadline - loop.time()
            if remaining_s <= 0:
                return self._settled(write, ErrorCode.CONCURRENT_TRANSACTIONS)
            ended = self._transactions.ended(write.transactional_id)
            if ended is not None:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(remaining_s):
                        await ended
            verdict = self._decide(write)

    def _settled(self, write: TransactionalWrite, code: ErrorCode) -> Refusals:
        """Return the refusals for the coordinator's result; an addition may be undone by now."""
        refused, unverified = _split(write)
        if code is ErrorCode.NONE:
            return refused | self._verify(write, unverified, is_committed=True)
        return refused | dict.fromkeys(unverified, code)


class Waiting:
    """A write whose refusals are not known yet."""

    def __init__(
        self,
        admission: Admission,
        write: TransactionalWrite,
        before: "asyncio.Future[None] | None",
        verdict: _Verdict,
    ) -> None:
        self._admission = admission
        self._write = write
        self._before = before
        self._verdict = verdict

    def then(
        self,
        act: Callable[[Refusals], Reply[T]],
        unwritten: "Sequence[asyncio.Future[None]]" = (),
    ) -> "asyncio.Future[T]":
        """Return a future of what `act` returns, or of the ApiError or ProtocolError it raises.

        `act` is called in the same iteration of the event loop in which the refusals are
        determined, so that they still apply. Call this immediately: it keeps the write's position
        in the queue of its transactional id. The next write of the id also waits for `unwritten`,
        to which `act` adds the batches that are still to be validated off the event loop.
        """
        name = self._write.transactional_id
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        turn = self._admission.take_turn(name)

        async def wait() -> None:
            await self._wait(act, future)
            for batch in unwritten:
                await batch
            self._admission.end_turn(name, turn)

        task = self._admission.spawn(wait(), f"admission of {name!r}")

        def ended(task: "asyncio.Task[None]") -> None:
            self._admission.end_turn(name, turn)
            if task.cancelled() or task.exception() is not None:
                future.cancel()

        task.add_done_callback(ended)
        return future

    async def _wait(self, act: Callable[[Refusals], Reply[T]], future: "asyncio.Future[T]") -> None:
        refusals = await self._admission.verdict(self._write, self._before, self._verdict)
        try:
            reply = act(refusals)
        except (ApiError, ProtocolError) as error:
            future.set_exception(error)
        else:
            _pass_on(reply, future)


def _pass_on(reply: Reply[T], future: "asyncio.Future[T]") -> None:
    if not isinstance(reply, asyncio.Future):
        future.set_result(reply)
        return

    def settle(done: "asyncio.Future[T]") -> None:
        error = done.exception()
        if error is None:
            future.set_result(done.result())
        else:
            future.set_exception(error)

    reply.add_done_callback(settle)


def _split(
    write: TransactionalWrite,
) -> tuple[dict[TopicPartition, ErrorCode], list[TopicPartition]]:
    """Return the partitions that are refused at once, and those without an open transaction."""
    refused: dict[TopicPartition, ErrorCode] = {}
    unverified: list[TopicPartition] = []
    producer_id, epoch = write.producer
    for partition in write.partitions:
        key = (partition.topic, partition.partition)
        producers = partition.log.producers
        known = producers.producers.get(producer_id)
        if known is not None and known.epoch > epoch:
            refused[key] = ErrorCode.INVALID_PRODUCER_EPOCH
        elif not producers.has_open_transaction(producer_id, epoch):
            unverified.append(key)
    return refused, unverified


def _guards(write: TransactionalWrite) -> dict[TopicPartition, tuple[int, int]]:
    """Return for each partition its leader epoch, and how many transactions have ended there."""
    guards = {}
    for partition in write.partitions:
        known = partition.log.producers.producers.get(write.producer.producer_id)
        count = 0 if known is None else known.markers_count
        guards[partition.topic, partition.partition] = (partition.leader_epoch, count)
    return guards


def error_for(code: ErrorCode, support: TransactionSupport) -> ErrorCode:
    """Return the error code for a client that writes to a refused partition."""
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and support is TransactionSupport.OLD:
        return ErrorCode.INVALID_TXN_STATE
    is_busy = code is ErrorCode.CONCURRENT_TRANSACTIONS and support is not TransactionSupport.ADDING
    # Clients retry after this error without refreshing their metadata first.
    return ErrorCode.NOT_ENOUGH_REPLICAS if is_busy or code in _UNREACHABLE else code


class ProduceBroker(Protocol):
    """The parts of a broker that produce requests need."""

    @property
    def clock(self) -> Clock:
        """The monotonic clock of the broker's loop."""
        ...

    @property
    def image(self) -> ClusterImage:
        """The cluster's metadata as of now."""
        ...

    @property
    def replicas(self) -> Replicas:
        """The partitions of the broker."""
        ...

    @property
    def admission(self) -> Admission:
        """The admission of transactional batches."""
        ...

    @property
    def heavy_batches(self) -> HeavyBatches:
        """The validation of large batches."""
        ...

    @property
    def tasks(self) -> Tasks:
        """The background tasks of the broker."""
        ...


class ProduceContext(Protocol):
    """The parts of a request's context that a produce request needs."""

    # True if the next requests of the connection must wait for this response.
    keeps_order: bool

    @property
    def broker(self) -> ProduceBroker:
        """The broker that serves the request."""
        ...

    @property
    def connection(self) -> Connection:
        """The connection that the response is sent on."""
        ...

    @property
    def api_version(self) -> int:
        """The version of the request."""
        ...

    @property
    def client_id(self) -> str | None:
        """The name that the client has chosen."""
        ...

    @property
    def usage(self) -> RequestUsage | None:
        """The quotas of the client; None without a quota."""
        ...

    def address_of(self, broker: BrokerImage) -> tuple[str, int] | None:
        """Return the address at which the client reaches a broker."""
        ...


def target_of(
    context: ProduceContext, topic: TopicProduceData, item: PartitionProduceData
) -> Partition:
    """Return the partition that the item is for; raises ApiError if it is not on this broker."""
    replicas = context.broker.replicas
    if context.api_version >= _FIRST_VERSION_WITH_TOPIC_IDS:
        return replicas.get_by_id(topic.topic_id, item.index)
    return replicas.get(topic.name, item.index)


def bytes_of(item: PartitionProduceData) -> Any:
    """Return the record batch, or None: decoded record bytes are one view over the frame."""
    return item.records


def keep_records(request: ProduceRequest) -> int:
    """Copy the records out of the frame; return their size."""
    size = 0
    for topic in request.topic_data:
        for item in topic.partition_data:
            if item.records is not None:
                item.records = bytearray(bytes_of(item))
                size += len(item.records)
    return size


def write_of(context: ProduceContext, request: ProduceRequest) -> TransactionalWrite | None:
    """Return the write to be admitted; None if no batch of the request belongs to a transaction.

    Raises ApiError if the whole request is refused.
    """
    if request.transactional_id is not None:
        return _write_of(context, request, request.transactional_id)
    for topic in request.topic_data:
        for item in topic.partition_data:
            if is_transactional(item.records):
                raise ApiError(
                    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                    "A transactional batch needs a transactional id in the request.",
                )
    return None


def _write_of(
    context: ProduceContext, request: ProduceRequest, transactional_id: str
) -> TransactionalWrite | None:
    producers: set[ProducerIdAndEpoch] = set()
    partitions: list[Partition] = []
    for topic in request.topic_data:
        for item in topic.partition_data:
            if not is_transactional(item.records):
                continue
            header = parse_header(bytes_of(item))
            if header.producer_id < 0:
                continue
            producers.add(ProducerIdAndEpoch(header.producer_id, header.producer_epoch))
            # Partitions with an error join no transaction; appending reports the error.
            with contextlib.suppress(ApiError):
                partition = target_of(context, topic, item)
                partition.check_leader()
                partitions.append(partition)
    if len(producers) > 1:
        raise ApiError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            "The batches of a transaction have more than one producer id or epoch.",
        )
    if not partitions:
        return None
    return TransactionalWrite(
        transactional_id, producers.pop(), partitions, _support(context.api_version)
    )


def check_admitted(
    context: ProduceContext, target: Partition, item: PartitionProduceData, refusals: Refusals
) -> None:
    """Raise ApiError if the batch may not be written because of the state of its transaction."""
    code = refusals.get((target.topic, target.partition))
    if code is not None:
        reason = f"The partition is not known to be part of the transaction: {code.name}."
        raise ApiError(error_for(code, _support(context.api_version)), reason)
    if context.api_version < _FIRST_VERSION_THAT_ADDS or not is_transactional(item.records):
        return
    header = parse_header(bytes_of(item))
    is_unknown = header.producer_id not in target.log.producers.producers
    if is_unknown and header.base_sequence > 0:
        # Each transaction begins at sequence 0, so earlier batches have been lost.
        raise ApiError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"The first batch of producer {header.producer_id} has sequence number {header.base_sequence} instead of 0.",
        )


async def check_still_admitted(
    context: ProduceContext,
    target: Partition,
    item: PartitionProduceData,
    transactional_id: str | None,
) -> None:
    """Raise ApiError if the transaction of a batch has ended while the batch was validated."""
    records = bytes_of(item)
    if transactional_id is None or not is_transactional(records):
        return
    header = parse_header(records)
    producer = ProducerIdAndEpoch(header.producer_id, header.producer_epoch)
    support = _support(context.api_version)
    write = TransactionalWrite(transactional_id, producer, [target], support)
    check_admitted(context, target, item, await context.broker.admission.confirm(write))


def _support(version: int) -> TransactionSupport:
    if version >= _FIRST_VERSION_THAT_ADDS:
        return TransactionSupport.ADDING
    is_aware = version >= _FIRST_VERSION_WITH_ABORTABLE
    return TransactionSupport.ABORTABLE if is_aware else TransactionSupport.OLD
