"""Reading stores with Kafka's methods, and describing them with Kafka's factories."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ottla.streams import (
    KeyValue,
    Materialized,
    Serdes,
    SessionWindow,
    Stores,
    StreamsBuilder,
    TimeWindow,
    TopologyError,
    TopologyTestDriver,
    ValueAndTimestamp,
    VersionedRecord,
    Windowed,
)
from ottla.streams.queries.store_views import view_of
from ottla.streams.serdes import DefaultSerdes
from ottla.streams.stores.builders import StoreBuilder

_DEFAULTS = DefaultSerdes(Serdes.string(), Serdes.string())


def opened(builder: StoreBuilder) -> tuple[Any, Any]:
    """Return a store and the view of it."""
    store = builder.build(_DEFAULTS, None)
    return store, view_of(builder, [store], with_timestamps=False)


def at(key: str, start: int, end: int) -> Windowed[str]:
    """Return a key in a window."""
    return Windowed(key, TimeWindow(start, end))


def during(key: str, start: int, end: int) -> Windowed[str]:
    """Return a key in a session."""
    return Windowed(key, SessionWindow(start, end))


def test_an_iterator_has_kafkas_methods() -> None:
    """It can peek, close and be used in a loop; an entry is a named pair."""
    store, _ = opened(Stores.key_value("s"))
    store.put_all([("a", "1"), ("b", "2")])
    with store.all() as entries:
        assert (entries.has_next(), entries.peek_next_key()) == (True, "a")
        assert entries.next() == KeyValue.pair("a", "1") == ("a", "1")
        assert [entry.value for entry in entries] == ["2"]
        assert not entries.has_next()
        with pytest.raises(StopIteration):
            entries.peek_next_key()
    walked = store.all()
    walked.close()
    assert list(walked) == []


def test_keys_are_found_by_prefix() -> None:
    """The prefix is serialized with the keys' serde or with another one (KIP-614)."""
    for store in opened(Stores.key_value("s")):
        if hasattr(store, "put"):
            store.put_all([(key, "1") for key in ("a", "ab", "abc", "ac", "b")])
            writable = store
    _, view = writable, view_of(Stores.key_value("s"), [writable], with_timestamps=False)
    for readable in (writable, view):
        assert [key for key, _ in readable.prefix_scan("ab")] == ["ab", "abc"]
        assert [key for key, _ in readable.prefix_scan(b"a", Serdes.bytes())] == [
            "a",
            "ab",
            "abc",
            "ac",
        ]
        assert len(list(readable.prefix_scan(""))) == 5
    raw, _ = opened(Stores.key_value("s", Serdes.bytes()))
    raw.put_all([(b"\xfe", "1"), (b"\xff", "2"), (b"\xff\xff", "3")])
    assert [key for key, _ in raw.prefix_scan(b"\xff")] == [b"\xff", b"\xff\xff"]
    expiring, _ = opened(Stores.key_value("s", ttl="1 h"))
    expiring.put_all([("a", "1"), ("b", "1")])
    assert list(expiring.prefix_scan("a")) == [("a", "1")]


def test_windows_are_fetched_in_both_directions_by_key_or_range() -> None:
    """Times are ms or datetime and inclusive; None is no bound of the keys (KIP-763)."""
    store, view = opened(Stores.window("s", "1 h", 10))
    for key, start in (("a", 0), ("b", 0), ("a", 10), ("c", 10), ("a", 20)):
        store.put(key, f"{key}{start}", start)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    for readable in (store, view):
        assert readable.fetch("a", 10) == "a10"
        assert list(readable.fetch("a", 0, 10)) == [(0, "a0"), (10, "a10")]
        assert list(readable.fetch("a", epoch, epoch + timedelta(milliseconds=10))) == [
            (0, "a0"),
            (10, "a10"),
        ]
        assert list(readable.backward_fetch("a", 0, 10)) == [(10, "a10"), (0, "a0")]
        assert list(readable.fetch("b", None, 0, 20)) == [
            (at("b", 0, 10), "b0"),
            (at("c", 10, 20), "c10"),
        ]
        assert [value for _, value in readable.backward_fetch(None, "b", 0, 10)] == [
            "b0",
            "a10",
            "a0",
        ]
        assert [value for _, value in readable.fetch_all(10, 10)] == ["a10", "c10"]
        assert [value for _, value in readable.backward_fetch_all(10, 10)] == ["c10", "a10"]
        forward = [value for _, value in readable.all()]
        assert [value for _, value in readable.backward_all()] == forward[::-1]


def test_sessions_are_fetched_in_both_directions_by_key_or_range() -> None:
    """The methods are the same as in Kafka's ReadOnlySessionStore."""
    store, view = opened(Stores.session("s", "1 h"))
    for key, start, end in (("a", 0, 5), ("a", 20, 25), ("b", 10, 15)):
        store.put(during(key, start, end), f"{key}{start}")
    for readable in (store, view):
        assert readable.fetch_session("a", 20, 25) == "a20"
        assert list(readable.fetch("a")) == [
            (during("a", 0, 5), "a0"),
            (during("a", 20, 25), "a20"),
        ]
        assert [value for _, value in readable.backward_fetch("a")] == ["a20", "a0"]
        assert [value for _, value in readable.fetch("a", "b")] == ["a0", "a20", "b10"]
        assert [value for _, value in readable.backward_fetch(None, None)] == ["b10", "a20", "a0"]
        assert [value for _, value in readable.find_sessions("a", 10, 30)] == ["a20"]
        assert [value for _, value in readable.find_sessions("a", "b", 10, 30)] == ["a20", "b10"]
        assert [value for _, value in readable.backward_find_sessions("a", "b", 10, 30)] == [
            "b10",
            "a20",
        ]
    assert [value for _, value in store.find_sessions(5, 15)] == ["a0", "b10"]


