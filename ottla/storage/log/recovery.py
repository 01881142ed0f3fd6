"""Opening the log in a directory, as a function that returns a value.

After a clean shutdown the segments are used as they are. Otherwise every segment from the recovery
point on is read batch by batch; the first damaged one is cut at the damage, and later ones are
dropped. Indexes, producer state and leader epochs that are lost or contradict the log are rebuilt.
Follows org.apache.kafka.storage.internals.log.LogLoader.
"""

import logging
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator
from itertools import chain, islice
from typing import NamedTuple

from ottla.base.clock import Clock
from ottla.base.errors import ApiError, StorageError
from ottla.base.files import File, FileSystem, overwrite, sync_path
from ottla.storage.config import LogConfig
from ottla.storage.files import checkpoints, scan
from ottla.storage.files.epochs import LeaderEpochs
from ottla.storage.files.file_names import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    SUFFIXES,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    base_offset_of,
    file_name,
)
from ottla.storage.log.producers import ProducerState, parse_marker
from ottla.storage.log.segment import Segment
from ottla.wire.records.batch import CONTROL_BIT, BatchHeader

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
# How much of the end of the log is read to find the last batches of active producers.
_EARLIER_BATCHES = 512
# Progress is logged at most this often, and only after this many bytes.
_LINE_SECONDS = 5.0
_PROGRESS_BYTES = 4 * 1024 * 1024
# Bytes that are copied in one step.
_COPY_BYTES = 1024 * 1024

_log = logging.getLogger(__name__)


class Truncation(NamedTuple):
    """The data that recovery cut off: from which offset, how much of that segment, which segments."""

    offset: int
    bytes_cut: int
    segments_removed: tuple[int, ...] = ()


class LoadedLog(NamedTuple):
    """A log as its directory contains it.

    `recovered` are the segments (by base offset) that were read again because they may not have
    been on the disk; `rebuilt` names files that were lost or damaged and have been rebuilt.
    `has_durable_names`: no crash can lose the folder or a name in it.
    """

    directory: str
    segments: list[Segment]
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    epochs: LeaderEpochs
    producers: ProducerState
    truncation: Truncation | None = None
    recovered: tuple[int, ...] = ()
    rebuilt: tuple[str, ...] = ()
    has_durable_names: bool = False


SetAside = Callable[[list[Segment]], None]


class Expectation(NamedTuple):
    """The values in the checkpoints of the log directory for one log.

    `set_aside` keeps the segments of a log that ends before its log start offset: a crash has lost
    the records between, or the checkpoint is damaged. Without it they are dropped, as of a copy.
    """

    log_start_offset: int = 0
    recovery_point: int = 0
    is_clean: bool = False
    set_aside: SetAside | None = None


def create(files: FileSystem, directory: str, config: LogConfig, now_ms: int) -> LoadedLog:
    """Make the directory of a new, empty log."""
    files.make_directories(directory)
    segment = Segment.create(files, directory, 0, config, now_ms)
    segment.files.close()
    return LoadedLog(directory, [segment], 0, 0, 0, LeaderEpochs(), ProducerState())


class LoadProgress:
    """Progress of loading: logged from time to time, and aborted if the start is cancelled.

    Loading may run off the event loop; `is_wanted` is called there.
    """

    def __init__(self, clock: Clock, is_wanted: Callable[[], bool] = lambda: True) -> None:
        self.logs_count = 0
        self.walked_bytes = 0
        self._clock = clock
        self._is_wanted = is_wanted
        self._next_line_at = clock.monotonic() + _LINE_SECONDS

    def loaded(self) -> None:
        """Count one more loaded log."""
        self.logs_count += 1

    def walked(self, size_bytes: int, segment: Segment) -> None:
        """Count bytes that were read again; raise StorageError if the start was cancelled."""
        self.walked_bytes += size_bytes
        now = self._clock.monotonic()
        if now >= self._next_line_at:
            self._next_line_at = now + _LINE_SECONDS
            # Shows in the log why the start takes so long.
            _log.warning(
                "recovering logs after a crash logs_loaded=%d mib_read=%d at=%s",
                self.logs_count,
                self.walked_bytes >> 20,
                segment.files.path(LOG_SUFFIX),
            )
        if not self._is_wanted():
            raise StorageError(segment.files.directory, "the broker was stopped during its start.")


