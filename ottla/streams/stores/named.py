"""`Stores`: factories of stores, in a short Python form and in Kafka's form with suppliers.

Both forms describe a store; a task builds it. The local engine keeps it in a database below
`state_dir`, or in memory (`StoreType`). For Spark and the test driver the suppliers are equivalent.

Not done: `lruMap` (`Stores.key_value(…, ttl=…)` expires entries by time); stores with headers
(`…WithHeaders`, KIP-1271: the store of a table keeps value and time); custom stores (`StateStore`,
`StateStoreContext`, `StateRestoreCallback`, `CommitCallback`, `StoreSupplier.get`,
`DslStoreSuppliers`, `StateSerdes`, `RocksDBConfigSetter`: a processor can use a key-value store
instead).
"""

from dataclasses import replace
from typing import Any

from ottla.streams.model.durations import Duration, milliseconds
from ottla.streams.model.errors import TopologyError
from ottla.streams.model.spelling import SnakeCase
from ottla.streams.serdes import Serde
from ottla.streams.stores.builders import StoreBuilder

_KEY_VALUE = ("key_value", "timestamped_key_value")
_WINDOW = ("window", "timestamped_window", "join_window")


class Stores(SnakeCase):
    """Factories of the stores for processors and tables; durations may be given as `"5 min"`."""

    @staticmethod
    def key_value(
        name: str,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
        *,
        ttl: Duration | None = None,
    ) -> StoreBuilder:
        """Describe a store with one value per key; with a `ttl`, entries expire that long after an
        update.
        """
        ttl_ms = 0 if ttl is None else milliseconds(ttl)
        return StoreBuilder(name, "key_value", key, value, ttl_ms=ttl_ms)

    @staticmethod
    def timestamped_key_value(
        name: str, key: Serde[Any] | None = None, value: Serde[Any] | None = None
    ) -> StoreBuilder:
        """Describe a store with one value and its timestamp per key."""
        return StoreBuilder(name, "timestamped_key_value", key, value)

    @staticmethod
    def versioned(
        name: str,
        history_retention: Duration,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
    ) -> StoreBuilder:
        """Describe a store that also returns earlier values of a key, for the retained history."""
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
        """Describe a store with one value per key and window."""
        times = _window_times(name, retention, window_size)
        return StoreBuilder(name, "window", key, value, *times)

    @staticmethod
    def timestamped_window(
        name: str,
        retention: Duration,
        window_size: Duration,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
    ) -> StoreBuilder:
        """Describe a store with one value and its timestamp per key and window."""
        times = _window_times(name, retention, window_size)
        return StoreBuilder(name, "timestamped_window", key, value, *times)

    @staticmethod
    def session(
        name: str,
        retention: Duration,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
    ) -> StoreBuilder:
        """Describe a store with one value per key and session."""
        return StoreBuilder(name, "session", key, value, retention_ms=milliseconds(retention))

    @staticmethod
    def persistent_key_value_store(name: str) -> StoreBuilder:
        """Return a supplier of a store with one value per key, for a table or
        `key_value_store_builder`.
        """
        return StoreBuilder(name, "key_value", in_memory=False)

    @staticmethod
    def persistent_timestamped_key_value_store(name: str) -> StoreBuilder:
        """Return a supplier of a store with one value and its timestamp per key."""
        return StoreBuilder(name, "timestamped_key_value", in_memory=False)

    @staticmethod
    def in_memory_key_value_store(name: str) -> StoreBuilder:
        """Return a supplier of a store with one value per key that is never on disk."""
        return replace(Stores.persistent_key_value_store(name), in_memory=True)

    @staticmethod
    def persistent_versioned_key_value_store(
        name: str, history_retention: Duration, segment_interval: Duration | None = None
    ) -> StoreBuilder:
        """Return a supplier of a store with history; `segment_interval` has no effect."""
        if segment_interval is not None and milliseconds(segment_interval) < 1:
            raise ValueError(
                f"store {name!r} cannot have a segment interval of '{segment_interval}' ms: use 1 ms or more"
            )
        return replace(Stores.versioned(name, history_retention), in_memory=False)

    @staticmethod
    def persistent_window_store(
        name: str,
        retention_period: Duration,
        window_size: Duration,
        retain_duplicates: bool = False,
    ) -> StoreBuilder:
        """Return a supplier of a store with one value per key and window.

        If `retain_duplicates` is set, the store keeps several values, which can be iterated but not
        removed.
        """
        times = _window_times(name, retention_period, window_size)
        kind = "join_window" if retain_duplicates else "window"
        return StoreBuilder(name, kind, None, None, *times, in_memory=False)

    @staticmethod
    def persistent_timestamped_window_store(
        name: str,
        retention_period: Duration,
        window_size: Duration,
        retain_duplicates: bool = False,
    ) -> StoreBuilder:
        """Return a supplier of a store with one value and its timestamp per key and window."""
        if retain_duplicates:
            raise TopologyError(
                f"store {name} keeps one value with its timestamp per window; to retain duplicates, use "
                "persistent_window_store"
            )
        store = Stores.timestamped_window(name, retention_period, window_size)
        return replace(store, in_memory=False)

    @staticmethod
    def in_memory_window_store(
        name: str,
        retention_period: Duration,
        window_size: Duration,
        retain_duplicates: bool = False,
    ) -> StoreBuilder:
        """Return a supplier of a window store that is never on disk."""
        times = retention_period, window_size
        return replace(
            Stores.persistent_window_store(name, *times, retain_duplicates), in_memory=True
        )

    @staticmethod
    def persistent_session_store(name: str, retention_period: Duration) -> StoreBuilder:
        """Return a supplier of a store with one value per key and session."""
        return replace(Stores.session(name, retention_period), in_memory=False)

    @staticmethod
    def in_memory_session_store(name: str, retention_period: Duration) -> StoreBuilder:
        """Return a supplier of a session store that is never on disk."""
        return replace(Stores.persistent_session_store(name, retention_period), in_memory=True)

    @staticmethod
    def key_value_store_builder(
        supplier: StoreBuilder, key: Serde[Any] | None = None, value: Serde[Any] | None = None
    ) -> StoreBuilder:
        """Describe a store with one value per key, from a supplier and serdes."""
        return _described(supplier, _KEY_VALUE, "key_value", (key, value))

    @staticmethod
    def timestamped_key_value_store_builder(
        supplier: StoreBuilder, key: Serde[Any] | None = None, value: Serde[Any] | None = None
    ) -> StoreBuilder:
        """Describe a store with one value and its timestamp per key."""
        return _described(supplier, _KEY_VALUE, "timestamped_key_value", (key, value))

    @staticmethod
    def versioned_key_value_store_builder(
        supplier: StoreBuilder, key: Serde[Any] | None = None, value: Serde[Any] | None = None
    ) -> StoreBuilder:
        """Describe a store with history."""
        return _described(supplier, ("versioned",), "versioned", (key, value))

    @staticmethod
    def window_store_builder(
        supplier: StoreBuilder, key: Serde[Any] | None = None, value: Serde[Any] | None = None
    ) -> StoreBuilder:
        """Describe a window store."""
        is_plain = getattr(supplier, "kind", None) == "timestamped_window"
        kind = "window" if is_plain else getattr(supplier, "kind", "")
        return _described(supplier, _WINDOW, kind, (key, value))

    @staticmethod
    def timestamped_window_store_builder(
        supplier: StoreBuilder, key: Serde[Any] | None = None, value: Serde[Any] | None = None
    ) -> StoreBuilder:
        """Describe a window store whose values have timestamps."""
        return _described(supplier, _WINDOW[:2], "timestamped_window", (key, value))

    @staticmethod
    def session_store_builder(
        supplier: StoreBuilder, key: Serde[Any] | None = None, value: Serde[Any] | None = None
    ) -> StoreBuilder:
        """Describe a session store."""
        return _described(supplier, ("session",), "session", (key, value))


def _window_times(name: str, retention: Duration, window_size: Duration) -> tuple[int, int]:
    """Return retention and size of a window store in ms; ValueError if windows expire while open."""
    retention_ms, size_ms = milliseconds(retention), milliseconds(window_size)
    if size_ms > retention_ms:
        raise ValueError(
            f"store {name!r} with a retention of '{retention_ms}' ms drops its windows of '{size_ms}' ms "
            "before they end: use a retention of the window size or more"
        )
    return retention_ms, size_ms


def _described(
    supplier: StoreBuilder,
    kinds: tuple[str, ...],
    kind: str,
    serdes: tuple[Serde[Any] | None, Serde[Any] | None],
) -> StoreBuilder:
    if not isinstance(supplier, StoreBuilder):
        raise TypeError(
            "a store builder needs a supplier, such as Stores.persistent_key_value_store(name), "
            f"not {supplier!r}; shorter: Stores.key_value(name, key, value)"
        )
    if supplier.kind not in kinds:
        raise TopologyError(f"{supplier.name} is a {supplier.kind} store; expected {kinds[0]}")
    return replace(supplier, kind=kind, key=serdes[0], value=serdes[1])
