"""One partition of an internal topic on the broker that coordinates it: append, replay, wait.

The runtime creates one for each leadership; a shard uses it to write and to set timers.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import NamedTuple, Protocol

from ottla.base.errors import ApiError, ErrorCode
from ottla.coordinators.loading import Replayed
from ottla.coordinators.ports import Marker, PartitionWriter, TransactionalProducer
from ottla.coordinators.timers import MS_PER_S, Timers
from ottla.wire.records import batch
from ottla.wire.records.records import Record

_log = logging.getLogger(__name__)


class Shard(Replayed, Protocol):
    """The state of one partition: created empty, filled by replay, then used for decisions."""

    def on_loaded(self) -> None:
        """Start to act: everything in the log has been replayed."""
        ...

    def on_unloaded(self) -> None:
        """Respond to all waiting requests with NOT_COORDINATOR; the shard is not used again."""
        ...


class RuntimeSettings(NamedTuple):
    """Settings for writing and reading: commit timeout in milliseconds, codec, bytes per read."""

    commit_timeout_ms: int = 5000
    compression: int = 0
    load_bytes: int = 256 * 1024


class Status(Enum):
    """The states of a hosted partition; only an ACTIVE one accepts decisions."""

    LOADING = "loading"
    ACTIVE = "active"
    # An append may be lost; the runtime is about to reload the partition.
    LOST = "lost"
    # The log could not be read; stays until the next leadership.
    FAILED = "failed"
    CLOSED = "closed"


@dataclass(slots=True, eq=False)
class _Append:
    """Records that were replayed and are not committed yet."""

    committed: asyncio.Future[None]
    deadline: asyncio.TimerHandle | None = None


@dataclass(slots=True, eq=False)
class HostedPartition:
    """One partition of the internal topic on this broker; the shard writes to the log through it."""

    topic: str
    partition: int
    leader_epoch: int
    writer: PartitionWriter
    settings: Callable[[], RuntimeSettings]
    on_lost: Callable[["HostedPartition"], None]
    timers: Timers = field(default_factory=Timers)
    status: Status = Status.LOADING
    _shard: Shard | None = None
    _appends: list[_Append] = field(default_factory=list)

    @property
    def shard(self) -> Shard:
        """The state; set right after this object, because the shard's constructor needs this
        object.
        """
        assert self._shard is not None
        return self._shard

    def attach(self, shard: Shard) -> None:
        """Attach an empty state, initially and before every retry of the load."""
        self._shard = shard

    def append(
        self, records: Sequence[Record], producer: TransactionalProducer | None = None
    ) -> asyncio.Future[None]:
        """Append and replay records, and return a future of the commit.

        With `producer` the records take effect when its transaction is committed. Raises ApiError
        if nothing was written. The future fails with REQUEST_TIMED_OUT after the commit timeout,
        with the writer's ApiError, or with NOT_COORDINATOR if the records may be lost.
        """
        assert records
        if self.status is not Status.ACTIVE:
            raise ApiError(ErrorCode.NOT_COORDINATOR)
        settings = self.settings()
        written = self.writer.append(
            self.topic,
            self.partition,
            list(records),
            self.leader_epoch,
            compression=settings.compression,
            producer=producer,
        )
        producer_id = batch.NO_PRODUCER_ID if producer is None else producer.producer_id
        for record in records:
            self.shard.replay(record, producer_id)
        return self._await_commit(written, settings)

    def append_marker(self, marker: Marker) -> asyncio.Future[None]:
        """Append the end of a transaction and replay it, with the errors of `append`."""
        if self.status is not Status.ACTIVE:
            raise ApiError(ErrorCode.NOT_COORDINATOR)
        written = self.writer.append_marker(self.topic, self.partition, marker, self.leader_epoch)
        self.shard.end_transaction(marker.producer_id, is_committed=marker.is_commit)
        return self._await_commit(written, self.settings())

    def _await_commit(
        self, written: asyncio.Future[int], settings: RuntimeSettings
    ) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        pending = _Append(loop.create_future())
        self._appends.append(pending)
        if written.done():
            self._written(pending, written)
        else:
            delay = settings.commit_timeout_ms / MS_PER_S
            timed_out = ApiError(ErrorCode.REQUEST_TIMED_OUT)
            pending.deadline = loop.call_later(delay, _fail, pending.committed, timed_out)
            written.add_done_callback(partial(self._written, pending))
        return pending.committed

    def _written(self, pending: _Append, written: asyncio.Future[int]) -> None:
        if pending.deadline is not None:
            pending.deadline.cancel()
        if pending in self._appends:
            self._appends.remove(pending)
        if written.cancelled():
            error: BaseException | None = ApiError(ErrorCode.NOT_COORDINATOR)
        else:
            error = written.exception()
        if error is None:
            if not pending.committed.done():
                pending.committed.set_result(None)
            return
        if self.status is Status.ACTIVE:
            _log.warning("append failed, partition is loaded again topic=%s partition=%d error=%s",
                         self.topic, self.partition, error)  # fmt: skip
            self.status = Status.LOST
            # Deferred: a shard may be in the middle of its effects.
            asyncio.get_running_loop().call_soon(self.on_lost, self)
        _fail(pending.committed, error)

    def last_append(self) -> asyncio.Future[None] | None:
        """Return the future of the latest append that is not committed yet; None if all are
        committed.
        """
        return self._appends[-1].committed if self._appends else None

    def close(self, status: Status = Status.CLOSED) -> None:
        """Cancel timers; pending commits and requests fail with NOT_COORDINATOR."""
        self.status = status
        self.timers.close()
        self.shard.on_unloaded()
        for pending in self._appends:
            if pending.deadline is not None:
                pending.deadline.cancel()
            _fail(pending.committed, ApiError(ErrorCode.NOT_COORDINATOR))
        self._appends.clear()


def _fail(committed: asyncio.Future[None], error: BaseException) -> None:
    if not committed.done():
        committed.set_exception(error)
        # If no caller waits any more, asyncio must not report the error.
        committed.exception()
