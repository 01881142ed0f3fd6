"""A store that is restored from its changelog has the contents of the original."""

from typing import Any

import pytest

from ottla.streams import (
    Serdes,
    SessionWindow,
    Stores,
    ValueAndTimestamp,
    VersionedRecord,
    Windowed,
)
from ottla.streams.serdes import DefaultSerdes
from ottla.streams.stores.builders import StoreBuilder

_TEXT = Serdes.string()
_DEFAULTS = DefaultSerdes(_TEXT, _TEXT)
_RECORD_TIME = 77


def _fill_key_value(store: Any) -> None:
    for key, value in (("a", "1"), ("b", "2"), ("a", None), ("c", "3")):
        store.put(key, value)


def _fill_timestamped(store: Any) -> None:
    for key, value in (("a", ValueAndTimestamp("1", 5)), ("b", ValueAndTimestamp("2", 6))):
        store.put(key, value)
    store.put("a", None)


def _fill_window(store: Any) -> None:
    for key, value, start in (("a", "1", 0), ("a", "2", 10), ("b", "3", 10), ("a", None, 0)):
        store.put(key, value, start)


def _fill_timestamped_window(store: Any) -> None:
    for key, value, start in (("a", ValueAndTimestamp("1", 3), 0), ("b", None, 10)):
        store.put(key, value, start)


def _fill_session(store: Any) -> None:
    store.put(Windowed("a", SessionWindow(1, 5)), "1")
    store.put(Windowed("b", SessionWindow(2, 9)), "2")
    store.remove(Windowed("a", SessionWindow(1, 5)))


@pytest.mark.parametrize(
    ("builder", "fill"),
    [
        (Stores.key_value("store"), _fill_key_value),
        (Stores.timestamped_key_value("store"), _fill_timestamped),
        (Stores.window("store", 1000, 10), _fill_window),
        (Stores.timestamped_window("store", 1000, 10), _fill_timestamped_window),
        (Stores.session("store", 1000), _fill_session),
    ],
    ids=lambda each: each.kind if isinstance(each, StoreBuilder) else "",
)
def test_a_store_is_restored_from_its_changelog(builder: StoreBuilder, fill: Any) -> None:
    """Values, their times and removals are restored."""
    logged: list[tuple[bytes, bytes | None, int | None]] = []
    written: Any = builder.build(_DEFAULTS, lambda *record: logged.append(record))
    fill(written)
    restored: Any = builder.build(_DEFAULTS, None)
    for key, value, timestamp in logged:
        restored.restore(key, value, _RECORD_TIME if timestamp is None else timestamp)
    assert list(restored.all()) == list(written.all())
    assert list(written.all())


def test_versions_are_restored_with_their_history() -> None:
    """This includes a version that was written late."""
    builder = Stores.versioned("store", 1000)
    logged: list[tuple[bytes, bytes | None, int | None]] = []
    written: Any = builder.build(_DEFAULTS, lambda *record: logged.append(record))
    for value, timestamp in (("1", 10), ("3", 30), ("2", 20)):
        written.put("a", value, timestamp)
    restored: Any = builder.build(_DEFAULTS, None)
    for key, data, time in logged:
        restored.restore(key, data, time)
    assert restored.get("a") == VersionedRecord("3", 30, None)
    assert restored.get_as_of("a", 25) == written.get_as_of("a", 25)
