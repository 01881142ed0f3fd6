"""The description of a store (`StoreBuilder`), and the code with which a task builds it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Protocol

from ottla.streams.model.errors import TopologyError
from ottla.streams.serdes import DefaultSerdes, Serde, check_serdes, resolve
from ottla.streams.stores.buffers import JoinBuffer, OuterJoinStore, SuppressBuffer
from ottla.streams.stores.expiring import ExpiringKeyValueStore
from ottla.streams.stores.key_value import KeyValueStore, TimestampedKeyValueStore
from ottla.streams.stores.ordered import (
    Changelog,
    OnExpired,
    OpenMap,
    ignore_expired,
    open_memory,
)
from ottla.streams.stores.session import SessionStore
from ottla.streams.stores.versioned import VersionedKeyValueStore
from ottla.streams.stores.window import TimestampedWindowStore, WindowStorage, WindowStore


class StoreType(Enum):
    """Where the local engine keeps a store, with the values of Kafka's `default.dsl.store`."""

    PERSISTENT = "rocksDB"
    """In a database below `state_dir` (Kafka's ROCKS_DB): a start restores only what is missing."""
    ROCKS_DB = PERSISTENT
    IN_MEMORY = "in_memory"
    """In memory: each start restores the store from its whole changelog."""

    @property
    def in_memory(self) -> bool:
        """True for IN_MEMORY."""
        return self is StoreType.IN_MEMORY

    @classmethod
    def of(cls, value: object) -> "StoreType":
        """Return the type with this value. Raises TopologyError for another value."""
        try:
            return cls(value)
        except ValueError:
            raise TopologyError(
                f"a store's type cannot be {value!r}: choose StoreType.PERSISTENT ('rocksDB') or "
                "StoreType.IN_MEMORY ('in_memory')"
            ) from None


class StateStore(Protocol):
    """The interface of all stores."""

    name: str

    def remember(self) -> Any:
        """Return the state that is not in the store's maps, as plain values, for `recall`."""

    def recall(self, remembered: Any) -> None:
        """Restore the state that `remember` returned."""

    def close(self) -> None:
        """Close open resources."""


