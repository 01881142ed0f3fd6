"""Windows: tumbling, hopping, unlimited, sliding, session and join windows.

Each is an immutable value in milliseconds. The grace period is how long after its end a window
accepts late records.
"""

import warnings
from dataclasses import dataclass, fields, replace
from typing import Any

from ottla.streams.model.durations import (
    Duration,
    Instant,
    check_whole,
    instant_ms,
    milliseconds,
    signed_milliseconds,
)
from ottla.streams.model.records import TimeWindow, unchecked_window
from ottla.streams.model.spelling import SnakeCase

_FOREVER = (1 << 63) - 1
_DAY_MS = 86_400_000


def _check(holds: bool, sentence: str) -> None:
    if not holds:
        raise ValueError(sentence)


def _check_fields(windows: Any, factory: str) -> None:
    """Raise TypeError if a field is not an int; `factory` takes other types."""
    name = type(windows).__name__
    for each in fields(windows):
        advice = f"; for other types use {name}.{factory}"
        check_whole(f"{each.name} of {name}", getattr(windows, each.name), advice)


def _check_grace(grace_ms: int) -> None:
    _check(grace_ms >= 0, f"a grace of '{grace_ms}' ms is negative: use 0 or more")


def _warn_of(name: str, difference: str, replacements: str) -> None:
    warnings.warn(
        f"{name} is deprecated: {difference}; use {replacements}",
        DeprecationWarning,
        stacklevel=3,
    )


@dataclass(frozen=True)
class TimeWindows(SnakeCase):
    """Windows of a fixed size that start every `advance_ms`; tumbling if the two are equal."""

    size_ms: int
    advance_ms: int
    grace_period_ms: int = 0

    def __post_init__(self) -> None:
        _check_fields(self, "of_size_and_grace(size, grace)")
        size, advance = self.size_ms, self.advance_ms
        _check(size > 0, f"a window size of '{size}' ms is too short: use 1 ms or more")
        _check(
            0 < advance <= size,
            f"windows of '{size}' ms cannot advance by '{advance}' ms: use more than 0 and at most their size",
        )
        _check_grace(self.grace_period_ms)

    @classmethod
    def of_size_with_no_grace(cls, size: Duration) -> "TimeWindows":
        """Return tumbling windows that drop every late record."""
        size_ms = milliseconds(size)
        return cls(size_ms, size_ms)

    @classmethod
    def of_size_and_grace(cls, size: Duration, after_window_end: Duration) -> "TimeWindows":
        """Return tumbling windows that accept late records for a grace period after their end."""
        return cls.of_size_with_no_grace(size).grace(after_window_end)

    @classmethod
    def of(cls, size: Duration) -> "TimeWindows":
        """Return tumbling windows without grace. Deprecated: Java's `TimeWindows.of` had a grace of
        24 hours.
        """
        _warn_of(
            "TimeWindows.of",
            "it has no grace, unlike Java's TimeWindows.of, which had a grace of 24 hours",
            "of_size_with_no_grace(size) or of_size_and_grace(size, grace)",
        )
        return cls.of_size_with_no_grace(size)

    def grace(self, after_window_end: Duration) -> "TimeWindows":
        """Return a copy with another grace period."""
        return replace(self, grace_period_ms=milliseconds(after_window_end))

    def advance_by(self, advance: Duration) -> "TimeWindows":
        """Return hopping windows that start every `advance`, which is at most the size."""
        return replace(self, advance_ms=milliseconds(advance))

    def windows_for(self, timestamp: int) -> list[TimeWindow]:
        """Return the windows that contain a timestamp, the earliest first."""
        late = max(0, timestamp - self.size_ms + self.advance_ms)
        first = late // self.advance_ms * self.advance_ms
        starts = range(first, timestamp + 1, self.advance_ms)
        return [unchecked_window((start, start + self.size_ms)) for start in starts]


@dataclass(frozen=True)
class UnlimitedWindows(SnakeCase):
    """A single window that starts at `start_ms` and never ends."""

    start_ms: int = 0
    grace_period_ms: int = 0
    size_ms: int = _FOREVER

    def __post_init__(self) -> None:
        _check_fields(self, "of().start_on(start)")
        start = self.start_ms
        _check(start >= 0, f"a window cannot start at '{start}' ms: use 0 or more")

    @classmethod
    def of(cls) -> "UnlimitedWindows":
        """Return the window of all timestamps from 0."""
        return cls()

    def start_on(self, start: Instant) -> "UnlimitedWindows":
        """Return the window that starts at a point in time."""
        return replace(self, start_ms=instant_ms(start))

    def windows_for(self, timestamp: int) -> list[TimeWindow]:
        """Return the window if it contains the timestamp, else nothing."""
        return [TimeWindow(self.start_ms, _FOREVER)] if timestamp >= self.start_ms else []


