"""Delayed changes: suppress buffers, and emit strategies of windowed aggregations."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from ottla.streams.model.durations import Duration, check_whole, milliseconds
from ottla.streams.model.spelling import SnakeCase


@dataclass(frozen=True)
class BufferConfig(SnakeCase):
    """The limits of a suppress buffer, and what happens when it is full."""

    max_records_count: int | None = None
    max_bytes_count: int | None = None
    fails_when_full: bool = False

    def __post_init__(self) -> None:
        for name in ("max_records_count", "max_bytes_count"):
            limit = getattr(self, name)
            if limit is not None:
                check_whole(f"{name} of a suppress buffer", limit)

    @classmethod
    def unbounded(cls) -> "BufferConfig":
        """Return a buffer without limits."""
        return cls()

    @classmethod
    def max_records(cls, count: int) -> "BufferConfig":
        """Return a buffer of at most `count` keys; by default it emits early when it is full."""
        return cls(max_records_count=count)

    @classmethod
    def max_bytes(cls, count: int) -> "BufferConfig":
        """Return a buffer of at most `count` bytes; by default it emits early when it is full."""
        return cls(max_bytes_count=count)

    def with_no_bound(self) -> "BufferConfig":
        """Return a copy without limits."""
        return replace(self, max_records_count=None, max_bytes_count=None)

    def with_logging_enabled(self, config: Mapping[str, str] | None = None) -> "BufferConfig":
        """Return this buffer unchanged: it is part of its stage's state and has no changelog."""
        return self

    with_logging_disabled = with_logging_enabled

    def with_max_records(self, count: int) -> "BufferConfig":
        """Return a copy that holds at most `count` keys."""
        return replace(self, max_records_count=count)

    def with_max_bytes(self, count: int) -> "BufferConfig":
        """Return a copy that holds at most `count` bytes."""
        return replace(self, max_bytes_count=count)

    def emit_early_when_full(self) -> "BufferConfig":
        """Return a copy that emits its oldest changes early when it is full."""
        return replace(self, fails_when_full=False)

    def shut_down_when_full(self) -> "BufferConfig":
        """Return a copy that fails the application when it is full."""
        return replace(self, fails_when_full=True)


# Inside Suppressed the name BufferConfig is the class attribute, as in Java.
_Buffer = BufferConfig


@dataclass(frozen=True)
class Suppressed(SnakeCase):
    """The changes of a table that are delayed, and for how long."""

    BufferConfig: ClassVar = _Buffer
    """BufferConfig under its name in Java: `Suppressed.BufferConfig.unbounded()`."""

    wait_ms: int | None
    """How long changes are held back, in ms of stream time; None: until the window closes."""
    buffer: _Buffer = field(default_factory=_Buffer)
    name: str | None = None
    idle_timeout_ms: int | None = None
    """The wall-clock time without records after which stream time follows the wall clock."""
    on_late: "Callable[[Any], None] | None" = None
    """Called with each change of a window that was closed by the idle timeout."""

    def __post_init__(self) -> None:
        methods = (("wait_ms", "until_time_limit"), ("idle_timeout_ms", "with_idle_timeout"))
        for name, method in methods:
            time = getattr(self, name)
            if time is not None:
                advice = f"; for other types use Suppressed.{method}"
                check_whole(f"{name} of Suppressed", time, advice)

    @classmethod
    def until_window_closes(cls, buffer: _Buffer | None = None) -> "Suppressed":
        """Emit only the final result of each window, when the window has closed.

        Raises ValueError if `buffer` is bounded and does not shut down when it is full.
        """
        bounds = buffer or _Buffer()
        bounded = bounds.max_records_count is not None or bounds.max_bytes_count is not None
        if bounded and not bounds.fails_when_full:
            raise ValueError(
                "results are final only if none is emitted early: "
                "use an unbounded buffer or one that shuts down when full"
            )
        return cls(None, bounds)

    @classmethod
    def until_time_limit(cls, wait: Duration, buffer: _Buffer) -> "Suppressed":
        """Emit at most one change per key in each `wait` of stream time."""
        return cls(milliseconds(wait), buffer)

    def with_idle_timeout(
        self, timeout: Duration, on_late: "Callable[[Any], None] | None" = None
    ) -> "Suppressed":
        """Return a copy for streams that may stop: their stream time then follows the wall clock.

        This begins after `timeout` of wall-clock time without records. `on_late` is called with
        each change of a window that was closed in this way; such changes are dropped.
        """
        return replace(self, idle_timeout_ms=milliseconds(timeout), on_late=on_late)

    def with_name(self, name: str) -> "Suppressed":
        """Return a copy with another name."""
        return replace(self, name=name)


@dataclass(frozen=True)
class EmitStrategy(SnakeCase):
    """The time of the results of windows: at each update, or once, when the window closes."""

    on_close: bool

    @classmethod
    def on_window_update(cls) -> "EmitStrategy":
        """Emit every update of a window."""
        return cls(False)

    @classmethod
    def on_window_close(cls) -> "EmitStrategy":
        """Emit only the final result of a window, when it closes."""
        return cls(True)