@dataclass(frozen=True)
class StoreBuilder:
    """The description of a store: its name, its type (a key of `_KINDS`), its serdes and times."""

    name: str
    kind: str
    key: Serde[Any] | None = None
    value: Serde[Any] | None = None
    retention_ms: int = 0
    window_size_ms: int = 0
    by_time: bool = False
    logging_enabled: bool = True
    other_value: Serde[Any] | None = None
    """The serde of the right side's values, if a store contains values of both sides of a join."""
    caching_enabled: bool = False
    """True if updates may be cached until a commit, if the application has a cache."""
    ttl_ms: int = 0
    """The time to live of a key-value store's entries, in stream time; 0 means no expiry."""
    log_config: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Options of the changelog topic, which override those of the application."""
    is_hidden: bool = False
    """True if descriptions and lists omit it: an internal store that Kafka's topology does not
    have.
    """

    in_memory: bool | None = field(default=None, compare=False)
    """True if the local engine keeps the store in memory, and restores it completely at each start;
    False if on disk; None: the application's `default_dsl_store` decides. The results are the same.
    """

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"a store's name must be a string, not {self.name!r}")
        check_serdes(self.key, self.value)

    def with_logging_enabled(self, config: Mapping[str, str] | None = None) -> "StoreBuilder":
        """Return the description of a store with a changelog, with these additional topic options."""
        return replace(self, logging_enabled=True, log_config=dict(config or {}))

    def with_logging_disabled(self) -> "StoreBuilder":
        """Return the description of a store without a changelog."""
        return replace(self, logging_enabled=False)

    def with_caching_enabled(self) -> "StoreBuilder":
        """Return the description of a store that logs only the last update of a key at each commit."""
        if self.kind == "versioned":
            raise TopologyError(
                f"store {self.name!r} is versioned and cannot be cached: do not enable caching"
            )
        return replace(self, caching_enabled=True)

    def with_caching_disabled(self) -> "StoreBuilder":
        """Return the description of a store that logs every update."""
        return replace(self, caching_enabled=False)

    def build(
        self,
        defaults: DefaultSerdes,
        changelog: Changelog | None,
        open_map: OpenMap = open_memory,
        stream_time: Callable[[], int] = lambda: -1,
        on_expired: OnExpired = ignore_expired,
    ) -> StateStore:
        """Build the store over maps whose names begin with its own; an in-memory store starts
        empty. `on_expired` is called for each put past the retention.
        """
        key, value = resolve(self.key, defaults.key), resolve(self.value, defaults.value)
        callbacks = stream_time, on_expired
        return _KINDS[self.kind](
            self, _Parts(key, value, changelog, open_map, defaults, *callbacks)
        )


@dataclass(frozen=True)
class _Parts:
    """The parts that a store is built from besides its description."""

    key: Serde[Any]
    value: Serde[Any]
    changelog: Changelog | None
    open_map: OpenMap
    defaults: DefaultSerdes
    stream_time: Callable[[], int]
    on_expired: OnExpired

    def serdes(self) -> tuple[Serde[Any], Serde[Any], Changelog | None]:
        return self.key, self.value, self.changelog

    def opening(self, builder: StoreBuilder) -> OpenMap:
        return lambda part: self.open_map(f"{builder.name}/{part}")


_Make = Callable[[StoreBuilder, _Parts], StateStore]


def _window_storage(builder: StoreBuilder, parts: _Parts) -> WindowStorage:
    return WindowStorage(
        builder.retention_ms,
        builder.window_size_ms,
        retain_duplicates=builder.kind == "join_window",
        by_time=builder.by_time,
        open_map=parts.opening(builder),
        on_expired=parts.on_expired,
    )


def _key_value(builder: StoreBuilder, parts: _Parts) -> StateStore:
    if builder.ttl_ms:
        key, value, changelog = parts.serdes()
        lives = builder.ttl_ms, parts.stream_time
        return ExpiringKeyValueStore(builder.name, (key, value), changelog, parts.open_map, *lives)
    return KeyValueStore(builder.name, *parts.serdes(), parts.open_map(builder.name))


def _timestamped_key_value(builder: StoreBuilder, parts: _Parts) -> StateStore:
    return TimestampedKeyValueStore(builder.name, *parts.serdes(), parts.open_map(builder.name))


def _window(builder: StoreBuilder, parts: _Parts) -> StateStore:
    return WindowStore(builder.name, *parts.serdes(), _window_storage(builder, parts))


def _timestamped_window(builder: StoreBuilder, parts: _Parts) -> StateStore:
    return TimestampedWindowStore(builder.name, *parts.serdes(), _window_storage(builder, parts))


def _session(builder: StoreBuilder, parts: _Parts) -> StateStore:
    store: SessionStore[Any, Any] = SessionStore(
        builder.name,
        *parts.serdes(),
        retention_ms=builder.retention_ms,
        by_time=builder.by_time,
        open_map=parts.opening(builder),
    )
    store.on_expired = parts.on_expired
    return store


def _versioned(builder: StoreBuilder, parts: _Parts) -> StateStore:
    entries, history_ms = parts.open_map(builder.name), builder.retention_ms
    store: VersionedKeyValueStore[Any, Any] = VersionedKeyValueStore(
        builder.name, *parts.serdes(), history_retention_ms=history_ms, entries=entries
    )
    store.on_expired = parts.on_expired
    return store


def _outer_join(builder: StoreBuilder, parts: _Parts) -> StateStore:
    values = parts.value, resolve(builder.other_value, parts.defaults.value)
    return OuterJoinStore(builder.name, parts.key, values, parts.opening(builder))


def _suppress_buffer(builder: StoreBuilder, parts: _Parts) -> StateStore:
    return SuppressBuffer(builder.name, parts.key, parts.value, parts.opening(builder))


def _join_buffer(builder: StoreBuilder, parts: _Parts) -> StateStore:
    serdes = parts.key, parts.value
    return JoinBuffer(builder.name, *serdes, builder.retention_ms, parts.opening(builder))


_KINDS: dict[str, _Make] = {
    "key_value": _key_value,
    "timestamped_key_value": _timestamped_key_value,
    "versioned": _versioned,
    "window": _window,
    "join_window": _window,
    "timestamped_window": _timestamped_window,
    "session": _session,
    "outer_join": _outer_join,
    "suppress_buffer": _suppress_buffer,
    "join_buffer": _join_buffer,
}
