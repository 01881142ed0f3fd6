"""One log directory: its owner, its logs, and the files beside the logs.

Synchronous, on the broker's event loop; raises OSError and ConfigError. `LogDirectories` decides
where a new log is created and how an error is handled.
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from ottla.base import uuids
from ottla.base.clock import steady_ms
from ottla.base.errors import ApiError, ConfigError, ErrorCode, StorageError
from ottla.base.files import (
    FileSystem,
    Lock,
    keep_others_out,
    make_directories_durably,
    remove_files,
    run_whole,
)
from ottla.base.slices import Slices
from ottla.storage.config import LogConfig
from ottla.storage.directories import formatting, strays
from ottla.storage.directories.checkpointing import DirectoryCheckpoints
from ottla.storage.directories.marks import ReplacementMarks
from ottla.storage.directories.strays import STRAY_SUFFIX, StrayLogs, StrayReason
from ottla.storage.files import checkpoints, meta_properties
from ottla.storage.files.checkpoints import TopicPartition
from ottla.storage.log import recovery
from ottla.storage.log.log import Dependencies, Log
from ottla.storage.log.retention import PendingDeletions
from ottla.storage.log.segment import Segment

DELETE_SUFFIX = "-delete"
FUTURE_SUFFIX = "-future"
FILE_NAME_MAX = 255
# The root of a file system has it.
_LOST_AND_FOUND = "lost+found"
_LOG_DIRECTORY = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>\d+)")
_FUTURE_DIRECTORY = re.compile(_LOG_DIRECTORY.pattern + r"\.\S+" + FUTURE_SUFFIX)
# KRaft's metadata log, which is not a partition of Ottla.
_FOREIGN = ("__cluster_metadata-0",)

# From this number of logs on, they are flushed together when they are closed. One by one, 1 000
# take a second; together, they wait for what other programs have left to write.
_TOGETHER_MIN = 2000

_log = logging.getLogger(__name__)


class Owner(NamedTuple):
    """The broker that owns the directories; if `cluster_id` is None, the directories determine it.

    `is_kraft`: new directories get the owner in the form of KRaft nodes.
    """

    cluster_id: str | None
    broker_id: int
    is_kraft: bool = False


class Space(NamedTuple):
    """Total and free space of a device, in bytes."""

    total_bytes: int
    usable_bytes: int


def lock_directory(files: FileSystem, path: str) -> Lock:
    """Create the directory if it does not exist, and lock it.

    Raises ConfigError or StorageError with a sentence for the person who started the broker.
    """
    try:
        if files.exists(path) and not files.is_directory(path):
            raise ConfigError(f"{path} is a file; the log directory must be a folder of its own.")
        make_directories_durably(files, path)
        _keep_others_out(files, path)
        return files.lock(f"{path}/{checkpoints.LOCK_FILE}")
    except BlockingIOError as error:
        holder = f" ({error.strerror})" if error.strerror else ""
        raise StorageError(
            path,
            f"another broker is using this directory{holder}. Stop it, or give this one another "
            f"directory.",
        ) from error
    except PermissionError as error:
        raise StorageError(
            path, "this user may not write here. Change the owner, or choose another directory."
        ) from error
    except OSError as error:
        raise StorageError(path, f"it cannot be used: {error.strerror or error}.") from error


def ignores_case(files: FileSystem, path: str) -> bool:
    """Return True if names in a locked directory that differ only in case are the same file.

    On macOS and Windows most disks do that, on Linux folders of ext4 with `chattr +F`.
    """
    return files.exists(f"{path}/{checkpoints.LOCK_FILE.upper()}")


def _keep_others_out(files: FileSystem, path: str) -> None:
    """Restrict a folder that is empty or has been a log directory; others may be the system's."""
    own = (checkpoints.LOCK_FILE, checkpoints.META_PROPERTIES_FILE)
    # One that cannot be read is reported when its logs are loaded.
    with suppress(OSError):
        is_own = any(files.exists(f"{path}/{name}") for name in own)
        if is_own or not set(files.list(path)) - {_LOST_AND_FOUND}:
            keep_others_out(files, [path])


