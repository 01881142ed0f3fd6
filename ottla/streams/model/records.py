"""The values in a topology: records, changes of tables, windowed keys.

All are immutable; processors create changed copies.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from ottla.streams.model.durations import check_whole, instant_of

K = TypeVar("K")
V = TypeVar("V")
NewK = TypeVar("NewK")
NewV = TypeVar("NewV")

Header = tuple[str, bytes | None]

NO_TIMESTAMP = -1
_FOREVER = (1 << 63) - 1


class KeyValue(NamedTuple, Generic[K, V]):
    """A key and a value; a tuple is accepted in place of a KeyValue."""

    key: K
    value: V

    @classmethod
    def pair(cls, key: K, value: V) -> "KeyValue[K, V]":
        """Return a KeyValue."""
        return cls(key, value)


class Record(NamedTuple, Generic[K, V]):
    """A key, a value, a timestamp in milliseconds and headers (Kafka's processor.api.Record)."""

    key: K
    value: V
    timestamp: int
    headers: Sequence[Header] = ()

    def with_key(self, key: NewK) -> "Record[NewK, V]":
        """Return a copy with another key."""
        return Record(key, self.value, self.timestamp, self.headers)

    def with_value(self, value: NewV) -> "Record[K, NewV]":
        """Return a copy with another value."""
        return Record(self.key, value, self.timestamp, self.headers)

    def with_timestamp(self, timestamp: int) -> "Record[K, V]":
        """Return a copy with another timestamp."""
        return Record(self.key, self.value, timestamp, self.headers)

    def with_headers(self, headers: Sequence[Header]) -> "Record[K, V]":
        """Return a copy with other headers."""
        return Record(self.key, self.value, self.timestamp, headers)


class Change(NamedTuple, Generic[V]):
    """An update of a table: the new value and, if an operator requested it, the old value.

    `is_latest` is False only for a versioned table, for an update that is older than the latest one
    of its key.
    """

    new_value: V | None
    old_value: V | None
    is_latest: bool = True


class ValueAndTimestamp(NamedTuple, Generic[V]):
    """A value of a table and its timestamp."""

    value: V
    timestamp: int

    @classmethod
    def make(cls, value: V | None, timestamp: int) -> "ValueAndTimestamp[V] | None":
        """Return a value with its timestamp in ms; None if the value is None."""
        return None if value is None else cls(value, timestamp)

    @staticmethod
    def get_value_or_null(entry: "ValueAndTimestamp[V] | None") -> V | None:
        """Return the value without its timestamp; None for None."""
        return None if entry is None else entry.value


class VersionedRecord(NamedTuple, Generic[V]):
    """A version of a value, valid from `timestamp` until `valid_to` (None if it is the latest)."""

    value: V
    timestamp: int
    valid_to: int | None


class RecordMetadata(NamedTuple):
    """The topic, partition and offset of the record that is being processed."""

    topic: str
    partition: int
    offset: int


class _Times(NamedTuple):
    """The start and end of a window, in milliseconds."""

    start: int
    end: int


def _check_times(start: int, end: int, shortest: int) -> None:
    check_whole("the start of a window", start)
    check_whole("the end of a window", end)
    if start < 0:
        raise ValueError(f"a window starts at '{start}': use 0 or later")
    if end < start + shortest:
        raise ValueError(
            f"a window ends at '{end}' and starts at '{start}': use an end that is not before its start"
            + (", nor the same" if shortest else "")
        )


class TimeWindow(_Times):
    """A window from `start` (inclusive) to `end` (exclusive), in ms. Raises ValueError if it is
    empty.
    """

    __slots__ = ()

    def __new__(cls, start: int, end: int) -> "TimeWindow":
        """Create a window."""
        _check_times(start, end, 1)
        return tuple.__new__(cls, (start, end))

    @property
    def start_time(self) -> datetime:
        """The start in UTC."""
        return instant_of(self.start)

    @property
    def end_time(self) -> datetime:
        """The end in UTC; the latest datetime if the window has no end."""
        return instant_of(self.end)

    def overlap(self, other: "TimeWindow") -> bool:
        """Return True if the windows overlap."""
        return self.start < other.end and other.start < self.end

    @classmethod
    def of_size(cls, start: int, size_ms: int) -> "TimeWindow":
        """Return the window of a size, without checks; a window without end ends at the maximum
        time.
        """
        return tuple.__new__(cls, (start, min(start + size_ms, _FOREVER)))


class SessionWindow(_Times):
    """A session from `start` to `end` in ms, both inclusive: the times of its first and last
    records.
    """

    __slots__ = ()

    def __new__(cls, start: int, end: int) -> "SessionWindow":
        """Create a session."""
        _check_times(start, end, 0)
        return tuple.__new__(cls, (start, end))

    @property
    def start_time(self) -> datetime:
        """The timestamp of the first record, in UTC."""
        return instant_of(self.start)

    @property
    def end_time(self) -> datetime:
        """The timestamp of the last record, in UTC."""
        return instant_of(self.end)

    def overlap(self, other: "SessionWindow") -> bool:
        """Return True if the sessions overlap."""
        return self.start <= other.end and other.start <= self.end


unchecked_window: Callable[[tuple[int, int]], TimeWindow] = partial(tuple.__new__, TimeWindow)
"""Creates a window from its start and end without checks, for speed."""

unchecked_session: Callable[[tuple[int, int]], SessionWindow] = partial(
    tuple.__new__, SessionWindow
)
"""Creates a session from its start and end without checks."""


class Windowed(NamedTuple, Generic[K]):
    """A key and a window: the key of windowed tables."""

    key: K
    window: TimeWindow | SessionWindow

    def __str__(self) -> str:
        return f"[{self.key}@{self.window.start}/{self.window.end}]"
