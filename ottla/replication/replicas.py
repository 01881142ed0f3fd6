"""All replicas of this broker: found by name or id, created and stopped by the controller.

Owns the partitions, not their files: `storage.directories.disk.LogDirectories` does. A log
directory that fails takes its partitions offline and does not affect the others. Follows
kafka.server.ReplicaManager.
"""

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from ottla.base.clock import Clock
from ottla.base.errors import ApiError, ErrorCode, OutOfDescriptorsError, StorageError
from ottla.base.files import FileSystem
from ottla.base.options import Snapshot
from ottla.base.tasks import Tasks
from ottla.base.uuids import ZERO_UUID
from ottla.cluster.image import ClusterImage, PartitionState
from ottla.replication.delayed import Delayed
from ottla.replication.fetcher import ReplicaFetchers
from ottla.replication.moving import Move
from ottla.replication.partition import Dependencies, Partition
from ottla.replication.traffic.counts import Traffic
from ottla.replication.traffic.throttle import ReplicationTraffic, Throttled, names_replica
from ottla.storage.config import LogConfig
from ottla.storage.directories.disk import LogDirectories
from ottla.storage.directories.log_directory import FILE_NAME_MAX, future_name
from ottla.storage.directories.strays import StrayReason
from ottla.storage.log.log import Log

_log = logging.getLogger(__name__)

Key = tuple[str, int]

# The pause before another attempt if no descriptor was free.
RETRY_SECONDS = 0.5


