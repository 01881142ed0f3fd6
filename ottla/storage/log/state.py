"""The state of one log, which its parts share, and the handling of errors of its files.

`Log` is this state with appends and reads; `Rolling`, `Durability`, `Truncation` and `Deletion` are
its other parts. The parts know only the state, and one another as far as their constructors say.

Not done: a log whose operation ended midway, because no descriptor was free, is unusable until the
next start. Free descriptors alone do not recover it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from ottla.base.errors import OutOfDescriptorsError, StorageError
from ottla.base.platform.descriptors import is_exhausted
from ottla.storage.config import LogConfig
from ottla.storage.dependencies import Dependencies
from ottla.storage.log.recovery import LoadedLog
from ottla.storage.log.segment import Segment
from ottla.storage.log.segments import Segments


class LogState:
    """The offsets, settings, segments and the failure of one log.

    Offsets run from `log_start_offset` (moved by retention and DeleteRecords) to before
    `log_end_offset`; everything before `recovery_point` is on the disk.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig,
        loaded: LoadedLog,
        dependencies: Dependencies,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.config = config
        self.directory = loaded.directory
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.recovery_point = loaded.recovery_point
        # Retention and compaction stop at this offset. Its `Partition` sets it.
        self.high_watermark = loaded.log_start_offset
        self.epochs = loaded.epochs
        self.producers = loaded.producers
        self.dependencies = dependencies
        self.files, self.clock = dependencies.files, dependencies.clock
        # The error that made the log unusable; None if the log is usable.
        self.failure: StorageError | None = None
        self.upkeep_failure: str | None = None
        self._report_damage = partial(dependencies.on_damage, topic, partition)
        self.all_segments = Segments(self.files, loaded.segments, self._report_damage)
        # The segments, oldest first, and their base offsets. Reads use the lists directly.
        self.segments, self.bases = self.all_segments.items, self.all_segments.bases
        # The last segment, which takes appends.
        self.active: Segment = loaded.segments[-1]
        # Compacted before the first; the count of truncations voids work that began before one.
        self.first_dirty_offset, self.truncations_count = 0, 0
        # Its records are being copied to another directory: none may be compacted away until the
        # copy is complete.
        self.is_being_copied = False

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments."""
        return self.all_segments.size_bytes

    @property
    def segments_count(self) -> int:
        """The number of segments of the log; the last one takes appends."""
        return len(self.segments)

    @property
    def first_segment_offset(self) -> int:
        """Base offset of the oldest segment; the start of the log may be inside that segment.

        -1 if a failed operation left no segment.
        """
        return self.bases[0] if self.bases else -1

    @property
    def damage(self) -> str | None:
        """The damage of the log although its directory is online: damaged bytes, an error of its
        upkeep, or an operation that ended midway.
        """
        return self.upkeep_failure or self.all_segments.damage

    @property
    def must_be_recovered(self) -> bool:
        """True if an operation ended midway: the files may contradict each other until recovery."""
        return isinstance(self.failure, OutOfDescriptorsError)

    def exclude_from_upkeep(self, error: Exception) -> None:
        """Exclude the log from upkeep until the next start, because of an unexpected error."""
        self.upkeep_failure = f"upkeep failed: {error!r}"
        self._report_damage()

    def refuse_if_failed(self) -> None:
        """Raise the error that made the log unusable, if there is one."""
        if self.failure is not None:
            raise self.failure

    @contextmanager
    def disk(self, *, is_midway: bool = False) -> Iterator[None]:
        """Turn an OSError of the block into a StorageError, as `fail` does."""
        try:
            yield
        except OSError as error:
            raise self.fail(error, is_midway=is_midway) from error

    def fail(self, error: OSError, *, is_midway: bool = False) -> StorageError:
        """Mark the log as unusable; a lack of descriptors does so only if `is_midway`."""
        log_directory = self.dependencies.log_directory
        reason = f"{self.topic}-{self.partition}: {error.strerror or error}"
        if is_exhausted(error):
            failure = OutOfDescriptorsError(log_directory, reason)
            if is_midway:
                self.failure = failure
                self.upkeep_failure = f"unusable until the next start: {reason}"
                self._report_damage()
            return failure
        self.failure = StorageError(log_directory, reason)
        self.dependencies.on_failure(self.failure)
        return self.failure