def check_owners(files: FileSystem, paths: Iterable[str], broker_id: int) -> Mapping[str, str]:
    """Check which broker owns these directories, without writing; return the cluster of each.

    Directories without `meta.properties`, or that cannot be read, are left to
    `LogDirectories.open`. Raises ConfigError if one belongs to another broker, or if two belong to
    different clusters.
    """
    owner = Owner(None, broker_id)
    clusters: dict[str, str] = {}
    for folder in paths:
        path = f"{folder}/{checkpoints.META_PROPERTIES_FILE}"
        try:
            properties = _read_properties(files, path) if files.exists(path) else {}
        except OSError:
            continue
        cluster_id = _check_properties(folder, properties, owner)
        owner = owner._replace(cluster_id=cluster_id)
        if cluster_id is not None and "cluster.id" in properties:
            clusters[folder] = cluster_id
    return clusters


def _read_properties(files: FileSystem, path: str) -> dict[str, str]:
    try:
        return checkpoints.parse_properties(files.read(path))
    except ValueError as error:
        raise ConfigError(
            f"{path} cannot be read: {error}. It says whose data this is; restore it from a "
            f"backup, or delete it if you are sure that the data is this broker's."
        ) from error


def _check_properties(folder: str, properties: Mapping[str, str], owner: Owner) -> str | None:
    """Return the cluster id; raise ConfigError if `properties` are not the owner's."""
    version = properties.get("version", str(meta_properties.ZOOKEEPER))
    if version not in meta_properties.VERSIONS:
        raise ConfigError(
            f"{folder} has the unknown format {version!r} (version in its meta.properties). "
            f"Start it with the version of Ottla or Apache Kafka that wrote it, or choose another "
            f"directory."
        )
    broker_id = properties.get("broker.id", properties.get("node.id"))
    if broker_id is not None and broker_id != str(owner.broker_id):
        raise ConfigError(
            f"{folder} holds the data of broker {broker_id}, and this is broker "
            f"{owner.broker_id}. Start it with broker.id={broker_id} or with another directory."
        )
    cluster_id = properties.get("cluster.id")
    if cluster_id is not None and owner.cluster_id not in (None, cluster_id):
        raise ConfigError(
            f"{folder} holds data of the cluster {cluster_id}, and this broker joins "
            f"{owner.cluster_id}. Give it another directory, or point it at the right cluster."
        )
    return cluster_id if cluster_id is not None else owner.cluster_id


