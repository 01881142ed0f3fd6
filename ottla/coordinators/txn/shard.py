"""The transactional ids of one partition of __transaction_state, and the shell around `machine`.

Only replay of the log changes `transactions`. The shard completes prepared transactions: it sends
the markers when the decision is committed, then writes the record of completion. After a load the
decision is written again before its markers are sent, since the loaded records may not be
committed.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ottla.base.ageing import AgeingClock
from ottla.base.clock import Clock, steady_ms
from ottla.base.errors import ApiError
from ottla.coordinators.hosted import HostedPartition, Status
from ottla.coordinators.ports import MarkerWriter
from ottla.coordinators.refusals import group_error
from ottla.coordinators.replies import Reply, after
from ottla.coordinators.txn import machine, records
from ottla.coordinators.txn.machine import TransitionResult
from ottla.coordinators.txn.records import TransactionUpdate
from ottla.coordinators.txn.sending import RETRY_MS, Sending
from ottla.coordinators.txn.settings import TransactionSettings
from ottla.coordinators.txn.state import (
    NO_PRODUCER_ID,
    PREPARED,
    TopicPartition,
    TransactionMetadata,
    TransactionState,
)
from ottla.wire.records import batch
from ottla.wire.records.records import Record

_log = logging.getLogger(__name__)

# Keeps a batch of tombstones far below any max.message.bytes.
TOMBSTONES_MAX = 500
_SLICE_SECONDS = 0.005
_TIMEOUTS = "timeouts"
_EXPIRY = "expiry"

Query = Callable[[TransactionMetadata | None, int], TransitionResult]


class Dependencies(NamedTuple):
    """The dependencies that the ids of all partitions share.

    `is_gone` returns whether a partition was deleted, `version` returns the cluster's
    transaction.version, `fresh_id` returns producer ids that were never used.
    """

    markers: MarkerWriter
    is_gone: Callable[[TopicPartition], bool]
    version: Callable[[], int]
    fresh_id: Callable[[], Reply[int]]


class TransactionShard:
    """The transactional ids of one partition, while this broker leads the partition."""

    def __init__(
        self,
        host: HostedPartition,
        clock: Clock,
        settings: Callable[[], TransactionSettings],
        dependencies: Dependencies,
    ) -> None:
        self.transactions: dict[str, TransactionMetadata] = {}
        # Start of each transaction by the wall clock, and its deadline by the monotonic clock (ms):
        # a jump of the wall clock must not end a transaction.
        self._ongoing: dict[str, tuple[int, int]] = {}
        # Ids with records that may still be lost, how many of them, and the state before those.
        self._uncommitted: Counter[str] = Counter()
        self._committed: dict[str, TransactionMetadata | None] = {}
        self._sendings: dict[str, Sending] = {}
        self._host = host
        self._clock = clock
        self._ageing = AgeingClock(clock.time_ms(), clock.monotonic())
        self._settings = settings
        self._around = dependencies
        # Who waits for the end of a prepared transaction.
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}

    # -- replay

    def replay(self, record: Record, producer_id: int = batch.NO_PRODUCER_ID) -> None:
        """Apply one record, either just appended or read from the log."""
        change = records.decode(record)
        if change is None:
            return
        transactional_id, transaction = change
        ongoing = self._ongoing.pop(transactional_id, None)
        if transaction is None:
            self.transactions.pop(transactional_id, None)
            return
        self.transactions[transactional_id] = transaction
        if transaction.state is not TransactionState.ONGOING:
            return
        started_ms = transaction.started_ms
        if ongoing is None or ongoing[0] != started_ms:
            left_ms = transaction.left_ms(self._clock.time_ms())
            ongoing = started_ms, steady_ms(self._clock) + left_ms
        self._ongoing[transactional_id] = ongoing

    def end_transaction(self, producer_id: int, *, is_committed: bool) -> None:
        """Do nothing: this topic is not written in transactions."""

    # -- life

    def on_loaded(self) -> None:
        """Complete the transactions that the last coordinator left prepared."""
        for transaction in list(self.transactions.values()):
            if transaction.state in PREPARED:
                self._resume(transaction.transactional_id)
        if self._ongoing:
            self._watch()
        self._schedule_expiry()

    def on_unloaded(self) -> None:
        """Stop sending markers: the next coordinator sends them."""
        for sending in self._sendings.values():
            sending.stop()
        self._sendings.clear()
        for transactional_id in list(self._waiting):
            self._wake(transactional_id)

    # -- decisions

    def decide(self, transactional_id: str, query: Query) -> Reply[TransitionResult]:
        """Run a query of `machine`, store its result, and respond when that is committed."""
        transaction = self.transactions.get(transactional_id)
        result = query(transaction, self._clock.time_ms())
        committed = self._host.last_append()
        if result.next is not None:
            try:
                committed = self._store(result.next)
            except ApiError as error:
                return TransitionResult(group_error(error.code))
        if committed is None:
            return result
        return after(committed, lambda: result, lambda code: TransitionResult(group_error(code)))

    def is_uncommitted(self, transactional_id: str) -> bool:
        """Return True if the state of the id may still be lost."""
        return transactional_id in self._uncommitted

    def committed(self, transactional_id: str) -> TransactionMetadata | None:
        """Return the state of an id that cannot be lost any more; None if it has no such state yet."""
        if transactional_id in self._uncommitted:
            return self._committed[transactional_id]
        return self.transactions.get(transactional_id)

    def ended(self, transactional_id: str) -> asyncio.Future[None] | None:
        """Return a future that is done when the id's prepared transaction is complete; None if it
        has no prepared transaction.
        """
        transaction = self.transactions.get(transactional_id)
        if transaction is None or transaction.state not in PREPARED:
            return None
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(transactional_id, []).append(waiting)
        return waiting

    def _wake(self, transactional_id: str) -> None:
        for waiting in self._waiting.pop(transactional_id, ()):
            if not waiting.done():
                waiting.set_result(None)

    def _store(self, transaction: TransactionMetadata) -> asyncio.Future[None]:
        """Append and replay; raises ApiError if nothing was written."""
        transactional_id = transaction.transactional_id
        change = TransactionUpdate(transactional_id, transaction)
        record = records.encode(change, self._clock.time_ms(), self._around.version())
        before = self.committed(transactional_id)
        committed = self._host.append([record])
        self._committed[transactional_id] = before
        # The same, with what the log does not keep.
        self.transactions[transactional_id] = transaction
        self._uncommitted[transactional_id] += 1
        if transaction.state not in PREPARED:
            self._wake(transactional_id)
        if committed.done():
            self._stored(transaction, committed)
        else:
            committed.add_done_callback(partial(self._stored, transaction))
        return committed

    def _stored(self, transaction: TransactionMetadata, committed: asyncio.Future[None]) -> None:
        transactional_id = transaction.transactional_id
        self._uncommitted[transactional_id] -= 1
        is_failed = committed.exception() is not None
        if not is_failed:
            self._committed[transactional_id] = transaction
        if not self._uncommitted[transactional_id]:
            del self._uncommitted[transactional_id], self._committed[transactional_id]
        is_current = self.transactions.get(transactional_id) is transaction
        if self._host.status is not Status.ACTIVE or not is_current:
            return
        if transaction.state is TransactionState.ONGOING:
            self._watch()
        elif transaction.state in PREPARED and is_failed:
            self._retry(transactional_id, partial(self._resume, transactional_id))
        elif transaction.state in PREPARED:
            _log.debug("transaction decided transactional_id=%r state=%s producer_id=%d epoch=%d",
                       transactional_id, transaction.state.display_name, transaction.producer_id,
                       transaction.producer_epoch)  # fmt: skip
            self._send(transaction)

    # -- the end of a transaction

    def _retry(self, transactional_id: str, action: Callable[[], None]) -> None:
        self._host.timers.set(("prepared", transactional_id), RETRY_MS, action)

    def _resume(self, transactional_id: str) -> None:
        """Write the decision again; its markers are sent when it is committed."""
        transaction = self.transactions.get(transactional_id)
        if transaction is None or transaction.state not in PREPARED:
            return
        try:
            self._store(transaction)
        except ApiError as error:
            _log.warning(
                "transaction not resumed transactional_id=%r error=%s", transactional_id, error
            )
            self._retry(transactional_id, partial(self._resume, transactional_id))

    def _send(self, transaction: TransactionMetadata) -> None:
        transactional_id = transaction.transactional_id
        if transactional_id in self._sendings:
            return
        sending = Sending(
            transaction,
            self._host.leader_epoch,
            self._around.markers,
            self._host.timers,
            is_gone=self._around.is_gone,
            on_done=partial(self._complete, transaction),
        )
        self._sendings[transactional_id] = sending
        sending.advance()

    def _complete(self, transaction: TransactionMetadata) -> None:
        transactional_id = transaction.transactional_id
        self._sendings.pop(transactional_id, None)
        try:
            self._store(machine.complete(transaction, self._clock.time_ms()))
        except ApiError as error:
            _log.warning(
                "transaction not completed transactional_id=%r error=%s", transactional_id, error
            )
            self._retry(transactional_id, partial(self._complete, transaction))

    # -- time

    def _watch(self) -> None:
        """Check for timed-out transactions, as long as there are any transactions."""
        if not self._host.timers.has(_TIMEOUTS):
            delay_ms = self._settings().timeout_check_interval_ms
            self._host.timers.set(_TIMEOUTS, delay_ms, self.abort_timed_out)

    def abort_timed_out(self) -> None:
        """Abort timed-out transactions, and fence their producers."""
        now_ms = steady_ms(self._clock)
        for transactional_id, (_, due_ms) in list(self._ongoing.items()):
            if due_ms < now_ms:
                self._abort(self.transactions[transactional_id])
        if self._ongoing:
            self._watch()

    def _abort(self, transaction: TransactionMetadata) -> None:
        """Abort for the producer; if a new producer id is needed, wait for it first."""
        version = self._around.version()
        fresh: Reply[int] = NO_PRODUCER_ID
        if machine.needs_next_id(transaction, version):
            fresh = self._around.fresh_id()
        if not isinstance(fresh, asyncio.Future):
            self._fence(transaction, version, fresh)
        elif fresh.done():
            self._fence_with(transaction, version, fresh)
        else:
            fresh.add_done_callback(partial(self._fence_with, transaction, version))

    def _fence_with(
        self, transaction: TransactionMetadata, version: int, fresh: "asyncio.Future[int]"
    ) -> None:
        is_current = self.transactions.get(transaction.transactional_id) is transaction
        if fresh.cancelled() or fresh.exception() is not None:
            _log.warning(
                "no producer id allocated transactional_id=%r", transaction.transactional_id
            )
        elif is_current and self._host.status is Status.ACTIVE:
            self._fence(transaction, version, fresh.result())

    def _fence(self, transaction: TransactionMetadata, version: int, fresh_id: int) -> None:
        transactional_id = transaction.transactional_id
        _log.info("transaction timed out transactional_id=%r after_ms=%d",
                  transactional_id, transaction.timeout_ms)  # fmt: skip
        now_ms = self._clock.time_ms()
        try:
            self._store(machine.fence(transaction, now_ms, version=version, fresh_id=fresh_id))
        except ApiError as error:
            _log.warning(
                "transaction not aborted transactional_id=%r error=%s", transactional_id, error
            )

    def _schedule_expiry(self) -> None:
        delay_ms = self._settings().expiration_check_interval_ms
        self._host.timers.set(_EXPIRY, delay_ms, self.expire)

    def expire(self) -> None:
        """Delete ids that have not been used for the expiration time, in slices of time."""
        self._expire_some(list(self.transactions))

    def _expire_some(self, transactional_ids: list[str]) -> None:
        now_ms, now = self._clock.time_ms(), self._clock.monotonic()
        aged_ms, expiration_ms = (
            self._ageing.observe(now_ms, now),
            self._settings().id_expiration_ms,
        )
        ends = now + _SLICE_SECONDS
        tombstones: list[Record] = []
        while (
            transactional_ids
            and self._clock.monotonic() < ends
            and len(tombstones) < TOMBSTONES_MAX
        ):
            transaction = self.transactions.get(transactional_ids.pop())
            if transaction is not None and transaction.has_expired(aged_ms, expiration_ms):
                _log.info(
                    "transactional id expired transactional_id=%r", transaction.transactional_id
                )
                tombstones.append(
                    records.encode(TransactionUpdate(transaction.transactional_id, None), now_ms, 0)
                )
        is_written = True
        if tombstones:
            try:
                self._host.append(tombstones)
            except ApiError as error:
                is_written = False
                _log.warning("tombstones not written partition=%d error=%s",
                             self._host.partition, error)  # fmt: skip
        if transactional_ids and is_written:
            self._host.timers.set(_EXPIRY, 0, partial(self._expire_some, transactional_ids))
        else:
            self._schedule_expiry()
