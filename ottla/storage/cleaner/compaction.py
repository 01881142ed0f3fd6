"""The decisions of compaction: which logs to clean, which segments together, which records to keep.

Pure. A log is clean before its first dirty offset: that part has only the newest record of each
key. A pass reads the newest offset of each key from the dirty part (`NewestOffsets`), then reads
the log from its start and keeps the records that `Survival` selects. Offsets never change; a batch
keeps its first and last one. Follows org.apache.kafka LogCleaner, LogCleanerManager and
MemoryRecords.filterTo (KIP-534).
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from ottla.base.buffers import Buffer
from ottla.base.errors import ApiError, ErrorCode
from ottla.storage.config import LONG_MAX, LogConfig
from ottla.storage.files.formats import TIME_ENTRY
from ottla.storage.files.index import ENTRY_SIZE, RELATIVE_OFFSET_MAX
from ottla.storage.files.time_index import TimeEntry
from ottla.storage.files.txn_index import AbortedTransaction
from ottla.storage.log.producers import ProducerState, parse_marker
from ottla.wire.records import batch, spans
from ottla.wire.records.batch import DELETE_HORIZON_BIT, HEADER_SIZE, BatchHeader
from ottla.wire.records.compression import compress
from ottla.wire.records.control import ControlType
from ottla.wire.records.records import read_body
from ottla.wire.records.spans import Span

# The size of a digest, an offset, and their dictionary entry in CPython.
KEY_BYTES = 192
_DIGEST_BYTES = 16
_PARTS = 64
# The most bytes that a batch may unpack to.
_BODY_BYTES_MAX = 32 * 1024 * 1024
_RECORDS_MAX = 200_000
# Swapping many segments at once would block the event loop.
_GROUP_MAX = 64
_KEPT_ATTRIBUTES = batch.LOG_APPEND_TIME_BIT | batch.TRANSACTIONAL_BIT | batch.CONTROL_BIT


class Cleanable(Protocol):
    """The properties of a segment that the plan depends on; the times are read only if an option
    needs them.
    """

    @property
    def base_offset(self) -> int:
        """First offset that the segment can contain."""
        ...

    @property
    def size_bytes(self) -> int:
        """Bytes of its log file."""
        ...

    @property
    def newest(self) -> TimeEntry:
        """Its largest timestamp (ms)."""
        ...

    @property
    def first_timestamp(self) -> int:
        """Timestamp (ms) of its first batch."""
        ...


CleanableSegment = TypeVar("CleanableSegment", bound=Cleanable)


class LogOffsets(NamedTuple):
    """The offsets of a log's progress.

    Records from `stable_end_offset` on may still be lost, or belong to an open transaction.
    """

    log_start_offset: int
    log_end_offset: int
    first_dirty_offset: int
    stable_end_offset: int


class Survey(NamedTuple):
    """The result of a survey: cleaning the log reads the keys in [first_dirty_offset, end_offset).

    `end_offset` is the base offset of a segment. `is_overdue` is by max.compaction.lag.ms.
    """

    first_dirty_offset: int
    end_offset: int
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool

    @property
    def dirty_ratio(self) -> float:
        """The dirty share of the bytes."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def is_due(self, config: LogConfig) -> bool:
        """Return True if the log is dirty enough, or overdue, to be cleaned."""
        if not self.dirty_bytes:
            return False
        return self.is_overdue or self.dirty_ratio > config.min_cleanable_dirty_ratio