class LogDirectory:
    """One directory: its lock, its logs, its checkpoints."""

    def __init__(self, path: str, dependencies: Dependencies, lock: Lock) -> None:
        self.path = path
        self.logs: dict[TopicPartition, Log] = {}
        # Copies of logs that are being moved here from another directory.
        self.futures: dict[TopicPartition, Log] = {}
        self.marks = ReplacementMarks(dependencies.files, self.logs)
        self.checkpoints = DirectoryCheckpoints(dependencies.files, path, self.logs, self.futures)
        self.strays = StrayLogs(dependencies.files, path, dependencies.clock)
        self.failure: StorageError | None = None
        # True if `A` and `a` are the same folder here.
        self.ignores_case = False
        self._dependencies = dependencies
        self._files = dependencies.files
        self._lock = lock
        # Folders of deleted logs.
        self._pending_deletions = PendingDeletions()
        # The number of deleted logs, and for how many of them the deletion is durable.
        self._deleted_count = self._settled_count = 0
        self._progress: recovery.LoadProgress | None = None
        # True if a log start offset of the checkpoint cannot be right.
        self._has_wrong_starts = False

    def file(self, name: str) -> str:
        """Return the path of a file in this directory."""
        return f"{self.path}/{name}"

    def space(self) -> Space:
        """Return the size of the device and its free space; raises OSError if the device is gone."""
        total, usable = self._files.total_bytes(self.path), self._files.free_bytes(self.path)
        return Space(total, usable)

    # Loading

    def check_owner(self, owner: Owner) -> str | None:
        """Compare `meta.properties` with the broker, or write the file; return its cluster id."""
        path = self.file(checkpoints.META_PROPERTIES_FILE)
        if not self._files.exists(path):
            self._write_owner(path, owner)
            return owner.cluster_id
        properties = _read_properties(self._files, path)
        cluster_id = _check_properties(self.path, properties, owner)
        if "cluster.id" not in properties and cluster_id is not None:
            content = {**properties, "cluster.id": cluster_id}
            self._files.replace(path, checkpoints.encode_properties(content))
        return cluster_id

    def _write_owner(self, path: str, owner: Owner) -> None:
        properties = {"version": "0", "broker.id": str(owner.broker_id)}
        if owner.is_kraft:
            properties = {"version": "1", "node.id": str(owner.broker_id)}
            properties["directory.id"] = formatting.directory_id(self._dependencies.rng)
        if owner.cluster_id is not None:
            properties["cluster.id"] = owner.cluster_id
        self._files.replace(path, checkpoints.encode_properties(properties))

    def load(
        self,
        topic_config: Callable[[str], LogConfig],
        progress: recovery.LoadProgress | None = None,
    ) -> None:
        """Open every log in the directory."""
        self._progress = progress
        files, stored = self._files, self.checkpoints
        recovery_points = stored.load(checkpoints.RECOVERY_POINT_FILE)
        log_starts = stored.load(checkpoints.LOG_START_FILE)
        stored.high_watermarks = stored.load(checkpoints.HIGH_WATERMARK_FILE)
        first_dirty_offsets = stored.load(checkpoints.CLEANER_FILE)
        is_clean = self._take_clean_mark()
        for name in files.list(self.path):
            folder = self.file(name)
            if name.endswith(DELETE_SUFFIX):
                files.remove_tree(folder)
                continue
            if name.endswith(STRAY_SUFFIX) and files.is_directory(folder):
                self.strays.load(name)
                continue
            log_key, future_key = parse_directory_name(name), parse_future_name(name)
            key = log_key or future_key
            if key is None or not files.is_directory(folder):
                continue
            if log_key is None and key in self.futures:
                # A crash undid the removal of this copy.
                files.remove_tree(folder)
                continue
            set_aside = None if log_key is None else partial(self._set_segments_aside, log_key)
            expected = recovery.Expectation(
                log_starts.get(key, 0), recovery_points.get(key, 0), is_clean, set_aside
            )
            log = self._load_log(key, folder, topic_config(key[0]), expected)
            log.first_dirty_offset = first_dirty_offsets.get(key, 0)
            if log_key is None:
                self.futures[key] = log
            else:
                self.logs[key] = log
                self.marks.load(key, folder)

        if self._has_wrong_starts:
            # After a crash, the checkpoint would count.
            stored.store()

    def _set_segments_aside(self, key: TopicPartition, segments: Iterable[Segment]) -> None:
        """Keep the segments of a log that ends before its log start offset as a stray log."""
        folder = self.file(self._name_of(key, STRAY_SUFFIX))
        self._files.make_directories(folder)
        strays.mark(self._files, folder, StrayReason.BEFORE_START)
        for segment in segments:
            segment.files.close()
            segment.files.move_to(folder)
        self._files.sync_directory(folder)
        self._files.sync_directory(self.path)
        self.strays.load(folder.rpartition("/")[2])

    def _take_clean_mark(self) -> bool:
        """Return True if the directory was closed cleanly, and remove the mark of that."""
        path = self.file(checkpoints.CLEAN_SHUTDOWN_FILE)
        if not self._files.exists(path):
            return False
        self._files.remove(path)
        self._files.sync_directory(self.path)
        return True

    def _load_log(
        self, key: TopicPartition, folder: str, config: LogConfig, expected: recovery.Expectation
    ) -> Log:
        now_ms = self._dependencies.clock.time_ms()
        loaded = recovery.load(self._files, folder, config, expected, now_ms, self._progress)
        if self._progress is not None:
            self._progress.loaded()
        topic_id = checkpoints.load_topic_id(self._files, folder)
        self._has_wrong_starts |= checkpoints.LOG_START_FILE in loaded.rebuilt
        if loaded.truncation is not None or loaded.rebuilt:
            _log.warning(
                "log loaded partition=%s-%d next_offset=%d clean=%s truncation=%s rebuilt=%s",
                *key,
                loaded.log_end_offset,
                expected.is_clean,
                loaded.truncation,
                loaded.rebuilt,
            )
        return Log(*key, topic_id, config, loaded, self._dependencies)

    # Logs

    @property
    def every_log(self) -> list[Log]:
        """Return the logs, and the copies that are to replace one in another directory."""
        return [*self.logs.values(), *self.futures.values()]

    @property
    def logs_count(self) -> int:
        """The number of logs and copies."""
        return len(self.logs) + len(self.futures)

    def create(self, key: TopicPartition, topic_id: bytes, config: LogConfig) -> Log:
        """Create a new, empty log.

        Raises ApiError if the disk ignores case and the folder has the log of another topic.
        """
        if self.ignores_case and self._files.exists(self.file(directory_name(*key))):
            self._refuse_folder_of_another(key)
        self.logs[key] = self._create(directory_name(*key), key, topic_id, config)
        return self.logs[key]

    def _refuse_folder_of_another(self, key: TopicPartition) -> None:
        folder = directory_name(*key).lower()
        for other in self.logs:
            if directory_name(*other).lower() == folder:
                raise ApiError(
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    f"{self.path} is on a disk that ignores case, and has {directory_name(*other)}:"
                    f" {directory_name(*key)} would be in the same folder.",
                )

    def create_future(self, key: TopicPartition, topic_id: bytes, config: LogConfig) -> Log:
        """Create an empty log that is to become a copy of one in another directory."""
        name = future_name(*key, self._dependencies.rng.random_bytes(16).hex())
        self.futures[key] = self._create(name, key, topic_id, config)
        return self.futures[key]

    def _create(self, name: str, key: TopicPartition, topic_id: bytes, config: LogConfig) -> Log:
        now_ms = self._dependencies.clock.time_ms()
        loaded = recovery.create(self._files, self.file(name), config, now_ms)
        log = Log(*key, topic_id, config, loaded, self._dependencies)
        if topic_id != uuids.ZERO_UUID:
            self.store_topic_id(log)
        # Cheap, because the names become durable only with the first records.
        return log

    def store_topic_id(self, log: Log) -> None:
        """Write the topic id into the log's folder; it becomes durable with the first records."""
        path = f"{log.directory}/{checkpoints.PARTITION_METADATA_FILE}"
        metadata = self._files.open(path, create=True)
        if metadata.size():
            metadata.truncate(0)
        metadata.append(checkpoints.encode_partition_metadata(log.topic_id))
        metadata.close()
        log.durability.expect_sync_of(path)

    def delete(self, key: TopicPartition) -> None:
        """Rename a log's directory out of the way; `remove_deleted` removes it later."""
        self._discard(self._forget(key))

    def set_aside(self, key: TopicPartition, reason: StrayReason) -> str:
        """Rename a log's directory so that the log is not loaded again; return its new path."""
        log = self._forget(key)
        strays.mark(self._files, log.directory, reason)
        path = self._rename(log, STRAY_SUFFIX)
        self.strays.load(path.rpartition("/")[2])
        return path

    def _forget(self, key: TopicPartition) -> Log:
        self.checkpoints.high_watermarks.pop(key, None)
        self.marks.forget(key)
        return self.logs.pop(key)

    def delete_future(self, key: TopicPartition) -> None:
        """Delete a copy, so that no crash restores it."""
        self._discard(self.futures.pop(key))
        self.settle_deletions()

    def _discard(self, log: Log) -> None:
        path = self._rename(log, DELETE_SUFFIX)
        due_ms = steady_ms(self._dependencies.clock) + log.config.file_delete_delay_ms
        self._pending_deletions.add([path], due_ms)

    def _rename(self, log: Log, ending: str) -> str:
        path = self.file(self._name_of((log.topic, log.partition), ending))
        log.rename_directory(path)
        log.abandon()
        self._deleted_count += 1
        return path

    def _name_of(self, key: TopicPartition, ending: str) -> str:
        """Return a new name for the folder of a log that leaves its place."""
        suffix = f".{self._dependencies.rng.random_bytes(16).hex()}{ending}"
        return directory_name(*key)[: FILE_NAME_MAX - len(suffix)] + suffix

    def settle_deletions(self) -> None:
        """Make the deletion of logs durable, so that no crash restores their names."""
        if self._settled_count < self._deleted_count:
            self._files.sync_directory(self.path)
            self._settled_count = self._deleted_count

    async def settle_deletions_in_background(self) -> None:
        """Call `settle_deletions` off the loop; logs deleted during the call are left for the next
        call.
        """
        count = self._deleted_count
        if self._settled_count < count:
            await self._files.in_background(partial(self._files.sync_directory, self.path))
            self._settled_count = max(self._settled_count, count)

    # Replacing a log by its copy

    def promote(self, key: TopicPartition) -> Log:
        """Rename a copy to the log's name, durably."""
        log = self.futures[key]
        log.deletion.remove_deleted()
        log.rename_directory(self.file(directory_name(*key)))
        self._files.sync_directory(self.path)
        self.logs[key] = self.futures.pop(key)
        return log

    # Upkeep

    async def flush_due(self) -> None:
        """Flush, off the loop, the logs whose flush.ms has passed, and segments that were rolled.

        The names of files that the next roll relies on become durable as well.
        Descriptors of sealed segments are closed, because their number on a broker is unlimited.
        """
        slices = Slices(self._dependencies.clock)
        for log in self.every_log:
            # A log may be deleted while this loop waits.
            if log.upkeep_failure is not None or log.failure is not None:
                continue
            try:
                if log.durability.needs_flush():
                    await log.durability.flush_in_background()
                elif log.durability.owes_sealed():
                    await log.durability.flush_in_background(sealed_only=True)
                elif log.durability.owes_names():
                    await log.durability.sync_names_in_background()
                if log.segments_count > 1:
                    log.deletion.close_idle_files()
            except (OSError, StorageError):
                raise
            except Exception as error:
                log.exclude_from_upkeep(error)
                raise
            await slices.pause()

    async def remove_deleted(self) -> None:
        """Delete, off the loop, the files of removed segments and logs that are due."""
        clock, files = self._dependencies.clock, self._files
        slices = Slices(clock)
        for log in self.every_log:
            for path in log.deletion.take_deleted():
                # One by one, because deleting a large file takes time.
                await run_whole(files, partial(remove_files, files, (path,)))
            await slices.pause()
        now_ms = steady_ms(clock)
        due = self._pending_deletions.take_due(now_ms)
        while due:
            try:
                # An administrator may have removed the folder already.
                with suppress(FileNotFoundError):
                    await run_whole(files, partial(files.remove_tree, due[0]))
            except OSError:
                # If no descriptor was free, they are removed later.
                self._pending_deletions.add(due, now_ms)
                raise
            del due[0]

    # The end

    def flush_together(self) -> None:
        """Flush all logs by syncing the whole file system, if that takes less time than single
        syncs.

        A log takes about six of them. Raises OSError. Logs that cannot be flushed are left to
        `close`, which reports why.
        """
        due = [log for log in self.every_log if log.durability.is_due]
        # First for the records, and to find out if the system can do it.
        if len(due) < _TOGETHER_MIN or not self._lock.sync_file_system():
            return
        flushing = [log.durability.steps() for log in due]
        while flushing := [steps for steps in flushing if _advance(steps)]:
            self._lock.sync_file_system()

    def close(self) -> None:
        """Close every log; mark the shutdown as clean only if all data is on the disk, and no
        log must be recovered.
        """
        for log in self.every_log:
            # A log that has been closed already raises no error.
            log.close()
        self.checkpoints.store()
        if not any(log.must_be_recovered for log in self.every_log):
            path = self.file(checkpoints.CLEAN_SHUTDOWN_FILE)
            self._files.replace(path, checkpoints.CLEAN_SHUTDOWN_CONTENT)
        self._lock.release()

    def fail(self, failure: StorageError) -> None:
        """Take every log offline; the lock is held until `release` or the end of the process."""
        self.failure = failure
        for log in self.every_log:
            log.take_offline(failure)

    def release(self) -> None:
        """Release the lock without marking the shutdown as clean."""
        for log in self.every_log:
            log.abandon()
        self._lock.release()


def directory_name(topic: str, partition: int) -> str:
    """Return the name of a log's directory."""
    return f"{topic}-{partition}"


def parse_directory_name(name: str) -> TopicPartition | None:
    """Return the topic and partition of a log's directory name; None if it is not a log's."""
    match = _LOG_DIRECTORY.fullmatch(name)
    if match is None or name in _FOREIGN:
        return None
    return match["topic"], int(match["partition"])


def future_name(topic: str, partition: int, unique: str) -> str:
    """Return the name of the directory of a copy that is being made."""
    return f"{directory_name(topic, partition)}.{unique}{FUTURE_SUFFIX}"


def parse_future_name(name: str) -> TopicPartition | None:
    """Return the topic and partition of a copy's directory name; None if it is not a copy's."""
    match = _FUTURE_DIRECTORY.fullmatch(name)
    return None if match is None else (match["topic"], int(match["partition"]))


def _advance(steps: Iterator[None]) -> bool:
    """Return True if there is something to sync before the next step."""
    with suppress(StorageError):
        for _ in steps:
            return True
    return False
