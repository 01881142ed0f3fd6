"""When tables tell of their changes: what waits in a suppress buffer, and what windows emit."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from ottla.streams.model.durations import Duration, milliseconds
from ottla.streams.model.spelling import SnakeCase


@dataclass(frozen=True)
class BufferConfig(SnakeCase):
    """How much may wait in a suppress buffer, and what happens when it is full."""

    max_records_count: int | None = None
    max_bytes_count: int | None = None
    fails_when_full: bool = False

    @classmethod
    def unbounded(cls) -> "BufferConfig":
        """Return a buffer without bounds."""
        return cls()

    @classmethod
    def max_records(cls, count: int) -> "BufferConfig":
        """Return a buffer of so many keys; a full one emits early."""
        return cls(max_records_count=count)

    @classmethod
    def max_bytes(cls, count: int) -> "BufferConfig":
        """Return a buffer of so many bytes; a full one emits early."""
        return cls(max_bytes_count=count)

    def with_no_bound(self) -> "BufferConfig":
        """Return the same without bounds."""
        return replace(self, max_records_count=None, max_bytes_count=None)

    def with_logging_enabled(self, config: Mapping[str, str] | None = None) -> "BufferConfig":
        """Return the same: what waits is kept with the state of its stage, not in a changelog."""
        return self

    with_logging_disabled = with_logging_enabled

    def with_max_records(self, count: int) -> "BufferConfig":
        """Return the same with a bound on keys."""
        return replace(self, max_records_count=count)

    def with_max_bytes(self, count: int) -> "BufferConfig":
        """Return the same with a bound on bytes."""
        return replace(self, max_bytes_count=count)

    def emit_early_when_full(self) -> "BufferConfig":
        """Return the same; a full one emits its first changes early."""
        return replace(self, fails_when_full=False)

    def shut_down_when_full(self) -> "BufferConfig":
        """Return the same; a full one ends the application."""
        return replace(self, fails_when_full=True)


# Within Suppressed its own name means what Java's does.
_Buffer = BufferConfig


@dataclass(frozen=True)
class Suppressed(SnakeCase):
    """Which changes of a table wait, and how long."""

    BufferConfig: ClassVar = _Buffer
    """As it is written in Java: `Suppressed.BufferConfig.unbounded()`."""

    wait_ms: int | None
    """None: until the window closes."""
    buffer: _Buffer = field(default_factory=_Buffer)
    name: str | None = None
    idle_timeout_ms: int | None = None
    """After how much wall-clock time without records the stream's time goes on with the wall clock."""
    on_late: "Callable[[Any], None] | None" = None
    """Told of changes of windows that were closed while nothing came."""

    @classmethod
    def until_window_closes(cls, buffer: _Buffer | None = None) -> "Suppressed":
        """Let only the last change of each window through, when nothing can change it any more."""
        kept = buffer or _Buffer()
        bounded = kept.max_records_count is not None or kept.max_bytes_count is not None
        if bounded and not kept.fails_when_full:
            raise ValueError(
                "results are final only if none is emitted early: "
                "use an unbounded buffer or one that shuts down when full"
            )
        return cls(None, kept)

    @classmethod
    def until_time_limit(cls, wait: Duration, buffer: _Buffer) -> "Suppressed":
        """Let at most one change of each key through in a while of stream time."""
        return cls(milliseconds(wait), buffer)

    def with_idle_timeout(
        self, timeout: Duration, on_late: "Callable[[Any], None] | None" = None
    ) -> "Suppressed":
        """Return the same for streams that may fall silent: their time then goes on without records."""
        return replace(self, idle_timeout_ms=milliseconds(timeout), on_late=on_late)

    def with_name(self, name: str) -> "Suppressed":
        """Return the same under a name."""
        return replace(self, name=name)


@dataclass(frozen=True)
class EmitStrategy(SnakeCase):
    """When a windowed aggregation emits: at each update, or once when the window closes."""

    on_close: bool

    @classmethod
    def on_window_update(cls) -> "EmitStrategy":
        """Emit every update."""
        return cls(False)

    @classmethod
    def on_window_close(cls) -> "EmitStrategy":
        """Emit the result of a window once, when it closes."""
        return cls(True)