def load(
    files: FileSystem,
    directory: str,
    config: LogConfig,
    expected: Expectation,
    now_ms: int,
    progress: LoadProgress | None = None,
) -> LoadedLog:
    """Open the log in `directory` and repair the results of a crash.

    Raises OSError, and StorageError if `progress` reports that the start was cancelled.
    """
    tidy(files, directory)
    return _Loading(files, directory, config, expected, now_ms, progress).run()


class _Loading:
    """One run of `load`."""

    def __init__(
        self,
        files: FileSystem,
        directory: str,
        config: LogConfig,
        expected: Expectation,
        now_ms: int,
        progress: LoadProgress | None,
    ) -> None:
        self.progress = progress
        self.files = files
        self.directory = directory
        self.config = config
        self.expected = expected
        self.now_ms = now_ms
        self.rebuilt: list[str] = []
        self.recovered: set[int] = set()
        self.truncation: Truncation | None = None
        self.epochs = LeaderEpochs()
        self.segments: list[Segment] = []

    def run(self) -> LoadedLog:
        stored = checkpoints.load_epochs(self.files, self.directory)
        self.epochs = LeaderEpochs(stored or ())
        self.segments = self._open_segments()
        self._check_index_files()
        if not self.expected.is_clean:
            self._recover()
        end = self._load_end()
        start = max(self.expected.log_start_offset, self.segments[0].base_offset)
        self._check_epochs(start, end)
        producers = self._load_producers(start, end)
        for segment in self.segments:
            segment.files.close()
        flushed = end if self.expected.is_clean else min(self.expected.recovery_point, end)
        return LoadedLog(
            self.directory,
            self.segments,
            start,
            end,
            flushed,
            self.epochs,
            producers,
            self.truncation,
            tuple(sorted(self.recovered)),
            tuple(self.rebuilt),
            # The flush of the last records was one of the names, too.
            self.expected.is_clean and not self.recovered and self.segments[-1].size_bytes > 0,
        )

    # Segments

    def _open_segments(self) -> list[Segment]:
        names = self.files.list(self.directory)
        bases = [base for base in (base_offset_of(name, LOG_SUFFIX) for name in names) if base >= 0]
        for name in names:
            index_of = max(base_offset_of(name, suffix) for suffix in SUFFIXES[1:])
            if index_of >= 0 and index_of not in bases:
                self.files.remove(f"{self.directory}/{name}")
        return [
            Segment.open(self.files, self.directory, base, self.config, self.now_ms)
            for base in bases
        ]

    def _check_index_files(self) -> None:
        """Rebuild lost indexes of sealed segments; the last segment's indexes are read with its
        end.
        """
        for segment in self.segments[:-1]:
            if segment.size_bytes and not segment.files.has_index_files():
                segment.batches.rebuild_indexes()
                segment.seal()
                for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
                    self.rebuilt.append(file_name(segment.base_offset, suffix))

    def _recover(self) -> None:
        """Read the segments that may not be on the disk; cut at the first byte that is not a valid
        batch.
        """
        for at, segment in enumerate(self.segments):
            behind = self.segments[at + 1 :]
            if behind and behind[0].base_offset <= self.expected.recovery_point:
                continue
            end = self._recover_segment(segment)
            if self.truncation is not None:
                self._drop(behind, "behind damage")
                return
            if behind and behind[0].base_offset > end and not self.config.is_compacted:
                # A later segment reached the disk before the end of this one did. (A segment begins
                # at the offset where the previous one ends; only compaction leaves gaps.)
                self.truncation = Truncation(end, 0)
                self._drop(behind, "behind a gap")
                return
            if behind:
                segment.seal()

    def _recover_segment(self, segment: Segment) -> int:
        """Check every batch, rebuild the indexes, cut damaged bytes; return the next offset."""
        size = segment.size_bytes
        segment.batches.reset()
        self.recovered.add(segment.base_offset)
        # If only the process crashed, the bytes can be read, but may not be on the device yet.
        segment.files.synced_bytes = -1
        next_offset, position = segment.base_offset, 0
        durable = reported = 0
        for start, header, _ in scan.batches(segment.file.read_at, 0, size):
            if header.base_offset < next_offset:
                break
            if header.base_offset < self.expected.recovery_point:
                durable = start
            _note_epoch(self.epochs, header)
            next_offset, position = segment.batches.note_header(start, header)
            if self.progress is not None and position - reported >= _PROGRESS_BYTES:
                self.progress.walked(position - reported, segment)
                reported = position
        if self.progress is not None:
            self.progress.walked(position - reported, segment)
        if self.config.flush_on_ack:
            _write_again(segment.file, durable, position)
        if position == size:
            return next_offset
        _log.error(
            "cutting a damaged log path=%s position=%d bytes=%d next_offset=%d",
            segment.files.path(LOG_SUFFIX),
            position,
            size - position,
            next_offset,
        )
        segment.cut(position)
        self.truncation = Truncation(next_offset, size - position)
        return next_offset

    def _drop(self, segments: list[Segment], reason: str) -> None:
        """Rename segments out of the log; the next start deletes them, until then they can be
        saved.
        """
        removed = tuple(segment.base_offset for segment in segments)
        for segment in segments:
            renamed = segment.files.mark_deleted()
            segment.files.close()
            _log.error("segment dropped reason=%s files=%s", reason, renamed)
        self.segments = [item for item in self.segments if item.base_offset not in removed]
        if self.truncation is not None and removed:
            self.truncation = self.truncation._replace(segments_removed=removed)

    def _load_end(self) -> int:
        """Read the end of the last segment, creating one if the log has no segment; return the next
        offset.
        """
        end = -1
        if self.segments:
            last = self.segments[-1]
            tail = last.load_tail()
            if tail.position < last.size_bytes:
                # Even after a clean shutdown: nothing may be appended after a partial batch.
                self._recover_segment(last)
                tail = last.load_tail()
            end = tail.next_offset
        start = self._checked_start(end)
        if end < start or not self.segments:
            set_aside = self.expected.set_aside
            if set_aside is not None and any(segment.size_bytes for segment in self.segments):
                set_aside(self.segments)
            else:
                self._drop(self.segments, "before the start of the log")
            created = Segment.create(self.files, self.directory, start, self.config, self.now_ms)
            self.segments = [created]
            end = start
        return end

    def _checked_start(self, end: int) -> int:
        """Return the log start offset; a log that was closed cleanly cannot end before it."""
        start = self.expected.log_start_offset
        is_possible = end >= start or not self.expected.is_clean
        if is_possible or not self.segments or self.expected.set_aside is None:
            return start
        _log.error(
            "ignoring a log start offset behind the end of the log path=%s start=%d end=%d",
            self.directory,
            start,
            end,
        )
        self.rebuilt.append(checkpoints.LOG_START_FILE)
        self.expected = self.expected._replace(log_start_offset=0)
        return 0

    # Leader epochs

    def _check_epochs(self, start: int, end: int) -> None:
        """Compare the epochs with the log's first and last batch; rebuild them if they disagree."""
        self.epochs.truncate_from_end(end)
        headers = self._first_and_last(start, end) if start < end else ()
        if any(self._is_wrong(header, start) for header in headers):
            self.rebuilt.append(checkpoints.LEADER_EPOCH_FILE)
            self.epochs = LeaderEpochs()
            for segment in self.segments:
                for _, header in segment.batches.headers(0):
                    _note_epoch(self.epochs, header)
        self.epochs.truncate_from_start(start)

    def _is_wrong(self, header: BatchHeader, start: int) -> bool:
        if header.leader_epoch < 0:
            return False
        # The epochs begin at the log start offset, which may be inside a batch.
        offset = max(header.base_offset, start)
        return self.epochs.epoch_of(offset) != header.leader_epoch

    def _first_and_last(self, start: int, end: int) -> Iterator[BatchHeader]:
        """Yield the headers of the first and last batch of the log; skip damaged bytes."""
        behind = [item.base_offset for item in self.segments[1:]]
        first = self.segments[bisect_right(behind, start)]
        last = self.segments[-1]
        for segment, offset in ((first, start), (last, max(end - 1, last.base_offset))):
            position = segment.batches.locate(offset)
            header = None if position is None else segment.batches.header_at(position)
            if header is not None:
                yield header

    # Producers

    def _load_producers(self, start: int, end: int) -> ProducerState:
        rewrite = set(self.recovered)
        for segment in self.segments:
            if not segment.transactions.is_sound():
                self.rebuilt.append(file_name(segment.base_offset, TXN_INDEX_SUFFIX))
                rewrite.add(segment.base_offset)
            if segment.base_offset in rewrite:
                segment.transactions.clear()
        limit = min(rewrite, default=end)
        log_files = LogFiles(self.files, self.directory, start, end, self.now_ms)
        state, damaged = load_producers(log_files, self.segments, min(limit, end), rewrite)
        self.rebuilt += damaged
        for segment in self.segments:
            path = segment.files.path(TXN_INDEX_SUFFIX)
            if segment.base_offset in rewrite and self.files.exists(path):
                sync_path(self.files, path)
        state.remove_expired(self.now_ms, self.config.producer_id_expiration_ms)
        return state