class Replicas:
    """The replicas of a broker; runs on the broker's loop from start to stop."""

    def __init__(
        self,
        node_id: int,
        directories: LogDirectories,
        *,
        clock: Clock,
        files: FileSystem,
        tasks: Tasks,
        topic_options: Callable[[str], Snapshot],
        image: Callable[[], ClusterImage],
    ) -> None:
        self.node_id = node_id
        self.directories = directories
        self.delayed = Delayed()
        self._tasks = tasks
        self._around = Dependencies(
            node_id=node_id,
            clock=clock,
            files=files,
            delayed=self.delayed,
            flush_soon=self._flush_soon,
        )
        self._topic_options = topic_options
        self._image = image
        # Logs move between directories at this rate; the code that knows the options replaces it.
        self.move_bytes_per_second: Callable[[], float] = lambda: math.inf
        # Replaced by the code that knows the broker's options.
        self.replication = ReplicationTraffic()
        # Set by the code that knows the other brokers; without it nothing is replicated.
        self.fetchers: ReplicaFetchers | None = None
        self._partitions: dict[Key, Partition] = {}
        self._by_id: dict[tuple[bytes, int], Partition] = {}
        # The partitions of a former registration, until the controller names them again.
        self._unconfirmed: set[Key] = set()
        self._offline_directories: set[str] = set()
        self._controller_epoch = 0
        self._flushing: set[Partition] = set()
        # The traffic of partitions that have been removed.
        self.past_traffic = Traffic()
        # The refused appends to replicas, and reads of replicas, by topic.
        self.failed_appends: Counter[str] = Counter()
        self.failed_fetches: Counter[str] = Counter()
        # Called for partitions that this broker starts or stops to lead.
        self.on_leading: list[Callable[[Partition], None]] = []
        self.on_ceasing: list[Callable[[Partition], None]] = []
        # Called when a log directory has failed and its partitions are offline.
        self.on_directory_offline: list[Callable[[], None]] = []

    # -- finding ----------------------------------------------------------------------------------

    def get(self, topic: str, partition: int) -> Partition:
        """Return a replica.

        Raises ApiError UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER (it is on another
        broker), or KAFKA_STORAGE_ERROR (its directory is offline).
        """
        replica = self._partitions.get((topic, partition))
        if replica is None:
            raise self._missing(topic, partition)
        if replica.is_offline:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
        return replica

    def get_by_id(self, topic_id: bytes, partition: int) -> Partition:
        """Return a replica of the topic with this id; raises UNKNOWN_TOPIC_ID if no replica has it."""
        replica = self._by_id.get((topic_id, partition))
        if replica is None:
            name = self._image().topic_names.get(topic_id)
            if name is None:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
            raise self._missing(name, partition)
        if replica.is_offline:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
        return replica

    def find(self, topic: str, topic_id: bytes, partition: int) -> Partition | None:
        """Return a replica by the topic's name, or by its id if the name is empty; None if absent."""
        if topic:
            return self._partitions.get((topic, partition))
        return self._by_id.get((topic_id, partition))

    def _missing(self, topic: str, partition: int) -> ApiError:
        if self._image().partition(topic, partition) is None:
            return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def all_partitions(self) -> Sequence[Partition]:
        """Return every replica, including the offline ones."""
        return list(self._partitions.values())

    def traffic(self) -> Traffic:
        """Return the traffic of all partitions together since the start."""
        total = Traffic()
        total.add(self.past_traffic)
        for partition in self._partitions.values():
            total.add(partition)
        return total

    def partitions(self) -> Sequence[Partition]:
        """Return every replica that is not offline."""
        return [partition for partition in self._partitions.values() if not partition.is_offline]

    # -- what the controller says -----------------------------------------------------------------

    def apply_leader_and_isr(
        self, controller_epoch: int, states: Sequence[PartitionState]
    ) -> dict[Key, ErrorCode]:
        """Apply `states` to this broker's replicas; return an error code for each partition.

        STALE_CONTROLLER_EPOCH for all if the controller has been replaced, or for one if its leader
        epoch is older than the current one.
        """
        if controller_epoch < self._controller_epoch:
            return {
                (state.topic, state.partition): ErrorCode.STALE_CONTROLLER_EPOCH for state in states
            }
        self._controller_epoch = controller_epoch
        return {
            (state.topic, state.partition): self._apply(state)
            for state in states
            if self.node_id in state.replicas
        }

    def registration_lost(self) -> None:
        """Note that topics may now be deleted and created again without an order to this broker."""
        self._unconfirmed = set(self._partitions)

    def _apply(self, state: PartitionState) -> ErrorCode:
        try:
            partition = self._ensure(state)
            if partition.is_offline:
                return ErrorCode.KAFKA_STORAGE_ERROR
            was_leader, former_epoch = partition.is_leader, partition.leader_epoch
            if not partition.apply(state):
                return ErrorCode.STALE_CONTROLLER_EPOCH
            if former_epoch != partition.leader_epoch and self.fetchers is not None:
                self.fetchers.update(partition, state.isr)
        except StorageError as error:
            self.directory_offline(error.directory, error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        except ApiError as error:
            return error.code
        if partition.is_leader and (not was_leader or former_epoch != partition.leader_epoch):
            for listener in self.on_leading:
                listener(partition)
        elif was_leader and not partition.is_leader:
            for listener in self.on_ceasing:
                listener(partition)
        return ErrorCode.NONE

    def _unfollow(self, partition: Partition) -> None:
        if self.fetchers is not None:
            self.fetchers.unfollow(partition)

    def _ensure(self, state: PartitionState) -> Partition:
        key = (state.topic, state.partition)
        partition = self._partitions.get(key)
        is_confirmed = key not in self._unconfirmed
        self._unconfirmed.discard(key)
        if partition is not None:
            if partition.topic_id == state.topic_id:
                return partition
            if is_confirmed:
                raise ApiError(ErrorCode.INCONSISTENT_TOPIC_ID)
            # The topic was deleted and created again while this broker was cut off.
            self._stop(key, delete=False)
        options = self._topic_options(state.topic)
        log = self.directories.get(*key)
        if log is not None and log.topic_id not in (state.topic_id, ZERO_UUID):
            # A log of a deleted topic: a crash undid the renaming of its directory, or this broker
            # was down when the topic was deleted.
            self._set_aside(key, StrayReason.OTHER_TOPIC_ID)
            log = None
        if log is None and not state.is_new and self.directories.has_failed_directory:
            # It may well be there: an empty log in another directory must not pass for it.
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
        if log is None or log.topic_id != state.topic_id:
            config = LogConfig.from_options(options)
            log = self.directories.create(*key, state.topic_id, config)
        partition = Partition(
            log,
            self._around,
            high_watermark=self.directories.high_watermark(*key),
            min_insync_replicas=options.integer("min.insync.replicas"),
        )
        partition.throttled = self._throttled(state.partition, options)
        self._partitions[key] = partition
        self._by_id[(state.topic_id, state.partition)] = partition
        future = self.directories.moves.future(*key)
        if future is not None:
            self._move(partition, future)
        return partition

    def stop_replicas(
        self,
        controller_epoch: int,
        partitions: Iterable[Key],
        *,
        delete: bool,
        settles: bool = True,
    ) -> dict[Key, ErrorCode]:
        """Stop serving partitions, and delete their logs if requested; return a code for each.

        If `settles` is false, the caller must call one of the two methods below once for several
        calls.
        """
        if controller_epoch < self._controller_epoch:
            return dict.fromkeys(partitions, ErrorCode.STALE_CONTROLLER_EPOCH)
        self._controller_epoch = controller_epoch
        codes = {key: self._stop(key, delete) for key in partitions}
        return codes | self.settle_deletions(codes) if settles else codes

    def settle_deletions(self, partitions: Iterable[Key]) -> dict[Key, ErrorCode]:
        """Return when no crash can restore deleted logs; return codes only for failures."""
        try:
            self.directories.settle_deletions()
        except StorageError as error:
            return self._not_settled(partitions, error)
        return {}

    async def settle_deletions_in_background(
        self, partitions: Iterable[Key]
    ) -> dict[Key, ErrorCode]:
        """Call `settle_deletions` in a background task."""
        try:
            await self.directories.settle_deletions_in_background()
        except StorageError as error:
            return self._not_settled(partitions, error)
        return {}

    def _not_settled(self, partitions: Iterable[Key], error: StorageError) -> dict[Key, ErrorCode]:
        self.directory_offline(error.directory, error)
        return dict.fromkeys(partitions, ErrorCode.KAFKA_STORAGE_ERROR)

    def set_aside(self, key: Key, reason: StrayReason) -> None:
        """Stop a replica that does not belong to the partition any more, and rename its log.

        The caller has made sure of that, and calls `settle_deletions_in_background` afterwards.
        """
        self._stop(key, delete=False)
        try:
            self._set_aside(key, reason)
        except StorageError as error:
            self.directory_offline(error.directory, error)

    def _set_aside(self, key: Key, reason: StrayReason) -> None:
        path = self.directories.set_aside(*key, reason)
        _log.warning("log set aside partition=%s-%d reason=%s kept_as=%s", *key, reason.value, path)

    def _stop(self, key: Key, delete: bool) -> ErrorCode:
        partition = self._partitions.pop(key, None)
        self._unconfirmed.discard(key)
        if partition is not None:
            self.past_traffic.add(partition)
            self._by_id.pop((partition.topic_id, partition.partition), None)
            was_leader = partition.is_leader
            self._unfollow(partition)
            partition.retire()
            if was_leader:
                for listener in self.on_ceasing:
                    listener(partition)
        try:
            if delete and self.directories.get(*key) is not None:
                self.directories.delete(*key)
        except StorageError as error:
            self.directory_offline(error.directory, error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE

    def update_configs(self, topic: str | None = None) -> None:
        """Apply changed configuration to the logs of a topic, or of all topics."""
        for partition in self.partitions():
            if topic in (None, partition.topic):
                options = self._topic_options(partition.topic)
                partition.log.update_config(LogConfig.from_options(options))
                throttled = self._throttled(partition.partition, options)
                partition.settings_changed(options.integer("min.insync.replicas"), throttled)

    def _throttled(self, partition: int, options: Snapshot) -> Throttled:
        leaders = options.strings("leader.replication.throttled.replicas")
        followers = options.strings("follower.replication.throttled.replicas")
        return Throttled(
            as_leader=names_replica(leaders, partition, self.node_id),
            as_follower=names_replica(followers, partition, self.node_id),
        )

    # -- moves between log directories ------------------------------------------------------------

    def move_log(self, topic: str, partition: int, path: str) -> ErrorCode:
        """Begin to move a replica to another of this broker's log directories (KIP-113).

        A replica that does not exist yet will be created there. Naming its current directory
        cancels a move that has begun. Follows ReplicaManager.alterReplicaLogDirs.
        """
        if len(future_name(topic, partition, "0" * 32)) > FILE_NAME_MAX:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        former = self._partitions.get((topic, partition))
        try:
            directory = self.directories.at_path(path)
            if directory.failure is not None or (former is not None and former.is_offline):
                return ErrorCode.KAFKA_STORAGE_ERROR
            self.directories.moves.prefer(topic, partition, directory)
            replica = self.get(topic, partition)
            future = self.directories.moves.begin(topic, partition, directory)
        except StorageError as error:
            self.directory_offline(error.directory, error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        except ApiError as error:
            if error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                return ErrorCode.REPLICA_NOT_AVAILABLE
            return error.code
        if future is not None:
            self._move(replica, future)
        return ErrorCode.NONE

    def _move(self, partition: Partition, future: Log) -> None:
        move = Move(
            partition,
            future,
            self.directories,
            clock=self._around.clock,
            bytes_per_second=lambda: self.move_bytes_per_second(),
        )
        name = f"{partition.topic}-{partition.partition}"
        self._tasks.supervise(move.run, "move between log directories", name)

    # -- storage ----------------------------------------------------------------------------------

    def _flush_soon(self, partition: Partition) -> None:
        """Flush a log off the event loop; appends in the meantime share the next flush."""
        if partition not in self._flushing:
            self._flushing.add(partition)
            work = partial(self._flush, partition)
            self._tasks.supervise(work, "flush", partition.log.directory)

    async def _flush(self, partition: Partition) -> None:
        log = partition.log
        try:
            # A log that has been moved was flushed by the move.
            while (
                log is partition.log
                and log.recovery_point < log.log_end_offset
                and not partition.is_deleted
            ):
                await _flush(log, self._around.clock)
                partition.flushed()
        except StorageError:
            # The log directory has been notified, and takes its partitions offline; or the log
            # alone is unusable until the next start.
            return
        finally:
            self._flushing.discard(partition)

    def directory_offline(self, directory: str, error: StorageError) -> None:
        """Take every partition of a failed log directory offline; idempotent.

        A lack of descriptors is not a failure of the directory.
        """
        if directory in self._offline_directories or isinstance(error, OutOfDescriptorsError):
            return
        self._offline_directories.add(directory)
        _log.error("log directory offline directory=%s reason=%s", directory, error)
        for partition in list(self._partitions.values()):
            if partition.log.directory.startswith(f"{directory}/"):
                was_leader = partition.is_leader
                self._unfollow(partition)
                partition.go_offline()
                if was_leader:
                    for listener in self.on_ceasing:
                        listener(partition)
        for on_offline in self.on_directory_offline:
            on_offline()

    def checkpoint_high_watermarks(self) -> None:
        """Store the high watermark of each partition; a failure takes that directory offline."""
        try:
            self.directories.store_high_watermarks(self._high_watermarks())
        except StorageError as error:
            self.directory_offline(error.directory, error)

    async def checkpoint_high_watermarks_in_background(self) -> None:
        """Store the high watermarks like `checkpoint_high_watermarks`, off the event loop."""
        marks = self._high_watermarks()
        try:
            await self.directories.store_high_watermarks_in_background(marks)
        except StorageError as error:
            self.directory_offline(error.directory, error)

    def _high_watermarks(self) -> dict[Key, int]:
        return {
            (partition.topic, partition.partition): partition.high_watermark
            for partition in self.partitions()
        }

    def finish_waiting(self) -> None:
        """Complete every waiting request as if its timeout had expired; later requests do not wait."""
        self.delayed.close(self._partitions.values())


async def _flush(log: Log, clock: Clock) -> None:
    """Flush a log off the event loop; wait for a descriptor if none is free."""
    while True:
        try:
            await log.durability.flush_in_background()
            return
        except OutOfDescriptorsError as error:
            if log.failure is not None:
                raise
            # Perhaps no append follows that would begin another flush.
            _log.warning("flush waits for a free descriptor error=%s", error)
        await clock.sleep(RETRY_SECONDS)