def survey(
    segments: Sequence[Cleanable], progress: LogOffsets, config: LogConfig, now_ms: int
) -> Survey:
    """Survey a log's segments, oldest first; the last one takes appends and is never cleaned."""
    first_dirty = progress.first_dirty_offset
    if not progress.log_start_offset <= first_dirty <= progress.log_end_offset:
        first_dirty = progress.log_start_offset
    ends = [segment.base_offset for segment in segments[1:]]
    sealed = list(zip(segments[:-1], ends, strict=True))
    dirty = [segment for segment, end in sealed if end > first_dirty]
    bound = progress.stable_end_offset
    if config.min_compaction_lag_ms > 0:
        youngest_ms = now_ms - config.min_compaction_lag_ms
        young = (item.base_offset for item in dirty if item.newest.timestamp > youngest_ms)
        bound = min(bound, next(young, bound))
    end_offset = max((end for end in ends if end <= bound), default=segments[0].base_offset)
    clean_bytes = dirty_bytes = 0
    for segment, end in sealed:
        if end <= first_dirty:
            clean_bytes += segment.size_bytes
        elif end <= end_offset:
            dirty_bytes += segment.size_bytes
    is_overdue = bool(dirty_bytes) and _is_overdue(dirty, config, now_ms)
    return Survey(first_dirty, max(first_dirty, end_offset), clean_bytes, dirty_bytes, is_overdue)


def _is_overdue(dirty: Sequence[Cleanable], config: LogConfig, now_ms: int) -> bool:
    if config.max_compaction_lag_ms == LONG_MAX:
        return False
    oldest_ms = now_ms - config.max_compaction_lag_ms
    return any(0 < segment.first_timestamp < oldest_ms for segment in dirty)


def group(
    segments: Sequence[CleanableSegment], end_offset: int, config: LogConfig
) -> Iterator[list[CleanableSegment]]:
    """Yield groups of segments, oldest first, that fit into one segment each even if no record is
    removed.

    `end_offset` is the end of the last one of `segments`.
    """
    ends = [*(segment.base_offset for segment in segments[1:]), end_offset]
    gathered: list[CleanableSegment] = []
    log_bytes = index_bytes = 0
    for segment, end in zip(segments, ends, strict=True):
        more_index_bytes = _index_bytes(segment.size_bytes, config)
        fits = (
            len(gathered) < _GROUP_MAX
            and log_bytes + segment.size_bytes <= config.segment_bytes
            and index_bytes + more_index_bytes <= config.segment_index_bytes
        )
        if gathered and not (fits and end - 1 - gathered[0].base_offset <= RELATIVE_OFFSET_MAX):
            yield gathered
            gathered, log_bytes, index_bytes = [], 0, 0
        gathered.append(segment)
        log_bytes += segment.size_bytes
        index_bytes += more_index_bytes
    if gathered:
        yield gathered


def _index_bytes(size_bytes: int, config: LogConfig) -> int:
    """Return the largest possible size of the larger index of a segment."""
    interval = max(config.index_interval_bytes, HEADER_SIZE)
    return size_bytes // interval * max(ENTRY_SIZE, TIME_ENTRY.size)