class LogFiles(NamedTuple):
    """The directory of a log, the offsets that it contains, and the current time (ms)."""

    files: FileSystem
    directory: str
    log_start_offset: int
    log_end_offset: int
    now_ms: int


def load_producers(
    log_files: LogFiles, segments: list[Segment], snapshot_limit: int, rewrite: Collection[int] = ()
) -> tuple[ProducerState, list[str]]:
    """Read the newest snapshot up to `snapshot_limit` and replay the log from there to its end.

    Returns the state and the names of damaged snapshots. Damaged snapshots and snapshots past the
    end of the log are removed. `rewrite` is as in `replay`.
    """
    stored, damaged = _newest_snapshot(log_files, snapshot_limit)
    state = ProducerState(log_files.log_start_offset) if stored is None else stored
    start = max(log_files.log_start_offset, state.end_offset)
    replay(segments, state, start, log_files.now_ms, rewrite=rewrite)
    state.end_offset = log_files.log_end_offset
    if stored is not None and len(state):
        newest_first = chain.from_iterable(
            segment.batches.headers_backwards() for segment in reversed(segments)
        )
        state.add_earlier(islice(newest_first, _EARLIER_BATCHES))
    return state, damaged


def _newest_snapshot(log_files: LogFiles, limit: int) -> tuple[ProducerState | None, list[str]]:
    damaged: list[str] = []
    for name in reversed(log_files.files.list(log_files.directory)):
        offset = base_offset_of(name, SNAPSHOT_SUFFIX)
        if offset < 0 or limit < offset <= log_files.log_end_offset:
            continue
        path = f"{log_files.directory}/{name}"
        if offset <= limit:
            state = ProducerState.decode_snapshot(log_files.files.read(path), offset)
            if state is not None:
                return state, damaged
            damaged.append(name)
        log_files.files.remove(path)
    return None, damaged


