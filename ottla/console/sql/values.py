"""Values of a query: its limits, and its result."""

from dataclasses import dataclass, field
from typing import Any

from ottla.base.errors import ConfigError, OttlaError
from ottla.console.accounts.reading import Reader

MIB = 1 << 20


class QueryRejected(ConfigError):
    """A statement that cannot be run: malformed, too large, too slow, or not allowed."""


class QueryBusy(OttlaError):
    """Another query of the user, or too many queries of all users, are running."""


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """The limits of a query; `records` and `read_bytes` are for each topic."""

    records: int = 100_000
    read_bytes: int = 64 * MIB
    text_length: int = 4 * MIB
    memory_bytes: int = 256 * MIB
    timeout_s: float = 30.0
    rows: int = 10_000
    file_bytes: int = 16 * MIB
    topics: int = 4
    sql_length: int = 20_000


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a result; `type` is DuckDB's name of it."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class TopicRead:
    """The part of a topic that was read.

    `total` is the number of offsets in the range of time, of which the newest `records` were read;
    `is_complete` is False if some were left out: others of the range, `unread_partitions`, which
    have no running leader, or `damaged_batches`. `is_newest` is False if the limit of bytes left
    out the end of the range, too. `cut_values` is the number of records with a key, value or
    header of more characters than the limit, or a value that nests too deep: its fields are NULL.
    In `replaced_values` records, U+FFFD is in place of NUL. `hidden_fields` of the JSON objects
    are no columns: there are too many, or their names are too long, empty, or taken.
    """

    topic: str
    records: int
    total: int
    read_bytes: int
    start_ms: int | None
    end_ms: int | None
    is_complete: bool
    cut_values: int = 0
    replaced_values: int = 0
    unread_partitions: tuple[int, ...] = ()
    damaged_batches: int = 0
    is_newest: bool = True
    hidden_fields: int = 0


@dataclass(frozen=True, slots=True)
class QueryResult:
    """A result: numbers and truth values as they are, everything else as text.

    `is_cut` if there are more rows than the limit. `is_read_committed` is False if records of open
    and aborted transactions count.
    """

    sql: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    is_cut: bool
    topics: tuple[TopicRead, ...]
    elapsed_s: float
    is_read_committed: bool = True


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A result that can be downloaded, with the rights with which it was read."""

    reader: Reader
    result: QueryResult
    parquet: bytes = field(repr=False)
