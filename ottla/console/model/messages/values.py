"""The values of browsing and searching: requests, rows, progress, results."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from ottla.base.search.conditions import Condition
from ottla.console.model.messages.decoding import Decoded, Format
from ottla.console.model.messages.masking import MaskingRule

Cancelled = Callable[[], bool]
"""Returns True if the caller no longer needs the result; polled between requests."""


def never() -> bool:
    """Return False: the call is not cancelled."""
    return False


class Seek(StrEnum):
    """The first record to read in each partition."""

    NEWEST = "newest"
    OLDEST = "oldest"
    OFFSET = "offset"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True)
class BrowseRequest:
    """Records to read.

    `partitions` empty means all. `offset` is for OFFSET, `timestamp_ms` for TIMESTAMP, which
    excludes older records; `until_ms` excludes records from this time on. `positions` (partition,
    offset) continues an earlier result and replaces `seek`. Values in a schema registry's wire
    format are shown and compared as JSON if `decodes_schemas`. `where` is a text of the language of
    filters (docs/search.md), and `conditions` are the same as objects: all must match. At most
    `limit` records (1 to 10 000) are returned and `scan_limit` are read (None: to the end at the
    time of the call).
    """

    topic: str
    partitions: tuple[int, ...] = ()
    seek: Seek = Seek.NEWEST
    offset: int = 0
    timestamp_ms: int = 0
    until_ms: int | None = None
    limit: int = 100
    scan_limit: int | None = None
    timeout_s: float = 30.0
    where: str = ""
    conditions: tuple[Condition, ...] = ()
    key_format: Format = Format.AUTO
    value_format: Format = Format.AUTO
    header_format: Format = Format.AUTO
    text_limit: int = 10_000
    is_read_committed: bool = True
    positions: tuple[tuple[int, int], ...] = ()
    masking: tuple[MaskingRule, ...] = ()
    decodes_schemas: bool = True


class ShownFormats(NamedTuple):
    """The formats in which one record is shown; without `decodes_schemas` its bytes as stored."""

    key: Format = Format.AUTO
    value: Format = Format.AUTO
    decodes_schemas: bool = True


DEFAULT_FORMATS = ShownFormats()


@dataclass(frozen=True, slots=True)
class MessageRow:
    """A record; `value` None is a tombstone, and the timestamp is -1 if unknown.

    `timestamp_type` is "create", "logappend" or "unknown". `size_bytes` is of key, value and
    headers.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: str
    key: Decoded | None
    value: Decoded | None
    headers: tuple[tuple[str, Decoded | None], ...]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a search; `total`, the number of offsets to scan, bounds the records."""

    scanned: int
    matched: int
    total: int
    scanned_bytes: int
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class BrowseResult:
    """Records: newest first for NEWEST, else by timestamp as they were read.

    `ended_by` is "limit", "end", "scan-limit", "timeout" or "cancelled"; `next_positions` continue
    the search (older records for NEWEST), empty if every record has been read. Records of
    `unread_partitions`, which have no running leader, and of `damaged_batches`, which cannot be
    decoded, are missing.
    """

    rows: tuple[MessageRow, ...]
    progress: Progress
    ended_by: str
    next_positions: tuple[tuple[int, int], ...]
    unread_partitions: tuple[int, ...] = ()
    damaged_batches: int = 0


@dataclass(frozen=True, slots=True)
class SearchEvent:
    """An event of a search: new records, progress, and at the end `result`, whose rows are empty."""

    rows: tuple[MessageRow, ...]
    progress: Progress
    result: BrowseResult | None = None
