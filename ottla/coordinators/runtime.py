"""Decide, append, replay, respond: the shell around every coordinator.

* A decision reads a shard (the state of one partition of the internal topic) and returns records
  and a response. It changes nothing.
* The records are appended to the partition and replayed into the shard. Only replay changes the
  stored state of a shard, and loading the partition runs the same replay.
* The response is sent when the records are committed. If the commit times out, the replayed state
  is kept, because the records are in the log. If the records may be lost again (the writer's future
  fails), the runtime discards the shard and reloads the partition, so the state in memory never
  contains more than the log.

Lives on the broker's event loop; a partition has a single writer, the loop. Follows Kafka's
CoordinatorRuntime.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from ottla.base.clock import Clock
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.tasks import Tasks
from ottla.coordinators.hosted import HostedPartition, RuntimeSettings, Shard, Status
from ottla.coordinators.loading import Loader
from ottla.coordinators.ports import Marker, PartitionWriter, TransactionalProducer
from ottla.coordinators.replies import Reply, after
from ottla.wire.records.records import Record

_log = logging.getLogger(__name__)

R = TypeVar("R")
S = TypeVar("S", bound=Shard)


@dataclass(frozen=True, slots=True)
class Decision(Generic[R]):
    """The records to write, and the response to send once they are committed.

    With `producer` the records belong to its transaction.
    """

    records: Sequence[Record]
    response: R
    producer: TransactionalProducer | None = None


def decide_on(
    hosted: HostedPartition,
    shard: S,
    decision: Callable[[S], Decision[R]],
    refuse: Callable[[ErrorCode], R],
) -> Reply[R]:
    """Run a decision on the shard of `hosted`, which is active; see `CoordinatorRuntime.decide`."""
    committed: asyncio.Future[None] | None
    try:
        decided = decision(shard)
        if decided.records:
            committed = hosted.append(decided.records, decided.producer)
        else:
            committed = hosted.last_append()
    except ApiError as error:
        return refuse(error.code)
    if committed is None:
        return decided.response
    return after(committed, lambda: decided.response, refuse)


class CoordinatorRuntime(Generic[S]):
    """The partitions of one internal topic that this broker coordinates."""

    def __init__(
        self,
        topic: str,
        make_shard: Callable[[HostedPartition], S],
        *,
        writer: PartitionWriter,
        clock: Clock,
        tasks: Tasks,
        settings: Callable[[], RuntimeSettings],
    ) -> None:
        self._topic = topic
        self._make_shard = make_shard
        self._writer = writer
        self._clock = clock
        self._tasks = tasks
        self._settings = settings
        self._hosted: dict[int, HostedPartition] = {}
        # Records that could not be read by loads since the start.
        self.skipped_count = 0

    def load(self, partition: int, leader_epoch: int) -> None:
        """Become the coordinator of a partition that this broker leads since `leader_epoch`.

        A partition without records is ready on return. If the partition is already loaded, the next
        leader epoch only changes the epoch: no other broker can have written to it.
        """
        hosted = self._hosted.get(partition)
        if hosted is not None:
            if leader_epoch < hosted.leader_epoch:
                return
            is_alive = hosted.status in (Status.LOADING, Status.ACTIVE, Status.LOST)
            if is_alive and leader_epoch <= hosted.leader_epoch + 1:
                hosted.leader_epoch = leader_epoch
                return
            self.unload(partition)
        self._start(partition, leader_epoch)

    def unload(self, partition: int, leader_epoch: int | None = None) -> None:
        """Stop coordinating a partition, unless it was loaded with a later epoch than
        `leader_epoch`.
        """
        hosted = self._hosted.get(partition)
        if hosted is None or (leader_epoch is not None and leader_epoch < hosted.leader_epoch):
            return
        del self._hosted[partition]
        hosted.close()
        _log.info("coordinator partition unloaded topic=%s partition=%d", self._topic, partition)

    def close(self) -> None:
        """Unload all partitions; logs one line for all of them."""
        hosted, self._hosted = self._hosted, {}
        for partition in hosted.values():
            partition.close()
        if hosted:
            _log.info(
                "coordinator partitions unloaded topic=%s partitions=%d", self._topic, len(hosted)
            )

    def decide(
        self,
        partition: int,
        decision: Callable[[S], Decision[R]],
        refuse: Callable[[ErrorCode], R],
    ) -> Reply[R]:
        """Run a decision and return its response, or a future of it if it must wait.

        A decision without records may depend on earlier records: its response waits until they are
        committed. An ApiError, of the decision or of the append, becomes `refuse(code)`.
        """
        try:
            hosted = self._active(partition)
        except ApiError as error:
            return refuse(error.code)
        shard: S = hosted.shard  # type: ignore[assignment]
        return decide_on(hosted, shard, decision, refuse)

    def end_transaction(self, partition: int, marker: Marker) -> Reply[ErrorCode]:
        """Append and apply the end of a transaction that wrote here; NONE when it is committed."""
        try:
            committed = self._active(partition).append_marker(marker)
        except ApiError as error:
            return error.code
        return after(committed, lambda: ErrorCode.NONE, lambda code: code)

    def read(
        self, partition: int, query: Callable[[S], R], refuse: Callable[[ErrorCode], R]
    ) -> Reply[R]:
        """Respond from committed state: if the newest records are not committed yet, wait for them."""
        try:
            hosted = self._active(partition)
            response = query(hosted.shard)  # type: ignore[arg-type]
        except ApiError as error:
            return refuse(error.code)
        committed = hosted.last_append()
        return response if committed is None else after(committed, lambda: response, refuse)

    def find(self, partition: int) -> S | ErrorCode:
        """Return an active shard, or NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS."""
        try:
            return self._active(partition).shard  # type: ignore[return-value]
        except ApiError as error:
            return error.code

    def shards(self) -> Iterator[tuple[int, S]]:
        """Iterate over the active shards and their partitions."""
        return self._shards(Status.ACTIVE)

    def every_shard(self) -> Iterator[tuple[int, S]]:
        """Iterate over the active shards and those being loaded."""
        return self._shards(Status.ACTIVE, Status.LOADING)

    def _shards(self, *statuses: Status) -> Iterator[tuple[int, S]]:
        for partition, hosted in list(self._hosted.items()):
            if hosted.status in statuses:
                yield partition, hosted.shard  # type: ignore[misc]

    def is_loading(self) -> bool:
        """Return True if any partition is being loaded."""
        return any(hosted.status is Status.LOADING for hosted in self._hosted.values())

    def _active(self, partition: int) -> HostedPartition:
        hosted = self._hosted.get(partition)
        if hosted is None or hosted.status in (Status.FAILED, Status.CLOSED):
            raise ApiError(ErrorCode.NOT_COORDINATOR)
        if hosted.status is not Status.ACTIVE:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return hosted

    def _start(self, partition: int, leader_epoch: int) -> None:
        hosted = HostedPartition(
            self._topic, partition, leader_epoch, self._writer, self._settings, self._lost
        )
        hosted.attach(self._make_shard(hosted))
        self._hosted[partition] = hosted
        try:
            start, end = self._writer.bounds(self._topic, partition)
        except ApiError as error:
            self._fail(hosted, error)
            return
        if start == end:
            self._activate(hosted, 0)
        else:
            work = partial(self._load, hosted)
            self._tasks.supervise(work, "load", f"{self._topic}-{partition}")

    async def _load(self, hosted: HostedPartition) -> None:
        loader = Loader(
            self._writer,
            self._clock,
            chunk_bytes=self._settings().load_bytes,
            is_wanted=lambda: hosted.status is Status.LOADING,
        )
        try:
            count, end = await loader.load(self._topic, hosted.partition, hosted.shard)
            if hosted.status is Status.LOADING:
                # The next leader may lack records that are not committed: until they are, no
                # response depends on them, and no marker is written for them.
                await self._writer.committed(self._topic, hosted.partition, end)
        except ApiError as error:
            if hosted.status is Status.LOADING:
                self._fail(hosted, error)
            return
        except Exception:
            # The task is restarted; the next attempt begins with an empty state.
            hosted.attach(self._make_shard(hosted))
            raise
        finally:
            self.skipped_count += loader.skipped_count
        if hosted.status is Status.LOADING:
            self._activate(hosted, count)

    def _activate(self, hosted: HostedPartition, count: int) -> None:
        hosted.status = Status.ACTIVE
        hosted.shard.on_loaded()
        if count:
            _log.info("coordinator partition loaded topic=%s partition=%d epoch=%d records=%d",
                      self._topic, hosted.partition, hosted.leader_epoch, count)  # fmt: skip

    def _fail(self, hosted: HostedPartition, error: Exception) -> None:
        _log.error("coordinator partition cannot be loaded topic=%s partition=%d epoch=%d error=%s",
                   self._topic, hosted.partition, hosted.leader_epoch, error)  # fmt: skip
        hosted.close(Status.FAILED)

    def _lost(self, hosted: HostedPartition) -> None:
        """Reload the partition: replayed records may not be in the log any more."""
        if self._hosted.get(hosted.partition) is hosted:
            self.unload(hosted.partition)
            self._start(hosted.partition, hosted.leader_epoch)
