"""The values that flow through a topology: records, changes of tables, windowed keys.

All are immutable; a processor that changes one makes another.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from ottla.streams.model.durations import instant_of

K = TypeVar("K")
V = TypeVar("V")
NewK = TypeVar("NewK")
NewV = TypeVar("NewV")

Header = tuple[str, bytes | None]

NO_TIMESTAMP = -1
_FOREVER = (1 << 63) - 1


class KeyValue(NamedTuple, Generic[K, V]):
    """A key and a value; wherever one is taken a tuple does as well."""

    key: K
    value: V

    @classmethod
    def pair(cls, key: K, value: V) -> "KeyValue[K, V]":
        """Return a key and a value."""
        return cls(key, value)


class Record(NamedTuple, Generic[K, V]):
    """A key, a value, a timestamp in milliseconds and headers (Kafka's processor.api.Record)."""

    key: K
    value: V
    timestamp: int
    headers: Sequence[Header] = ()

    def with_key(self, key: NewK) -> "Record[NewK, V]":
        """Return this record under another key."""
        return Record(key, self.value, self.timestamp, self.headers)

    def with_value(self, value: NewV) -> "Record[K, NewV]":
        """Return this record with another value."""
        return Record(self.key, value, self.timestamp, self.headers)

    def with_timestamp(self, timestamp: int) -> "Record[K, V]":
        """Return this record at another time."""
        return Record(self.key, self.value, timestamp, self.headers)

    def with_headers(self, headers: Sequence[Header]) -> "Record[K, V]":
        """Return this record with other headers."""
        return Record(self.key, self.value, self.timestamp, headers)


class Change(NamedTuple, Generic[V]):
    """What a table's update says: the new value and, where somebody asked for it, the old one.

    `is_latest` is false only behind a versioned table, for an update that is older than its latest.
    """

    new_value: V | None
    old_value: V | None
    is_latest: bool = True


class ValueAndTimestamp(NamedTuple, Generic[V]):
    """A value of a table and the time at which it was set."""

    value: V
    timestamp: int

    @classmethod
    def make(cls, value: V | None, timestamp: int) -> "ValueAndTimestamp[V] | None":
        """Return a value with its time in ms; None for None."""
        return None if value is None else cls(value, timestamp)

    @staticmethod
    def get_value_or_null(entry: "ValueAndTimestamp[V] | None") -> V | None:
        """Return the value alone; None for None."""
        return None if entry is None else entry.value


class VersionedRecord(NamedTuple, Generic[V]):
    """One version of a value, valid from `timestamp` until `valid_to` (None: still)."""

    value: V
    timestamp: int
    valid_to: int | None


class RecordMetadata(NamedTuple):
    """Where the record that is being processed was read."""

    topic: str
    partition: int
    offset: int


class _Times(NamedTuple):
    """The start and the end of a window, in milliseconds."""

    start: int
    end: int


def _check_times(start: int, end: int, shortest: int) -> None:
    if start < 0:
        raise ValueError(f"a window starts at '{start}': give 0 or later")
    if end < start + shortest:
        raise ValueError(
            f"a window ends at '{end}' and starts at '{start}': give an end that is not before its start"
            + (", nor the same" if shortest else "")
        )


class TimeWindow(_Times):
    """From `start` up to, without, `end` in milliseconds; raises ValueError if it holds no time."""

    __slots__ = ()

    def __new__(cls, start: int, end: int) -> "TimeWindow":
        """Make one."""
        _check_times(start, end, 1)
        return tuple.__new__(cls, (start, end))

    @property
    def start_time(self) -> datetime:
        """When it starts, in UTC."""
        return instant_of(self.start)

    @property
    def end_time(self) -> datetime:
        """When it ends, in UTC; the end of all time where it has none."""
        return instant_of(self.end)

    def overlap(self, other: "TimeWindow") -> bool:
        """Return whether there is a time that both hold."""
        return self.start < other.end and other.start < self.end

    @classmethod
    def of_size(cls, start: int, size_ms: int) -> "TimeWindow":
        """Return the window of a size from a start, without checks: one without end ends with time."""
        return tuple.__new__(cls, (start, min(start + size_ms, _FOREVER)))


class SessionWindow(_Times):
    """From `start` up to, and with, `end` in milliseconds: the times of a session's outer records."""

    __slots__ = ()

    def __new__(cls, start: int, end: int) -> "SessionWindow":
        """Make one."""
        _check_times(start, end, 0)
        return tuple.__new__(cls, (start, end))

    @property
    def start_time(self) -> datetime:
        """The time of its first record, in UTC."""
        return instant_of(self.start)

    @property
    def end_time(self) -> datetime:
        """The time of its last record, in UTC."""
        return instant_of(self.end)

    def overlap(self, other: "SessionWindow") -> bool:
        """Return whether there is a time that both hold."""
        return self.start <= other.end and other.start <= self.end


unchecked_window: Callable[[tuple[int, int]], TimeWindow] = partial(tuple.__new__, TimeWindow)
"""Makes a window of its start and end without checks: a task makes several for each record."""

unchecked_session: Callable[[tuple[int, int]], SessionWindow] = partial(
    tuple.__new__, SessionWindow
)
"""Makes a session of its start and end without checks."""


class Windowed(NamedTuple, Generic[K]):
    """A key within a window: the key of every windowed table."""

    key: K
    window: TimeWindow | SessionWindow

    def __str__(self) -> str:
        return f"[{self.key}@{self.window.start}/{self.window.end}]"
