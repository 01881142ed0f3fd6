"""Reading of every batch that is not damaged, also of those behind damaged bytes.

For readers that need all records that can still be read, unlike consumers, whose fetch fails at the
damage. The checksum does not cover the base offset, so an offset counts only if it fits between the
offsets of the batches before and behind it.

Not done: offsets from 2**48 on, and batches before v2, are not found behind damaged bytes. A wrong
offset of the last batch before damaged bytes is not detected.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from ottla.base.buffers import Buffer
from ottla.storage.files import scan
from ottla.storage.files.scan import Read
from ottla.wire.records import batch
from ottla.wire.records.batch import HEADER_SIZE, BatchHeader

_CHUNK_BYTES = 1024 * 1024
# The two zero bytes that begin an offset below 2**48, and the magic byte of the same header.
_POSSIBLE_HEADER = re.compile(rb"(?=\x00\x00.{14}\x02)", re.DOTALL)

_Batch = tuple[int, BatchHeader, Buffer]


class Skipped(NamedTuple):
    """Records that cannot be read: the offset of the first, and how many at most."""

    offset: int
    records_count: int


class SoundBatches(NamedTuple):
    """Batches of one segment whose checksum is right; the next read begins at `next_offset`.

    `damaged_at` is the position of the first damaged bytes, -1 if no bytes are damaged.
    """

    batches: list[tuple[BatchHeader, Buffer]]
    next_offset: int
    skipped: list[Skipped]
    damaged_at: int = -1


class Extent(NamedTuple):
    """One segment: its first possible offset, the offset behind its last one, and its bytes."""

    base_offset: int
    end_offset: int
    size_bytes: int


def read_batches(
    read: Read, extent: Extent, offset: int, max_bytes: int, position: int = 0
) -> SoundBatches:
    """Return the batches from `offset` on, at least `max_bytes` of them unless the segment ends.

    `position` is the position of any batch at or before the one that contains `offset`.
    """
    reading = _Reading(read, offset)
    previous_end = extent.base_offset if position == 0 else -1
    walked = position
    has_begun = is_certain = previous_end == offset
    for at, header, data in _walk(read, position, extent, min(max_bytes, _CHUNK_BYTES)):
        base_offset = header.base_offset
        last_offset = base_offset + header.last_offset_delta
        size_bytes = len(data)
        if has_begun or last_offset >= offset:
            has_begun = True
            if reading.size_bytes >= max_bytes and reading.is_confirmed_by(header):
                return reading.result(reading.batches[-1][0].last_offset + 1)
            if at > walked:
                reading.skip(walked, previous_end, base_offset)
            if base_offset < previous_end or last_offset >= extent.end_offset:
                reading.note_damage(at)
            reading.batches.append((header, data))
            reading.size_bytes += size_bytes
        if last_offset == offset - 1 and not is_certain:
            # Any batch before this one was taken because of a wrong offset.
            reading, has_begun, is_certain = _Reading(read, offset), True, True
        previous_end, walked = last_offset + 1, at + size_bytes
    if walked < extent.size_bytes:
        reading.skip(walked, max(previous_end, offset), extent.end_offset)
    return reading.result(extent.end_offset)


class _Reading:
    """The batches found so far by one call of `read_batches`."""

    def __init__(self, read: Read, offset: int) -> None:
        self.batches: list[tuple[BatchHeader, Buffer]] = []
        self.size_bytes = 0
        self._read = read
        self._offset = offset
        self._skipped: list[Skipped] = []
        self._damaged_at = -1

    def skip(self, position: int, offset: int, next_offset: int) -> None:
        """Note damaged bytes between two batches, which end at `offset` and begin at `next_offset`."""
        self.note_damage(position)
        count = max(1, next_offset - offset)
        header = scan.header_at(self._read(position, HEADER_SIZE), 0)
        if header is not None and 0 < header.records_count < count:
            # Compaction left a gap.
            count = header.records_count
        self._skipped.append(Skipped(offset, count))

    def note_damage(self, position: int) -> None:
        """Note the position of damaged bytes, or of a batch with a wrong offset."""
        if self._damaged_at < 0:
            self._damaged_at = position

    def is_confirmed_by(self, following: BatchHeader) -> bool:
        """Return True if the offset of the last batch fits between its neighbours' offsets."""
        last = self.batches[-1][0]
        before = self.batches[-2][0].last_offset if len(self.batches) > 1 else -1
        return (
            before < last.base_offset and self._offset <= last.last_offset < following.base_offset
        )

    def result(self, next_offset: int) -> SoundBatches:
        return SoundBatches(self.batches, next_offset, self._skipped, self._damaged_at)


def _walk(read: Read, position: int, extent: Extent, chunk_bytes: int) -> Iterator[_Batch]:
    """Yield every batch with a right checksum from `position` on, by position."""
    while position >= 0:
        for at, header, data in scan.batches(read, position, extent.size_bytes, chunk_bytes):
            yield at, header, data
            position = at + len(data)
        position = _find_batch(read, position + 1, extent)


def _find_batch(read: Read, position: int, extent: Extent) -> int:
    """Return the position of the first sound batch at or after `position`; -1 if no sound batch
    follows.
    """
    size_bytes = extent.size_bytes
    while size_bytes - position >= HEADER_SIZE:
        chunk = bytes(read(position, min(_CHUNK_BYTES, size_bytes - position)))
        if len(chunk) < HEADER_SIZE:
            break
        for match in _POSSIBLE_HEADER.finditer(chunk, 0, len(chunk) - HEADER_SIZE + 17):
            start = position + match.start()
            header = batch.parse_header(chunk, match.start())
            fits = header.size_bytes <= size_bytes - start
            if not fits or not scan.is_plausible(header) or header.last_offset >= extent.end_offset:
                continue
            data = read(start, header.size_bytes)
            if len(data) == header.size_bytes and batch.is_crc_valid(data, 0, header):
                return start
        position += len(chunk) - HEADER_SIZE + 1
    return -1