def test_versions_are_read_by_time() -> None:
    """The result is the latest version, the one at a time, or all in a range (KIP-889, KIP-968)."""
    store, view = opened(Stores.versioned("s", "1 h"))
    for value, time in (("1", 10), ("2", 20), (None, 30), ("4", 40)):
        store.put("a", value, time)
    assert store.get("a") == view.get("a") == VersionedRecord("4", 40, None)
    assert store.get("a", 25) == view.get("a", 25) == VersionedRecord("2", 20, 30)
    assert store.get("a", 35) is None
    assert [version.value for version in store.versions("a")] == ["4", "2", "1"]
    assert [version.value for version in store.versions("a", 20, 35)] == ["2"]
    assert [version.value for version in store.versions("a", 15, 20)] == ["2", "1"]


def test_values_with_timestamps_are_created_as_in_java() -> None:
    """None maps to None in both directions."""
    record = ValueAndTimestamp.make("x", 5)
    assert record == ("x", 5)
    assert ValueAndTimestamp.make(None, 5) is None
    assert ValueAndTimestamp.get_value_or_null(record) == "x"
    assert ValueAndTimestamp.get_value_or_null(None) is None


def test_windows_have_times_and_overlap() -> None:
    """The end of a session is inclusive, the end of a time window exclusive."""
    assert TimeWindow(0, 1_000).end_time == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert SessionWindow(0, 1_000).start_time == datetime(1970, 1, 1, tzinfo=UTC)
    assert TimeWindow(0, (1 << 63) - 1).end_time.year == 9999
    assert not TimeWindow(0, 10).overlap(TimeWindow(10, 20))
    assert SessionWindow(0, 10).overlap(SessionWindow(10, 20))


_KEY, _VALUE = Serdes.string(), Serdes.long()


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (
            Stores.key_value_store_builder(
                Stores.persistent_key_value_store("s"), _KEY, _VALUE
            ).with_caching_enabled(),
            Stores.key_value("s", _KEY, _VALUE).with_caching_enabled(),
        ),
        (
            Stores.timestamped_key_value_store_builder(
                Stores.in_memory_key_value_store("s"), _KEY, _VALUE
            ),
            Stores.timestamped_key_value("s", _KEY, _VALUE),
        ),
        (
            Stores.versioned_key_value_store_builder(
                Stores.persistent_versioned_key_value_store("s", "1 h"), _KEY, _VALUE
            ),
            Stores.versioned("s", "1 h", _KEY, _VALUE),
        ),
        (
            Stores.window_store_builder(
                Stores.persistent_window_store("s", "1 h", "5 min", False), _KEY, _VALUE
            ).with_logging_disabled(),
            Stores.window("s", "1 h", "5 min", _KEY, _VALUE).with_logging_disabled(),
        ),
        (
            Stores.timestamped_window_store_builder(
                Stores.persistent_timestamped_window_store("s", "1 h", "5 min"), _KEY, _VALUE
            ),
            Stores.timestamped_window("s", "1 h", "5 min", _KEY, _VALUE),
        ),
        (
            Stores.session_store_builder(Stores.in_memory_session_store("s", "1 h"), _KEY, _VALUE),
            Stores.session("s", timedelta(hours=1), _KEY, _VALUE),
        ),
    ],
)
def test_a_store_builder_with_a_supplier_equals_the_short_form(
    theirs: StoreBuilder, ours: StoreBuilder
) -> None:
    """Both forms describe the same store."""
    assert theirs == ours


def test_a_window_store_can_retain_duplicates() -> None:
    """The supplier has the option to retain duplicates."""
    supplier = Stores.persistent_window_store("s", "1 h", 10, True)
    store = Stores.window_store_builder(supplier).build(_DEFAULTS, None)
    for value in ("x", "y"):
        store.put("a", value, 0)  # type: ignore[attr-defined]
    assert list(store.fetch("a", 0, 0)) == [(0, "x"), (0, "y")]  # type: ignore[attr-defined]


def test_a_supplier_of_another_type_is_rejected() -> None:
    """The error names the expected type."""
    with pytest.raises(TopologyError, match="s is a session store; expected key_value"):
        Stores.key_value_store_builder(Stores.persistent_session_store("s", "1 h"))
    with pytest.raises(TypeError, match=r"shorter: Stores\.key_value"):
        Stores.key_value_store_builder("s")  # type: ignore[arg-type]
    with pytest.raises(TopologyError, match="to retain duplicates, use persistent_window_store"):
        Stores.persistent_timestamped_window_store("s", "1 h", "1 min", True)


def test_a_table_is_materialized_in_the_supplied_store() -> None:
    """Any store of the right type is accepted; another one is rejected."""
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key()
    grouped.count(Materialized.as_(Stores.in_memory_key_value_store("counts")))
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("a", 1, timestamp=3)
        assert driver.get_timestamped_key_value_store("counts").get("a") == (1, 3)
    with pytest.raises(TopologyError, match="store w is a window store; this table is kept in a"):
        grouped.count(Materialized.as_(Stores.persistent_window_store("w", "1 h", 10)))
