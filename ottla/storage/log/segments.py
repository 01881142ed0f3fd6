"""The segments of one log, oldest first, and the operations on all of them.

The last one takes appends. A removed segment is renamed at once; its files are deleted after a
delay. Raises OSError; the log above decides how to handle it. Follows
org.apache.kafka.storage.internals.log.LogSegments.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence

from ottla.base.files import FileSystem
from ottla.storage.files import txn_index
from ottla.storage.files.file_names import LOG_SUFFIX
from ottla.storage.files.scan import TimestampedOffset
from ottla.storage.files.txn_index import AbortedTransaction
from ottla.storage.log import recovery
from ottla.storage.log.retention import PendingDeletions
from ottla.storage.log.segment import Segment


class Segments:
    """The list of segments and a parallel list of base offsets, which is used to find a segment.

    The two lists stay the same objects for the life of the log, because its hot paths keep
    references.
    """

    def __init__(
        self, files: FileSystem, segments: Iterable[Segment], on_damage: Callable[[], None]
    ) -> None:
        self.items: list[Segment] = []
        self.bases: list[int] = []
        self._files = files
        self._pending_deletions = PendingDeletions()
        # Called when damaged bytes are found in one of the segments.
        self._on_damage = on_damage
        for segment in segments:
            self.add(segment)

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments."""
        return sum(segment.size_bytes for segment in self.items)

    @property
    def damage(self) -> str | None:
        """Position of the first damaged bytes found so far; None if none were found."""
        for segment in self.items:
            if segment.batches.damaged_at >= 0:
                return f"{segment.files.path(LOG_SUFFIX)} is damaged at byte {segment.batches.damaged_at}."
        return None

    def add(self, segment: Segment) -> None:
        """Append a segment to the list."""
        self.items.append(segment)
        self.bases.append(segment.base_offset)
        segment.batches.on_damage = self._on_damage

    def move_to(self, directory: str) -> None:
        """Use the new path of a renamed folder, also for the files that wait for their deletion."""
        self._pending_deletions.forget()
        for segment in self.items:
            segment.files.directory = directory

    # Searching

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Return the aborted transactions with records in [start_offset, end_offset)."""
        transactions: list[AbortedTransaction] = []
        for segment in self.items[max(0, bisect_right(self.bases, start_offset) - 1) :]:
            part = txn_index.collect(segment.transactions.entries, start_offset, end_offset)
            transactions += part.transactions
            if part.is_complete:
                break
        return transactions

    def offset_for_timestamp(
        self, timestamp_ms: int, start_offset: int
    ) -> TimestampedOffset | None:
        """Return the first record at or after both the time and the offset."""
        for segment in self.items:
            if segment.newest.timestamp >= timestamp_ms:
                record = segment.find_timestamp(timestamp_ms, start_offset)
                if record is not None:
                    return record
        return None

    def offset_of_max_timestamp(self) -> TimestampedOffset | None:
        """Return the first of the newest records; None if no record has a timestamp."""
        segment = max(self.items, key=lambda segment: segment.newest.timestamp)
        newest = segment.newest.timestamp
        return segment.find_timestamp(newest, segment.base_offset) if newest >= 0 else None

    # Taking out

    def remove(self, start: int, end: int, due_ms: int) -> None:
        """Remove segments from the log; their files are deleted at `due_ms`."""
        for segment in self.items[start:end]:
            self._pending_deletions.add(segment.files.mark_deleted(), due_ms)
            segment.files.close()
        del self.items[start:end], self.bases[start:end]

    def void_ranges(self, start: int) -> None:
        """Stop ranges from sending bytes of the segments from index `start` on: they are cut off."""
        for segment in self.items[start:]:
            segment.void_ranges()

    def place_of(self, neighbours: Sequence[Segment]) -> int:
        """Return the index of the first of these adjacent sealed segments; -1 if any of them is
        gone.
        """
        at = bisect_left(self.bases, neighbours[0].base_offset)
        end = at + len(neighbours)
        if end == len(self.items) or self.items[at:end] != list(neighbours):
            return -1
        return at

    def replace(self, replaced: Sequence[Segment], cleaned: Segment, due_ms: int) -> bool:
        """Replace adjacent segments by their compacted segment; their files are deleted at
        `due_ms`.

        Returns False if they are no longer in the log, or if the last of them takes appends. The
        caller syncs the folder before the files of `cleaned` lose their suffix.
        """
        at = self.place_of(replaced)
        if at < 0:
            return False
        end = at + len(replaced)
        for segment in replaced:
            self._pending_deletions.add(segment.files.mark_deleted(), due_ms)
            segment.files.close()
        self.items[at:end], self.bases[at:end] = [cleaned], [cleaned.base_offset]
        cleaned.batches.on_damage = self._on_damage
        merged = [segment.base_offset for segment in replaced[1:]]
        recovery.remove_snapshots(self._files, cleaned.files.directory, merged.__contains__)
        return True

    def take_deleted(self, now_ms: int | None = None) -> list[str]:
        """Return the files of removed segments that are due for deletion; the caller deletes them.

        Returns all of them without a time. If a segment was created and cut twice at the same
        offset, its names occur twice, so some files may not exist.
        """
        return self._pending_deletions.take_due(now_ms)

    # Descriptors

    def close_idle_files(self) -> None:
        """Close the descriptors of durable segments except the last; a read opens them again."""
        for segment in self.items[:-1]:
            if segment.files.is_synced:
                segment.files.close()

    def close(self) -> None:
        """Close all descriptors, and free the indexes in memory."""
        for segment in self.items:
            segment.files.close()
            segment.batches.release()
