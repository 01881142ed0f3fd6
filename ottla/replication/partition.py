"""One replica of one partition on this broker: leader or follower, its log and its high watermark.

A single-writer state machine: everything here runs on the broker's loop and nothing blocks.
Requests that have to wait for it (acks=all, delayed fetches) are attached as waiters and woken
through `Delayed`. Follows kafka.cluster.Partition.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from ottla.base.buffers import Part
from ottla.base.clock import Clock
from ottla.base.errors import ApiError, ErrorCode, StorageError
from ottla.base.files import FileSystem
from ottla.cluster.image import NO_LEADER, PartitionState
from ottla.replication import acknowledgement
from ottla.replication.acknowledgement import ACKS_ALL
from ottla.replication.delayed import Delayed, Waiter
from ottla.replication.fetched import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Fetched,
    FetchOptions,
    aborted_transactions,
    behind_emptied,
    new_fetched,
)
from ottla.replication.isr import UNKNOWN_EPOCH, IsrMachine
from ottla.replication.page_cache import warm
from ottla.replication.traffic.throttle import NOT_THROTTLED, Throttled
from ottla.storage.config import LONG_MAX
from ottla.storage.files.txn_index import AbortedTransaction
from ottla.storage.log.log import AppendInfo, FetchedRecords, Log
from ottla.wire.records.batch import HEADER_SIZE

__all__ = ["ACKS_ALL", "NO_EPOCH", "READ_COMMITTED", "READ_UNCOMMITTED", "Partition"]

NO_EPOCH = -1
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """The objects that all partitions of a broker share.

    `flush_soon` serves topics with flush.on.ack: it flushes the log off the event loop, then calls
    the partition's `flushed`.
    """

    node_id: int
    clock: Clock
    files: FileSystem
    delayed: Delayed
    flush_soon: Callable[["Partition"], None]


class Partition:
    """A replica from the first LeaderAndIsr to StopReplica.

    Invariants: log_start_offset ≤ high_watermark ≤ log_end_offset; only a leader appends from
    clients; `high_watermark` is the one of the `IsrMachine` while leading.
    """

    __slots__ = (
        "__weakref__",
        "_clock",
        "_delayed",
        "_files",
        "_flush_soon",
        "adding_replicas",
        "appended_bytes",
        "appended_records",
        "appends_count",
        "epoch_start_offset",
        "fetched_bytes",
        "fetches_count",
        "high_watermark",
        "is_deleted",
        "is_leader",
        "is_offline",
        "isr",
        "leader",
        "leader_epoch",
        "leading_since_epoch",
        "log",
        "min_insync_replicas",
        "node_id",
        "partition",
        "partition_epoch",
        "rejected_bytes",
        "replicas",
        "replicated_bytes",
        "throttled",
        "topic",
        "topic_id",
        "waiters",
    )

    def __init__(
        self, log: Log, around: Dependencies, *, high_watermark: int, min_insync_replicas: int
    ) -> None:
        self.log = log
        self.topic = log.topic
        self.topic_id = log.topic_id
        self.partition = log.partition
        self.node_id = around.node_id
        # A topic's option; code that changes it must call `settings_changed`.
        self.min_insync_replicas = min_insync_replicas
        # The log needs it from the beginning: after a restart it may never move again, and
        # retention and compaction stop at it.
        self.high_watermark = log.high_watermark = min(
            max(high_watermark, log.log_start_offset), log.log_end_offset
        )
        log.producers.decide_up_to(self.high_watermark)
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH
        # The first of the consecutive epochs in which this broker leads.
        self.leading_since_epoch = NO_EPOCH
        self.partition_epoch = NO_EPOCH
        # The start offset of this epoch's records; consumers get no end offset before it is
        # committed (KIP-207).
        self.epoch_start_offset = 0
        self.replicas: tuple[int, ...] = ()
        self.adding_replicas: tuple[int, ...] = ()
        self.throttled = NOT_THROTTLED
        self.isr: IsrMachine | None = None
        self.is_leader = False
        self.is_offline = False
        self.is_deleted = False
        # Increases with every append; waiting fetches compute how much was added.
        self.appended_bytes = self.replicated_bytes = 0
        # For metrics.
        self.appended_records = self.appends_count = 0
        self.fetched_bytes = self.fetches_count = self.rejected_bytes = 0
        self.waiters: dict[Waiter, None] = {}
        self._clock = around.clock
        self._files = around.files
        self._delayed = around.delayed
        self._flush_soon = around.flush_soon

    # -- what the controller decides --------------------------------------------------------------

    def apply(self, state: PartitionState) -> bool:
        """Apply `state`; return False if it is older than the current state."""
        if state.leader_epoch < self.leader_epoch:
            return False
        if state.leader_epoch == self.leader_epoch and state.partition_epoch < self.partition_epoch:
            return False
        is_new_epoch = state.leader_epoch > self.leader_epoch
        is_decision = is_new_epoch or state.partition_epoch > self.partition_epoch
        self.leader = state.leader
        self.leader_epoch = state.leader_epoch
        self.partition_epoch = state.partition_epoch
        self.replicas, self.adding_replicas = state.replicas, state.adding_replicas
        if state.leader == self.node_id:
            if self.isr is None or is_new_epoch:
                self._lead(state)
            else:
                self.isr.assign(state.replicas, state.isr, is_decision=is_decision)
                self.advance()
        else:
            self.is_leader = False
            self.isr = None
        self.changed()
        return True

    def _lead(self, state: PartitionState) -> None:
        if not self.is_leader:
            self.leading_since_epoch = state.leader_epoch
        self.isr = IsrMachine(
            self.node_id,
            replicas=state.replicas,
            isr=state.isr,
            high_watermark=self.high_watermark,
            now=self._clock.monotonic(),
            is_successor=state.leader_epoch > 0,
        )
        self.epoch_start_offset = self.log.log_end_offset
        self.log.epochs.assign(state.leader_epoch, self.epoch_start_offset)
        self.is_leader = True
        self.advance()
        if self.log.config.flush_on_ack and self.log.recovery_point < self.log.log_end_offset:
            # Recovered records count once they are durable, and no append may ever cause a flush.
            self._flush_soon(self)

    def go_offline(self) -> None:
        """Return KAFKA_STORAGE_ERROR from now on: the log directory has failed."""
        self.is_offline = True
        self.is_leader = False
        self.changed()

    def retire(self) -> None:
        """Stop serving: the replica is being stopped or deleted."""
        self.is_deleted = True
        self.is_leader = False
        self.isr = None
        self.leader = NO_LEADER
        self.changed()

    def replace_log(self, log: Log) -> None:
        """Continue with an identical log in another directory."""
        self.log = log
        log.high_watermark = self.high_watermark
        if log.config.flush_on_ack and log.recovery_point < log.log_end_offset:
            self._flush_soon(self)
        self.changed()

    def settings_changed(self, min_insync_replicas: int, throttled: Throttled) -> None:
        """Apply the topic's changed options; a lower minimum may commit records."""
        self.min_insync_replicas, self.throttled = min_insync_replicas, throttled
        if self.isr is not None and self.advance():
            self.changed()

    def changed(self) -> None:
        """Make the waiters of this partition check it."""
        if self.waiters:
            self._delayed.changed(self)

    # -- produce ----------------------------------------------------------------------------------

    def append_as_leader(
        self, records: memoryview | bytearray, *, acks: int, from_client: bool = True
    ) -> AppendInfo:
        """Append batches and advance the high watermark as far as the ISR allows.

        Raises ApiError NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS, KAFKA_STORAGE_ERROR or one of
        the log's errors.
        """
        isr = self.isr
        if not self.is_leader or isr is None:
            raise self._not_leader()
        log = self.log
        if acks < 0 and not isr.has_enough_replicas(self.min_insync_replicas):
            raise ApiError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"The partition has {len(isr.isr)} in-sync replicas; min.insync.replicas is {self.min_insync_replicas}.",
            )
        must_begin = False
        if isr.followers:
            now = self._clock.monotonic()
            isr.appended(log.log_end_offset, now)
            must_begin = now < isr.settled_at
        try:
            info = log.append_as_leader(
                records, self.leader_epoch, from_client=from_client, must_begin=must_begin
            )
        except StorageError as error:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR) from error
        except ApiError as error:
            if _is_temporary(isr, error, self._clock.monotonic()):
                raise self._not_leader() from error
            raise
        self.appended_bytes += info.size_bytes
        self.appended_records += info.records_count
        self.appends_count += 1
        if log.config.flush_on_ack:
            self._flush_soon(self)
        self.advance()
        if self.waiters:
            self._delayed.changed(self)
        return info

    def flushed(self) -> None:
        """Apply that more of the log is durable."""
        if self.isr is not None and self.is_leader:
            self.advance()
        self.changed()

    def advance(self) -> bool:
        """Advance a leader's high watermark as far as the ISR allows; return True if it moved."""
        isr, log = self.isr, self.log
        assert isr is not None
        # With flush.on.ack, this replica counts with its durable end offset.
        end_offset = log.recovery_point if log.config.flush_on_ack else log.log_end_offset
        if not isr.advance(end_offset, self.min_insync_replicas):
            return False
        # Retention must not delete uncommitted records.
        high_watermark = self.high_watermark = log.high_watermark = isr.high_watermark
        if log.producers.undecided:
            # Reads of committed records do this as well, but there may be none.
            log.producers.decide_up_to(high_watermark)
        return True

    def is_acknowledged(self, acks: int, offset: int) -> bool:
        """Return True if everything below `offset` is as safe as `acks` requires."""
        if acks == ACKS_ALL:
            return self.high_watermark >= offset
        return not self.log.config.flush_on_ack or self.log.recovery_point >= offset

    def acknowledgement(
        self, acks: int, offset: int, seconds: float
    ) -> "asyncio.Future[ErrorCode] | None":
        """Return None if everything below `offset` is as safe as `acks` requires, else a future."""
        if not self.is_awaited(acks, offset):
            return None
        return self.wait_for_acknowledgement(acks, offset, max(seconds, 0.0))

    def is_awaited(self, acks: int, offset: int) -> bool:
        """Return True unless everything below `offset` is as safe as `acks` requires."""
        has_to = acks == ACKS_ALL or (acks and self.log.config.flush_on_ack)
        return bool(has_to) and not self.is_acknowledged(acks, offset)

    def wait_for_acknowledgement(
        self, acks: int, offset: int, seconds: float | None
    ) -> "asyncio.Future[ErrorCode]":
        """Return a future: NONE when everything below `offset` is safe, otherwise the error."""
        return acknowledgement.wait(self, self._delayed, acks, offset, seconds)

    # -- fetch ------------------------------------------------------------------------------------

    def check_leader(
        self, current_leader_epoch: int = NO_EPOCH, *, or_follower: bool = False
    ) -> None:
        """Raise unless this broker leads, or may follow, in the client's epoch (KIP-320, KIP-392)."""
        if not self.is_leader and (not or_follower or self.is_offline or self.is_deleted):
            raise self._not_leader()
        if current_leader_epoch == NO_EPOCH or current_leader_epoch == self.leader_epoch:
            return
        if current_leader_epoch < self.leader_epoch:
            raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)
        raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    def fetch(
        self,
        offset: int,
        max_bytes: int,
        leader_epoch: int,
        options: FetchOptions,
        *,
        at_least_one: bool,
    ) -> Fetched:
        """Return what a consumer may read from `offset` on, and count it.

        `leader_epoch` is the one that the consumer knows. With `at_least_one` the first batch is
        returned even if it is larger than `max_bytes`. Raises ApiError for another leader or epoch,
        an offset outside of the log, and damaged records.
        """
        isolation_level, range_bytes_min, only_if_cached, or_follower = options
        if not self.is_leader or leader_epoch != NO_EPOCH:
            self.check_leader(leader_epoch, or_follower=or_follower)
        log = self.log
        high_watermark = self.high_watermark
        stable_offset = log.last_stable_offset(high_watermark)
        end_offset = stable_offset if isolation_level == READ_COMMITTED else high_watermark
        start_offset = log.log_start_offset
        is_inside = start_offset <= offset <= log.log_end_offset
        is_at_end = is_inside and offset >= end_offset
        records: Part | None = b""
        aborted: Sequence[AbortedTransaction] = ()
        if not is_at_end and (at_least_one or max_bytes > 0 or not is_inside):
            read = self.read(offset, max_bytes, end_offset, range_bytes_min,
                             at_least_one=at_least_one, only_if_cached=only_if_cached)  # fmt: skip
            if read is not None and read.first_batch_size == HEADER_SIZE:
                again = partial(self.read, max_bytes=max_bytes, end_offset=end_offset,
                                range_bytes_min=range_bytes_min, at_least_one=at_least_one,
                                only_if_cached=True)  # fmt: skip
                read = behind_emptied(read, end_offset, again)
            records = None if read is None else read[0]
            if records and isolation_level == READ_COMMITTED:
                aborted = aborted_transactions(log, offset, end_offset, records)
        if records is not None:
            self.fetches_count += 1
            self.fetched_bytes += len(records)
        results = records, high_watermark, stable_offset, start_offset, aborted, is_at_end
        return new_fetched(results)

    def take_back(self, fetched: Fetched) -> None:
        """Do not count the bytes of a result, because they are not sent."""
        if fetched.records:
            self.fetched_bytes -= len(fetched.records)

    def read(
        self,
        offset: int,
        max_bytes: int,
        end_offset: int,
        range_bytes_min: int = LONG_MAX,
        *,
        at_least_one: bool,
        only_if_cached: bool,
    ) -> FetchedRecords | None:
        """Return records from `offset` to `end_offset`; None only if `only_if_cached` and cold.

        Records of at least `range_bytes_min` bytes are returned as a FileRange.

        The caller has called `check_leader`. Raises OFFSET_OUT_OF_RANGE outside of the log.
        """
        try:
            return self.log.read(
                offset,
                max_bytes,
                max_offset=end_offset,
                at_least_one=at_least_one,
                only_if_cached=only_if_cached,
                range_bytes_min=range_bytes_min,
            )
        except StorageError as error:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR) from error

    async def warm(self, offset: int, max_bytes: int) -> None:
        """Read the bytes from `offset` on into the page cache, if possible."""
        directory, files = self.log.directory, self._files
        await files.in_background(lambda: warm(files, directory, offset, max_bytes))

    def follower_fetched(
        self,
        replica: int,
        offset: int,
        log_start_offset: int,
        broker_epoch: int = UNKNOWN_EPOCH,
    ) -> None:
        """Record a follower's position; raises NOT_LEADER_OR_FOLLOWER if it is not a replica.

        Only for requests whose sender is known to be that broker: a forged position would commit
        records that no other replica has (CVE-2018-1288). The caller has called `check_leader`.
        """
        assert self.isr is not None
        log_start_before = self.isr.log_start_of(replica)
        is_replica = self.isr.fetched(
            replica,
            offset=offset,
            log_start_offset=log_start_offset,
            leader_end_offset=self.log.log_end_offset,
            now=self._clock.monotonic(),
            broker_epoch=broker_epoch,
        )
        if not is_replica:
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            raise ApiError(code, f"Broker {replica} has no replica of this partition.")
        if self.advance() or log_start_offset != log_start_before:
            self.changed()

    @property
    def is_end_known(self) -> bool:
        """True if the high watermark has reached this leader's epoch (KIP-207)."""
        return self.high_watermark >= self.epoch_start_offset

    # -- the rest ---------------------------------------------------------------------------------

    def wait(
        self, check: Callable[[], T | None], expire: Callable[[], T], seconds: float
    ) -> "asyncio.Future[T]":
        """Return a future of `check`'s first value, or of `expire()` after `seconds`.

        `check` is called whenever this replica has changed.
        """
        return self._delayed.wait((self,), check=check, expire=expire, seconds=max(seconds, 0.0))

    def _not_leader(self) -> ApiError:
        if self.is_offline:
            return ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
        if self.is_deleted:
            return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)


def _is_temporary(isr: IsrMachine, error: ApiError, now: float) -> bool:
    """Return True if the same batch may be accepted later, here or by another leader.

    A leader that was replaced without knowing it lacks the producer's last records. A new leader
    may get the producer's second batch while the client waits for the former leader's response to
    the first one; Apache Kafka accepts the second, and then rejects the first for ever. For a
    client, OUT_OF_ORDER_SEQUENCE_NUMBER would mean that acknowledged records are lost.
    """
    if error.code is ErrorCode.UNKNOWN_PRODUCER_ID:
        return True
    return error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and isr.is_deserted(now)
