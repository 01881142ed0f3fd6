"""Read-only views that combine the stores of several tasks."""

from typing import Any

import pytest

from ottla.streams import (
    Serdes,
    SessionWindow,
    Stores,
    StreamsError,
    TimeWindow,
    ValueAndTimestamp,
    Windowed,
)
from ottla.streams.queries.store_views import Change, empty_view
from ottla.streams.serdes import DefaultSerdes
from ottla.streams.stores.builders import StoreBuilder

_TEXT = Serdes.string()
_DEFAULTS = DefaultSerdes(_TEXT, _TEXT)


def _logged(builder: StoreBuilder, partition: int, *puts: tuple[Any, ...]) -> list[Change]:
    """Return the changelog records of a store in a task."""
    changes: list[Change] = []

    def log(key: bytes, value: bytes | None, timestamp: int | None) -> None:
        changes.append((partition, key, value, 0 if timestamp is None else timestamp))

    store: Any = builder.build(_DEFAULTS, log)
    for put in puts:
        store.put(*put)
    return changes


def test_keys_are_found_in_all_tasks() -> None:
    """Iterators read one task after the other."""
    builder = Stores.timestamped_key_value("store")
    view: Any = empty_view(builder, _DEFAULTS, 2)
    view.apply(
        _logged(builder, 0, ("a", ValueAndTimestamp("1", 5)), ("c", ValueAndTimestamp("3", 5)))
    )
    view.apply(_logged(builder, 1, ("b", ValueAndTimestamp("2", 6))))
    assert [view.get(key) for key in "abcd"] == ["1", "2", "3", None]
    assert list(view.all()) == [("a", "1"), ("c", "3"), ("b", "2")]
    assert list(view.range("b", None)) == [("c", "3"), ("b", "2")]
    assert next(view.reverse_range(None, "c")) == ("c", "3")
    assert view.approximate_num_entries() == 3


def test_values_have_timestamps_on_request() -> None:
    """The type is Kafka's timestampedKeyValueStore."""
    builder = Stores.timestamped_key_value("store")
    view: Any = empty_view(builder, _DEFAULTS, 1, with_timestamps=True)
    view.apply(_logged(builder, 0, ("a", ValueAndTimestamp("1", 5))))
    assert view.get("a") == ValueAndTimestamp("1", 5)


def test_windows_are_fetched() -> None:
    """A window is fetched by start, some by key, and some over all keys."""
    builder = Stores.timestamped_window("store", 10_000, 10)
    view: Any = empty_view(builder, _DEFAULTS, 2)
    one, two = ValueAndTimestamp("1", 1), ValueAndTimestamp("2", 11)
    view.apply(_logged(builder, 0, ("a", one, 0), ("a", two, 10)))
    view.apply(_logged(builder, 1, ("b", one, 0)))
    assert view.fetch("a", 10) == "2"
    assert view.fetch("a", 20) is None
    assert list(view.fetch("a", 0, 10)) == [(0, "1"), (10, "2")]
    assert list(view.backward_fetch("a", 0)) == [(10, "2"), (0, "1")]
    assert dict(view.fetch_all(0, 9)) == {
        Windowed("a", TimeWindow(0, 10)): "1",
        Windowed("b", TimeWindow(0, 10)): "1",
    }


def test_sessions_are_fetched() -> None:
    """Removed sessions are not returned."""
    builder = Stores.session("store", 10_000)
    first, second = Windowed("a", SessionWindow(1, 5)), Windowed("a", SessionWindow(1, 9))
    view: Any = empty_view(builder, _DEFAULTS, 1)
    view.apply(_logged(builder, 0, (first, "1"), (first, None), (second, "2")))
    assert list(view.fetch("a")) == [(second, "2")]
    assert view.fetch_session("a", 1, 9) == "2"
    assert list(view.find_sessions("a", 6, 1)) == [(second, "2")]


def test_versions_are_read_as_of_a_time() -> None:
    """The latest version and the one before are returned."""
    builder = Stores.versioned("store", 10_000)
    view: Any = empty_view(builder, _DEFAULTS, 1)
    view.apply(_logged(builder, 0, ("a", "1", 10), ("a", "2", 20)))
    assert view.get("a").value == "2"
    assert view.get_as_of("a", 15).value == "1"


def test_buffers_cannot_be_queried() -> None:
    """An operator's internal state is not accessible."""
    with pytest.raises(StreamsError, match="cannot be queried"):
        empty_view(StoreBuilder("buffer", "suppress_buffer"), _DEFAULTS, 1)
