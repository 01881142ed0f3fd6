"""How stores are asked for: `Stores.key_value("seen")` and its siblings describe one; a task builds it.

Not done: TTL of key-value stores, caching (every update is emitted), stores on disk: a task's stores are
in memory.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ottla.streams.durations import Duration, milliseconds
from ottla.streams.serdes import Serde, Serdes, resolve
from ottla.streams.stores.buffers import JoinBuffer, OuterJoinStore, SuppressBuffer
from ottla.streams.stores.key_value import KeyValueStore, TimestampedKeyValueStore
from ottla.streams.stores.ordered import Changelog
from ottla.streams.stores.session import SessionStore
from ottla.streams.stores.versioned import VersionedKeyValueStore
from ottla.streams.stores.window import Keeping, TimestampedWindowStore, WindowStore


class StateStore(Protocol):
    """What every store is."""

    name: str

    def close(self) -> None:
        """Let go of what is open."""


@dataclass(frozen=True)
class DefaultSerdes:
    """The serdes of what was given none (Kafka's default.key.serde and default.value.serde)."""

    key: Serde[Any] = field(default_factory=Serdes.json)
    value: Serde[Any] = field(default_factory=Serdes.json)


@dataclass(frozen=True)
class StoreBuilder:
    """The description of a store: its name, its kind (a key of `_KINDS`), its serdes and times."""

    name: str
    kind: str
    key: Serde[Any] | None = None
    value: Serde[Any] | None = None
    retention_ms: int = 0
    window_size_ms: int = 0
    by_time: bool = False
    logging_enabled: bool = True

    def with_logging_disabled(self) -> "StoreBuilder":
        """Return the description of a store without a changelog."""
        return replace(self, logging_enabled=False)

    def build(self, defaults: DefaultSerdes, changelog: Changelog | None) -> StateStore:
        """Make the store, empty."""
        key = resolve(self.key, defaults.key)
        value = resolve(self.value, defaults.value)
        return _KINDS[self.kind](self, key, value, changelog)


_Make = Callable[[StoreBuilder, Serde[Any], Serde[Any], Changelog | None], StateStore]


def _keeping(builder: StoreBuilder) -> Keeping:
    return Keeping(
        builder.retention_ms,
        builder.window_size_ms,
        retain_duplicates=builder.kind == "join_window",
        by_time=builder.by_time,
    )


def _window(
    builder: StoreBuilder, key: Serde[Any], value: Serde[Any], changelog: Changelog | None
) -> StateStore:
    return WindowStore(builder.name, key, value, changelog, _keeping(builder))


def _timestamped_window(
    builder: StoreBuilder, key: Serde[Any], value: Serde[Any], changelog: Changelog | None
) -> StateStore:
    return TimestampedWindowStore(builder.name, key, value, changelog, _keeping(builder))


def _session(
    builder: StoreBuilder, key: Serde[Any], value: Serde[Any], changelog: Changelog | None
) -> StateStore:
    return SessionStore(builder.name, key, value, changelog, retention_ms=builder.retention_ms)


def _versioned(
    builder: StoreBuilder, key: Serde[Any], value: Serde[Any], changelog: Changelog | None
) -> StateStore:
    history_ms = builder.retention_ms
    return VersionedKeyValueStore(
        builder.name, key, value, changelog, history_retention_ms=history_ms
    )


_KINDS: dict[str, _Make] = {
    "key_value": lambda builder, key, value, log: KeyValueStore(builder.name, key, value, log),
    "timestamped_key_value": lambda builder, key, value, log: TimestampedKeyValueStore(
        builder.name, key, value, log
    ),
    "versioned": _versioned,
    "window": _window,
    "join_window": _window,
    "timestamped_window": _timestamped_window,
    "session": _session,
    "outer_join": lambda builder, key, value, log: OuterJoinStore(builder.name, key),
    "suppress_buffer": lambda builder, key, value, log: SuppressBuffer(builder.name, key, value),
    "join_buffer": lambda builder, key, value, log: JoinBuffer(
        builder.name, key, value, builder.retention_ms
    ),
}


class Stores:
    """The kinds of stores that a processor may ask for."""

    @staticmethod
    def key_value(
        name: str, key: Serde[Any] | None = None, value: Serde[Any] | None = None
    ) -> StoreBuilder:
        """Describe a store of one value a key."""
        return StoreBuilder(name, "key_value", key, value)

    @staticmethod
    def timestamped_key_value(
        name: str, key: Serde[Any] | None = None, value: Serde[Any] | None = None
    ) -> StoreBuilder:
        """Describe a store of one value and its time a key."""
        return StoreBuilder(name, "timestamped_key_value", key, value)

    @staticmethod
    def versioned(
        name: str,
        history_retention: Duration,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
    ) -> StoreBuilder:
        """Describe a store that also answers what a key had some time ago."""
        retention_ms = milliseconds(history_retention)
        return StoreBuilder(name, "versioned", key, value, retention_ms=retention_ms)

    @staticmethod
    def window(
        name: str,
        retention: Duration,
        window_size: Duration,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
    ) -> StoreBuilder:
        """Describe a store of one value a key and window."""
        times = milliseconds(retention), milliseconds(window_size)
        return StoreBuilder(name, "window", key, value, *times)

    @staticmethod
    def timestamped_window(
        name: str,
        retention: Duration,
        window_size: Duration,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
    ) -> StoreBuilder:
        """Describe a store of one value and its time a key and window."""
        times = milliseconds(retention), milliseconds(window_size)
        return StoreBuilder(name, "timestamped_window", key, value, *times)

    @staticmethod
    def session(
        name: str,
        retention: Duration,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
    ) -> StoreBuilder:
        """Describe a store of one value a key and session."""
        return StoreBuilder(name, "session", key, value, retention_ms=milliseconds(retention))
