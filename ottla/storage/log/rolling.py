"""Rolling of one log: its last segment is sealed, and the next one takes the appends."""

from ottla.base.clock import steady_ms
from ottla.storage.log import recovery
from ottla.storage.log.flushing import Durability
from ottla.storage.log.segment import Segment
from ottla.storage.log.state import LogState


class Rolling:
    """The beginning of segments of one log, and the removal of whole segments from it."""

    __slots__ = ("_durability", "_log")

    def __init__(self, log: LogState, durability: Durability) -> None:
        self._log = log
        self._durability = durability

    def roll(self) -> None:
        """Start a new segment at the end of the log, unless the last one is empty."""
        log = self._log
        if log.active.size_bytes:
            with log.disk():
                self.roll_at(log.log_end_offset, log.clock.time_ms())

    def roll_at(self, base_offset: int, now_ms: int) -> Segment:
        """Seal the last segment and return a new one that starts at `base_offset`.

        An empty last segment is removed instead. Raises OSError.
        """
        log = self._log
        old = log.active
        if not old.size_bytes:
            with log.disk(is_midway=True):
                self.remove_segments(len(log.segments) - 1, len(log.segments))
                return self.begin_segment(base_offset, now_ms)
        old.seal()
        self.store_snapshot()
        return self.begin_segment(base_offset, now_ms)

    def begin_segment(self, base_offset: int, now_ms: int) -> Segment:
        """Create the segment that takes appends from now on; raises OSError."""
        log = self._log
        if self._durability.must_sync_names():
            log.files.sync_directory(log.directory)
        segment = Segment.create(log.files, log.directory, base_offset, log.config, now_ms)
        if log.config.segment_jitter_ms:
            jitter_ms = log.dependencies.rng.below(log.config.segment_jitter_ms)
            segment.configure(log.config, jitter_ms)
        self._durability.expect_sync_of(log.directory)
        log.all_segments.add(segment)
        log.active = segment
        return segment

    def store_snapshot(self) -> None:
        """Write the producer state before the end of the log to a snapshot; raises OSError."""
        log = self._log
        log.producers.end_offset = log.log_end_offset
        recovery.store_snapshot(log.files, log.directory, log.producers)

    def remove_segments(self, start: int, end: int) -> None:
        """Remove the segments with these indexes; their files go after file.delete.delay.ms."""
        self._log.all_segments.remove(start, end, self.removal_ms())

    def removal_ms(self) -> int:
        """Return the time at which the files of a segment that is removed now are deleted."""
        return steady_ms(self._log.clock) + self._log.config.file_delete_delay_ms
