"""The record cache: of several updates of a key, only the last is emitted, at a commit."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.streams import (
    KGroupedStream,
    KTable,
    Materialized,
    Processor,
    Record,
    Serdes,
    SessionWindows,
    Stores,
    StreamsBuilder,
    TimeWindows,
    Topology,
    TopologyTestDriver,
)
from ottla.streams.task.task import TaskSettings

_STRING, _LONG = Serdes.string(), Serdes.long()


def _counts(materialized: Materialized[Any, Any]) -> Topology:
    builder = StreamsBuilder()
    stream = builder.stream("in", key=_STRING, value=_STRING)
    stream.group_by_key().count(materialized).to_stream().to("out", key=_STRING, value=_LONG)
    return builder.build()


def _driver(
    topology: Topology, *, max_bytes: int = 1 << 20, interval_ms: int = 100
) -> TopologyTestDriver:
    settings = TaskSettings(
        "app", statestore_cache_max_bytes=max_bytes, commit_interval_ms=interval_ms
    )
    return TopologyTestDriver(topology, settings=settings)


def _pipe(driver: TopologyTestDriver, keys: str) -> None:
    driver.create_input_topic("in", _STRING, _STRING).pipe_key_value_list(
        [(key, "x") for key in keys], 0
    )


def _written(driver: TopologyTestDriver, topic: str = "out") -> list[Any]:
    return driver.create_output_topic(topic, _STRING, _LONG).read_key_values_to_list()


def test_updates_wait_for_a_commit() -> None:
    """The store has each update immediately; topic and changelog get the last value of each key."""
    with _driver(_counts(Materialized.as_("counts"))) as driver:
        _pipe(driver, "aabab")
        assert driver.get_state_store("counts").get("a").value == 3
        assert not driver.produced_topic_names
        driver.advance_wall_clock_time(100)
        # Keys are in the order of their last update.
        assert _written(driver) == [("a", 3), ("b", 2)]
        assert _written(driver, "app-counts-changelog") == [("a", 3), ("b", 2)]
        driver.commit()
        assert not _written(driver)


def test_a_table_without_a_cache_emits_every_update() -> None:
    """This is Kafka's withCachingDisabled."""
    with _driver(_counts(Materialized.as_("counts").with_caching_disabled())) as driver:
        _pipe(driver, "aa")
        assert _written(driver) == [("a", 1), ("a", 2)]


def test_a_full_cache_writes_early() -> None:
    """Stores share the cache; entries that do not fit are emitted before the commit."""
    with _driver(_counts(Materialized.as_("counts")), max_bytes=250) as driver:
        _pipe(driver, "aab")
        assert not _written(driver)
        _pipe(driver, "c")
        assert _written(driver) == [("a", 2), ("b", 1), ("c", 1)]


def test_a_key_that_was_put_and_deleted_between_commits_is_not_emitted() -> None:
    """A key that existed at the last commit is deleted with a tombstone."""
    builder = StreamsBuilder()
    table = builder.table("in", key=_STRING, value=_STRING, materialized="table")
    table.to_stream().to("out", key=_STRING, value=_STRING)
    with _driver(builder.build()) as driver:
        topic = driver.create_input_topic("in", _STRING, _STRING)
        topic.pipe_key_value_list([("a", "x"), ("a", None), ("b", "y")], 0)
        driver.commit()
        topic.pipe_key_value_list([("b", "z"), ("b", None)], 0)
        driver.commit()
        pairs = driver.create_output_topic("out", _STRING, _STRING).read_key_values_to_list()
    assert pairs == [("b", "y"), ("b", None)]


def test_a_processor_can_request_a_commit_and_a_cached_store() -> None:
    """The changelog of a cached store contains a key once per commit."""

    class Counting(Processor[Any, Any, Any, Any]):
        stores = (Stores.key_value("seen", _STRING, _LONG).with_caching_enabled(),)

        def process(self, record: Record[Any, Any]) -> None:
            seen = self.context.store("seen")
            seen.put(record.key, (seen.get(record.key) or 0) + 1)
            if record.key == "c":
                self.context.commit()

    topology = Topology().add_source("s", "in", key=_STRING, value=_STRING)
    topology.add_processor("p", Counting, "s")
    with _driver(topology) as driver:
        _pipe(driver, "aaba")
        assert not driver.produced_topic_names
        _pipe(driver, "c")
        assert _written(driver, "app-seen-changelog") == [("b", 1), ("a", 3), ("c", 1)]


@given(st.lists(st.sampled_from("abcC"), max_size=30))
def test_a_cache_changes_updates_but_not_results(keys: list[str]) -> None:
    """With commits at any time (C), regrouped counts are the same as without a cache."""
    builder = StreamsBuilder()
    counts = builder.stream("in", key=_STRING, value=_STRING).group_by_key().count("counts")
    by_count = counts.group_by(lambda key, count: (str(count), key), key=_STRING, value=_STRING)
    by_count.count("by-count").to_stream().to("out", key=_STRING, value=_LONG)
    topology = builder.build()
    with _driver(topology) as cached, TopologyTestDriver(topology) as plain:
        for key in keys:
            if key == "C":
                cached.commit()
            else:
                _pipe(cached, key)
                _pipe(plain, key)
        # The second commit emits the updates that returned through the repartition topic.
        cached.commit()
        cached.commit()
        stores = [dict(driver.get_state_store("by-count").all()) for driver in (cached, plain)]
        assert _values(stores[0]) == _values(stores[1])
        ends = [
            {key: count for key, count in _written(driver) if count is not None}
            for driver in (cached, plain)
        ]
        assert {k: v for k, v in ends[1].items() if v} == {k: v for k, v in ends[0].items() if v}


def _values(entries: dict[str, Any]) -> dict[str, int]:
    return {key: entry.value for key, entry in entries.items() if entry.value}


_MINUTE = TimeWindows.of_size_with_no_grace(60_000)
_GAP = SessionWindows.of_inactivity_gap_with_no_grace(60_000)
_TABLES: dict[str, Callable[[KGroupedStream[str, str]], KTable[Any, int]]] = {
    "keys": lambda grouped: grouped.count(),
    "windows": lambda grouped: grouped.windowed_by(_MINUTE).count(),
    "sessions": lambda grouped: grouped.windowed_by(_GAP).count(),
    "mapped": lambda grouped: grouped.count().map_values(lambda count: count),
}


@pytest.mark.parametrize("join", ["join", "left_join", "outer_join"])
@pytest.mark.parametrize("table", _TABLES)
@pytest.mark.parametrize("max_bytes", [1, 1 << 20])
def test_a_sum_over_joined_tables_counts_each_result_once(
    join: str, table: str, max_bytes: int
) -> None:
    """Both tables of a join change between two commits; a later commit retracts the first result."""
    builder = StreamsBuilder()
    left, right = (
        _TABLES[table](builder.stream(topic, key=_STRING, value=_STRING).group_by_key())
        for topic in ("in", "other")
    )
    joined = getattr(left, join)(right, lambda one, two: 10 * (one or 0) + (two or 0))
    grouped = joined.group_by(lambda key, value: ("all", value), key=_STRING, value=_LONG)
    sums = grouped.reduce(lambda total, value: total + value, lambda total, value: total - value)
    sums.to_stream().to("out", key=_STRING, value=_LONG)
    with _driver(builder.build(), max_bytes=max_bytes) as driver:
        for total in (11, 22):
            for topic in ("in", "other"):
                driver.create_input_topic(topic, _STRING, _STRING).pipe_input("k", "x", 0)
            driver.commit()
            driver.commit()
            assert dict(_written(driver)) == {"all": total}
