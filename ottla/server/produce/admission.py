"""Admission of transactional batches: their partitions must be part of an open transaction.

Otherwise a producer that was fenced, or whose transaction was ended by the coordinator, would leave
records that no marker ever ends, and read-committed consumers would wait at them for ever
(KIP-890). Clients of transaction.version 2 do not add partitions themselves: the broker adds them
here. Follows AddPartitionsToTxnManager and ReplicaManager.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol, TypeVar, Union

from ottla.base.errors import ApiError, ErrorCode, ProtocolError
from ottla.base.options import Snapshot
from ottla.base.tasks import Tasks
from ottla.coordinators.replies import Reply
from ottla.coordinators.txn.machine import BUMPING_VERSION, Producer
from ottla.coordinators.txn.service import TransactionCoordinator
from ottla.replication.partition import Partition

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
    producer: Producer
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
        producer: Producer,
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
