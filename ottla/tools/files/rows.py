"""Rows of files as values: the row, its position in a file, and the reason why it is refused."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from ottla.base.errors import ConfigError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FAR = re.compile(r"\+?([0-9]{5,6})(-.*)")
_CYCLE_MS = 146_097 * 86_400_000
_MILLISECOND = timedelta(milliseconds=1)


class RefusedRow(Exception):
    """The reason why a row cannot be loaded, and the column that causes it, if it is one."""

    def __init__(self, reason: str, column: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.column = column


class RowPosition(NamedTuple):
    """The place of a row: a line of a text file, or a row of a Parquet file, from 1 on."""

    path: str
    line: int
    unit: str = "line"

    def sentence(self, error: RefusedRow) -> str:
        """Return position and reason in one line."""
        column = f", column {error.column!r}" if error.column else ""
        return f"{self.path}, {self.unit} {self.line}{column}: {error.reason}"


class FileRow(NamedTuple):
    """A row as the file has it: text, or the values of a Parquet file."""

    position: RowPosition
    source: Any


class LoadedRecord(NamedTuple):
    """A record to be written; None of `timestamp` is the current time, of `partition` the key's."""

    key: bytes | None
    value: bytes | None
    timestamp: int | None = None
    partition: int | None = None
    headers: tuple[Mapping[str, Any], ...] | None = None

    def size(self) -> int:
        """Return a size that the encoded record does not exceed, in bytes."""
        key, value, _, _, headers = self
        size = len(key or b"") + len(value or b"") + 40
        for header in headers or ():
            size += len(header["key"]) * 4 + len(header["value"] or b"") + 10
        return size


def milliseconds(moment: datetime) -> int:
    """Return the milliseconds since 1970; a time without a zone is UTC."""
    return (_aware(moment) - EPOCH) // _MILLISECOND


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def parse_aware(text: str) -> datetime:
    """Return the moment of an ISO 8601 text; UTC without a zone."""
    return _aware(parse_time(text))


def parse_time(text: str) -> datetime:
    """Return the moment of an ISO 8601 text; ValueError says what it must look like."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a time such as 2026-02-14T12:00:00Z") from None


def milliseconds_of(text: str) -> int:
    """Return the milliseconds since 1970 of an ISO 8601 text, also beyond the year 9999."""
    try:
        return milliseconds(parse_time(text))
    except ValueError:
        far = _FAR.fullmatch(text)
        if far is None:
            raise
    # The calendar repeats every 400 years.
    cycles, year = divmod(int(far[1]) - 2000, 400)
    return milliseconds(parse_time(f"{2000 + year}{far[2]}")) + cycles * _CYCLE_MS


def text_of_milliseconds(timestamp: int) -> str:
    """Return the ISO 8601 text in UTC that `milliseconds_of` reads, also beyond the year 9999."""
    cycles, rest = divmod(timestamp, _CYCLE_MS)
    moment = EPOCH + rest * _MILLISECOND
    return f"{moment.year + 400 * cycles:04}{moment:-%m-%dT%H:%M:%S}.{rest % 1000:03}Z"


def check_columns(named: Iterable[str], known: Iterable[str], source: str) -> None:
    """Raise ConfigError if a column of the command line is missing."""
    columns = list(known)
    missing = [name for name in named if name and name not in columns]
    if missing:
        raise ConfigError(
            f"{source} has no column {missing[0]!r}; it has: {', '.join(columns) or 'none'}."
        )