class NewestOffsets:
    """The newest offset of each key among the records before `end_offset`; bounded in memory.

    Long keys are kept as digests. Two keys have different digests unless they were made to collide.
    Short keys are kept as they are, so none of them equals a digest.
    """

    __slots__ = ("_keys_max", "_parts", "end_offset")

    def __init__(self, start_offset: int, memory_bytes: int) -> None:
        # One large dictionary would hold the interpreter, and with it the event loop, while it
        # grows and while it is freed.
        self._parts: list[dict[bytes, int]] = [{} for _ in range(_PARTS)]
        self._keys_max = max(1, memory_bytes // KEY_BYTES)
        self.end_offset = start_offset

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def has_room(self, keys_count: int) -> bool:
        """Return True if a batch of this many records fits; the first one always does."""
        known = len(self)
        return not known or known + keys_count <= self._keys_max

    def forget(self) -> None:
        """Free the memory, in small steps."""
        for part in self._parts:
            part.clear()

    def note(self, data: Buffer, header: BatchHeader) -> None:
        """Add the keys of a batch, which comes after all that were added before."""
        body = _opened(data, header)
        if body is None:
            return
        base_offset, parts = header.base_offset, self._parts
        for span in spans.spans(body, header.records_count):
            if span.key_start >= 0:
                digest = _digest(body[span.key_start : span.key_end])
                parts[hash(digest) % _PARTS][digest] = base_offset + span.offset_delta

    def is_newest(self, key: bytes, offset: int) -> bool:
        """Return True if no newer record of this key is known."""
        digest = _digest(key)
        return offset >= self._parts[hash(digest) % _PARTS].get(digest, -1)


def _digest(key: bytes) -> bytes:
    if len(key) < _DIGEST_BYTES:
        return key
    return hashlib.blake2b(key, digest_size=_DIGEST_BYTES).digest()


class _Aborted:
    """An aborted transaction that is being read, and whether any of its records were found."""

    __slots__ = ("entry", "was_seen")

    def __init__(self, entry: AbortedTransaction) -> None:
        self.entry = entry
        self.was_seen = False


class TransactionsSeen:
    """The transactions of the batches, which are read one after the other from the log's start on.

    `indexed` collects the aborted transactions of which records remain: the content of the
    transaction index of the cleaned segment. Follows CleanedTransactionMetadata.
    """

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        by_start = sorted(aborted, key=lambda entry: entry.first_offset, reverse=True)
        self._coming = by_start
        self._aborted: dict[int, _Aborted] = {}
        self._committed: set[int] = set()
        self.indexed: list[AbortedTransaction] = []

    def is_discardable(self, data: Buffer, header: BatchHeader) -> bool:
        """Return True if a batch is not needed: aborted records, or a marker without remaining
        records.
        """
        coming = self._coming
        while coming and coming[-1].first_offset <= header.last_offset:
            entry = coming.pop()
            self._aborted.setdefault(entry.producer_id, _Aborted(entry))
        if header.is_control:
            return self._is_useless_marker(data, header)
        if not header.is_transactional:
            return False
        aborted = self._aborted.get(header.producer_id)
        if aborted is None:
            self._committed.add(header.producer_id)
            return False
        aborted.was_seen = True
        return True

    def _is_useless_marker(self, data: Buffer, header: BatchHeader) -> bool:
        if not header.records_count:
            return True
        marker = parse_marker(data, header)
        if marker is None:
            return False
        if marker.type == ControlType.COMMIT:
            was_seen = header.producer_id in self._committed
            self._committed.discard(header.producer_id)
            return not was_seen
        aborted = self._aborted.pop(header.producer_id, None)
        if aborted is None or not aborted.was_seen:
            return True
        self.indexed.append(aborted.entry)
        return False


class LastWritten(NamedTuple):
    """The last offset of an active producer's batches (None: it has only markers), and its epoch."""

    last_offset: int | None
    producer_epoch: int


def last_written(state: ProducerState) -> dict[int, LastWritten]:
    """Return the last batch of each producer in the log's producer state."""
    return {
        producer_id: LastWritten(
            producer.batches[-1].last_offset if producer.batches else None, producer.epoch
        )
        for producer_id, producer in state.producers.items()
    }


class Survival:
    """The surviving records of each batch in one pass that began at `now_ms`; batches in log
    order.
    """

    def __init__(
        self,
        offsets: NewestOffsets,
        transactions: TransactionsSeen,
        producers: Mapping[int, LastWritten],
        *,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        self._offsets = offsets
        self._transactions = transactions
        self._producers = producers
        self._now_ms = now_ms
        self._new_horizon_ms = min(now_ms + delete_retention_ms, LONG_MAX)

    def apply(self, data: Buffer, header: BatchHeader, *, is_last: bool) -> Buffer | None:
        """Return the remainder of a batch: itself, a smaller batch, an empty batch, or None.

        `is_last` keeps at least an empty batch, so that the segment ends at the same offset as
        before.
        """
        horizon_ms = header.base_timestamp if header.attributes & DELETE_HORIZON_BIT else None
        is_over = horizon_ms is not None and horizon_ms <= self._now_ms
        discardable = self._transactions.is_discardable(data, header)
        if not header.records_count or (discardable and (is_over or not header.is_control)):
            survivors = None
        elif header.is_control:
            # The first pass that finds a marker without a transaction sets the time of its
            # removal.
            needs_horizon = discardable and horizon_ms is None
            survivors = self._with_horizon(data, header) if needs_horizon else data
        else:
            survivors = self._filter(data, header, horizon_ms)
        if survivors is None and (is_last or self._is_last_of_producer(header)):
            return empty_batch(header) if header.records_count else data
        return survivors

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        """Return True if the producer's sequence number or epoch would be lost with the batch."""
        if not header.has_producer_id:
            return False
        last = self._producers.get(header.producer_id)
        if last is None:
            return False
        if last.last_offset is not None:
            return header.last_offset == last.last_offset
        return header.is_control and header.producer_epoch == last.producer_epoch

    def _with_horizon(self, data: Buffer, header: BatchHeader) -> Buffer:
        body = _opened(data, header)
        if body is None:
            return data
        survivors = list(spans.spans(body, header.records_count))
        return rebuild(header, body, survivors, self._new_horizon_ms)

    def _filter(self, data: Buffer, header: BatchHeader, horizon_ms: int | None) -> Buffer | None:
        body = _opened(data, header)
        if body is None:
            return data
        keeps_tombstones = horizon_ms is None or self._now_ms < horizon_ms
        survivors: list[Span] = []
        has_tombstones = False
        for span in spans.spans(body, header.records_count):
            if self._stays(body, span, header.base_offset + span.offset_delta, keeps_tombstones):
                survivors.append(span)
                has_tombstones = has_tombstones or not span.has_value
        if not survivors:
            return None
        if has_tombstones and horizon_ms is None:
            return rebuild(header, body, survivors, self._new_horizon_ms)
        if len(survivors) == header.records_count:
            return data
        return rebuild(header, body, survivors, None)

    def _stays(self, body: bytes, span: Span, offset: int, keeps_tombstones: bool) -> bool:
        if offset >= self._offsets.end_offset:
            return True
        if span.key_start < 0 or not (span.has_value or keeps_tombstones):
            return False
        return self._offsets.is_newest(body[span.key_start : span.key_end], offset)


def _opened(data: Buffer, header: BatchHeader) -> bytes | None:
    """Return the records of a batch; None if they need too much memory: the batch then stays as it
    is.

    Batches that were appended while the topic was not compacted were accepted without reading them.
    """
    if header.records_count > _RECORDS_MAX:
        return None
    try:
        return read_body(data, 0, header, max_bytes=_BODY_BYTES_MAX)
    except ApiError as error:
        if error.code is ErrorCode.MESSAGE_TOO_LARGE:
            return None
        raise


def rebuild(
    header: BatchHeader, body: bytes, survivors: Sequence[Span], new_horizon_ms: int | None
) -> bytearray:
    """Return the batch with the records to keep, at least one, and a new delete horizon (ms)."""
    attributes, base_timestamp = header.attributes, header.base_timestamp
    if new_horizon_ms is None:
        payload = spans.join(body, survivors)
    else:
        payload = spans.join_rebased(body, survivors, new_horizon_ms - base_timestamp)
        attributes |= DELETE_HORIZON_BIT
    newest = header.max_timestamp
    if not header.has_log_append_time:
        newest = header.base_timestamp + max(span.timestamp_delta for span in survivors)
    codec = header.compression
    changed = header._replace(
        attributes=attributes,
        base_timestamp=base_timestamp if new_horizon_ms is None else new_horizon_ms,
        max_timestamp=newest,
        records_count=len(survivors),
    )
    return _sealed(changed, compress(codec, payload) if codec else payload)


def empty_batch(header: BatchHeader) -> bytearray:
    """Return the batch without its records; offsets, sequence numbers and the largest timestamp
    stay.
    """
    changed = header._replace(
        attributes=header.attributes & _KEPT_ATTRIBUTES,
        base_timestamp=batch.NO_TIMESTAMP,
        records_count=0,
    )
    return _sealed(changed, b"")


def _sealed(header: BatchHeader, payload: bytes) -> bytearray:
    length = HEADER_SIZE - batch.LOG_OVERHEAD + len(payload)
    result = bytearray(batch.HEADER.pack(*header._replace(batch_length=length)))
    result += payload
    batch.seal(result, 0, len(result))
    return result