def replay(
    segments: list[Segment],
    state: ProducerState,
    from_offset: int,
    now_ms: int,
    *,
    rewrite: Collection[int],
) -> None:
    """Update `state` with the batches from `from_offset` to the end of the log.

    The producers in these batches count as active at `now_ms`, because the log does not contain the
    real time. Aborted transactions go into the transaction index of the segments named in
    `rewrite`. A damaged marker is reported and skipped.
    """
    for at, segment in enumerate(segments):
        if at + 1 < len(segments) and segments[at + 1].base_offset <= from_offset:
            continue
        position = segment.batches.locate(max(from_offset, segment.base_offset))
        if position is None:
            continue
        for start, header in segment.batches.headers(position):
            if not header.has_producer_id:
                continue
            marker = None
            if header.attributes & CONTROL_BIT:
                data = segment.file.read_at(start, header.size_bytes)
                try:
                    marker = parse_marker(data, header)
                except ApiError:
                    # Whether the transaction was aborted is not known: it stays open.
                    segment.batches.damaged(start)
            ended = state.note(header, header.base_offset, marker, now_ms)
            if ended is not None and ended.is_aborted and segment.base_offset in rewrite:
                segment.transactions.add(state.index_entry(ended))


def store_snapshot(files: FileSystem, directory: str, state: ProducerState) -> None:
    """Write the producer state to a snapshot file."""
    # Not synced: it has a checksum, and an older snapshot with more of the log gives the same
    # state.
    path = f"{directory}/{file_name(state.end_offset, SNAPSHOT_SUFFIX)}"
    overwrite(files, path, state.encode_snapshot())