@dataclass(frozen=True)
class SlidingWindows(SnakeCase):
    """Windows of records whose timestamps differ by at most `time_difference_ms`, inclusive."""

    time_difference_ms: int
    grace_period_ms: int = 0

    def __post_init__(self) -> None:
        _check_fields(self, "of_time_difference_and_grace(difference, grace)")
        difference = self.time_difference_ms
        _check(
            difference >= 0, f"a time difference of '{difference}' ms is negative: use 0 or more"
        )
        _check_grace(self.grace_period_ms)

    @classmethod
    def of_time_difference_with_no_grace(cls, time_difference: Duration) -> "SlidingWindows":
        """Return sliding windows that drop late records."""
        return cls(milliseconds(time_difference))

    @classmethod
    def of_time_difference_and_grace(
        cls, time_difference: Duration, after_window_end: Duration
    ) -> "SlidingWindows":
        """Return sliding windows that accept late records for a grace period."""
        return cls(milliseconds(time_difference), milliseconds(after_window_end))

    @property
    def size_ms(self) -> int:
        """The length of a window."""
        return self.time_difference_ms


@dataclass(frozen=True)
class SessionWindows(SnakeCase):
    """Sessions of a key; a session ends after the inactivity gap without records."""

    inactivity_gap_ms: int
    grace_period_ms: int = 0

    def __post_init__(self) -> None:
        _check_fields(self, "of_inactivity_gap_and_grace(gap, grace)")
        gap = self.inactivity_gap_ms
        _check(gap > 0, f"an inactivity gap of '{gap}' ms is too short: use 1 ms or more")
        _check_grace(self.grace_period_ms)

    @classmethod
    def of_inactivity_gap_with_no_grace(cls, inactivity_gap: Duration) -> "SessionWindows":
        """Return sessions that drop late records."""
        return cls(milliseconds(inactivity_gap))

    @classmethod
    def of_inactivity_gap_and_grace(
        cls, inactivity_gap: Duration, after_window_end: Duration
    ) -> "SessionWindows":
        """Return sessions that accept late records for a grace period."""
        grace = milliseconds(after_window_end)
        return replace(cls.of_inactivity_gap_with_no_grace(inactivity_gap), grace_period_ms=grace)


@dataclass(frozen=True)
class JoinWindows(SnakeCase):
    """The window of a join of streams: the lengths before and after a record's timestamp.

    One side may be negative: `before_ms=-2, after_ms=5` joins with records from 2 to 5 ms after
    this one.
    """

    before_ms: int
    after_ms: int
    grace_period_ms: int = 0

    def __post_init__(self) -> None:
        _check_fields(self, "of_time_difference_and_grace(difference, grace)")
        before, after = self.before_ms, self.after_ms
        _check(
            before + after >= 0,
            f"a join window with a before of '{before}' ms and an after of '{after}' ms has a negative length: "
            "use two values whose sum is 0 or more",
        )
        _check_grace(self.grace_period_ms)

    @classmethod
    def of_time_difference_with_no_grace(cls, time_difference: Duration) -> "JoinWindows":
        """Return a symmetric window that drops late records."""
        difference = milliseconds(time_difference)
        return cls(difference, difference)

    @classmethod
    def of_time_difference_and_grace(
        cls, time_difference: Duration, after_window_end: Duration
    ) -> "JoinWindows":
        """Return a symmetric window that accepts late records for a grace period."""
        grace = milliseconds(after_window_end)
        return replace(cls.of_time_difference_with_no_grace(time_difference), grace_period_ms=grace)

    @classmethod
    def of(cls, time_difference: Duration) -> "JoinWindows":
        """Return a symmetric window whose size and grace are 24 hours in total. Deprecated, as in
        Kafka 3.
        """
        _warn_of(
            "JoinWindows.of",
            "it accepts late records for 24 hours less the window, as Java's did until Kafka 4.0 removed it",
            "of_time_difference_with_no_grace(difference) or "
            "of_time_difference_and_grace(difference, grace)",
        )
        windows = cls.of_time_difference_with_no_grace(time_difference)
        return windows.grace(max(0, _DAY_MS - windows.size_ms))

    def grace(self, after_window_end: Duration) -> "JoinWindows":
        """Return a copy with another grace period."""
        return replace(self, grace_period_ms=milliseconds(after_window_end))

    def before(self, time_difference: Duration) -> "JoinWindows":
        """Return a copy with another length into the past; if it is negative, the window starts
        later.
        """
        return replace(self, before_ms=signed_milliseconds(time_difference))

    def after(self, time_difference: Duration) -> "JoinWindows":
        """Return a copy with another length into the future; if it is negative, the window ends
        earlier.
        """
        return replace(self, after_ms=signed_milliseconds(time_difference))

    @property
    def size_ms(self) -> int:
        """The length of the window in both directions."""
        return self.before_ms + self.after_ms