def remove_snapshots(files: FileSystem, directory: str, is_useless: Callable[[int], bool]) -> None:
    """Remove the snapshots whose offset satisfies `is_useless`."""
    for name in files.list(directory):
        offset = base_offset_of(name, SNAPSHOT_SUFFIX)
        if offset >= 0 and is_useless(offset):
            files.remove(f"{directory}/{name}")


def tidy(files: FileSystem, directory: str) -> None:
    """Remove files that were to be deleted, and finish or undo compaction's swaps.

    A `.cleaned` file is unfinished work. A `.swap` file is whole and replaces the segments whose
    offsets it covers, unless it came from the same unfinished split.
    """
    names = files.list(directory)
    cleaned = [name for name in names if name.endswith(CLEANED_SUFFIX)]
    unfinished = min((_offset(name) for name in cleaned), default=None)
    swaps = [name for name in names if name.endswith(SWAP_SUFFIX)]
    useless = [name for name in swaps if unfinished is not None and _offset(name) >= unfinished]
    deleted = [name for name in names if name.endswith((DELETED_SUFFIX, ".tmp"))]
    for name in (*useless, *deleted):
        files.remove(f"{directory}/{name}")
    if useless:
        # If the unfinished files were gone, the next start would treat the swap as a whole one.
        files.sync_directory(directory)
    for name in cleaned:
        files.remove(f"{directory}/{name}")
    finished = [name for name in swaps if name not in useless]
    if finished:
        _swap_in(files, directory, finished)


def _offset(name: str) -> int:
    """Return the base offset at the start of a file's name; -1 if the name has no offset."""
    return int(name[:20]) if name[:20].isdecimal() else -1


def _swap_in(files: FileSystem, directory: str, swaps: list[str]) -> None:
    logs = [name for name in swaps if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)]
    first = min(map(_offset, logs), default=0)
    ends = [_next_offset(files, f"{directory}/{name}", _offset(name)) for name in logs]
    for name in files.list(directory):
        base_offset = max(base_offset_of(name, suffix) for suffix in SUFFIXES)
        if first <= base_offset < max(ends, default=0):
            files.remove(f"{directory}/{name}")
    # A crash must not leave the old files beside the new ones. The log file is renamed first, or
    # the next start removes it.
    files.sync_directory(directory)
    for name in sorted(swaps, key=lambda name: name not in logs):
        files.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP_SUFFIX)}")
    # The next cleaning would treat a file that is still named as a swap as its own unfinished work.
    files.sync_directory(directory)


def begin_swap(files: FileSystem, cleaned: Segment) -> None:
    """Rename a cleaned segment so that it replaces others even after a crash; blocks.

    Its `.cleaned` files, and their names, are durable already.
    """
    rename_files(files, cleaned, SWAP_SUFFIX)
    files.sync_directory(cleaned.files.directory)


def rename_files(files: FileSystem, segment: Segment, ending: str) -> None:
    """Replace the suffix of a segment's file names by `ending`; "" for none.

    A swap beside a `.cleaned` file does not count as whole, so the log file gets a suffix last. It
    loses the suffix first, or the next start removes it.
    """
    existing = [suffix for suffix in SUFFIXES if files.exists(segment.files.path(suffix))]
    for suffix in reversed(existing) if ending else existing:
        plain = f"{segment.files.directory}/{file_name(segment.base_offset, suffix)}"
        files.rename(segment.files.path(suffix), plain + ending)
    segment.files.ending = ending


def _next_offset(files: FileSystem, path: str, base_offset: int) -> int:
    file = files.open(path)
    try:
        # Even an empty segment replaces the one that has its name.
        next_offset = base_offset + 1
        for _, header in scan.headers(file.read_at, 0, file.size()):
            next_offset = header.last_offset + 1
        return next_offset
    finally:
        file.close()


def _write_again(file: File, position: int, end: int) -> None:
    """Write bytes again so that the next sync writes them to the device.

    After a failed sync, Linux keeps the bytes readable and considers them to be on the device.
    """
    while position < end:
        data = file.read_at(position, min(_COPY_BYTES, end - position))
        file.write_at(position, data)
        position += len(data)


def _note_epoch(epochs: LeaderEpochs, header: BatchHeader) -> None:
    if header.leader_epoch > epochs.latest:
        epochs.assign(header.leader_epoch, header.base_offset)
