"""Queries as values (KIP-796), and stores that are accessed by their type."""

from collections.abc import Iterator
from typing import Any

import pytest

from ottla.streams import (
    KeyQuery,
    Materialized,
    MultiVersionedKeyQuery,
    QueryableStoreTypes,
    RangeQuery,
    Serdes,
    SessionWindows,
    StateQueryRequest,
    StoreQueryParameters,
    Stores,
    StreamsBuilder,
    StreamsError,
    TimestampedKeyQuery,
    TimestampedRangeQuery,
    TimeWindows,
    TopologyTestDriver,
    ValueAndTimestamp,
    VersionedKeyQuery,
    WindowKeyQuery,
    WindowRangeQuery,
)
from ottla.streams.queries.requests import FailureReason, PositionBound, Query
from ottla.streams.queries.store_views import view_of
from ottla.streams.serdes import DefaultSerdes


def retained(name: str) -> Materialized[Any, Any]:
    """Return options that retain windows for an hour."""
    return Materialized.as_(name).with_retention("1 h")


@pytest.fixture
def driver() -> Iterator[TopologyTestDriver]:
    """A driver with a store of each type, after three records."""
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key()
    grouped.count("counts")
    grouped.windowed_by(TimeWindows.of_size_with_no_grace(10)).count(retained("windows"))
    grouped.windowed_by(SessionWindows.of_inactivity_gap_with_no_grace(5)).count(
        retained("sessions")
    )
    history = Stores.persistent_versioned_key_value_store("history", "1 h")
    builder.table("in-table", Materialized.as_(history))
    builder.global_table("global", Materialized.as_("names"))
    with TopologyTestDriver(builder.build()) as test_driver:
        for key, time in (("a", 1), ("a", 12), ("b", 13)):
            for topic in ("in", "in-table", "global"):
                test_driver.create_input_topic(topic).pipe_input(
                    key, f"{key}{time}", timestamp=time
                )
        yield test_driver


def result_of(driver: TopologyTestDriver, store: str, query: Query[Any]) -> Any:
    """Return the only result of a query; an iterator as a list."""
    result = driver.query(StateQueryRequest.in_store(store).with_query(query))
    only = result.get_only_partition_result()
    actual = None if only is None else only.get_result()
    return list(actual) if isinstance(actual, Iterator) else actual


def test_key_value_stores_answer_queries_of_keys_and_ranges(driver: TopologyTestDriver) -> None:
    """The results are with or without timestamps."""
    assert result_of(driver, "counts", KeyQuery.with_key("a").skip_cache()) == 2
    assert result_of(driver, "counts", KeyQuery.with_key("x")) is None
    assert result_of(driver, "counts", TimestampedKeyQuery.with_key("a")) == ValueAndTimestamp(
        2, 12
    )
    assert result_of(driver, "counts", RangeQuery.with_no_bounds()) == [("a", 2), ("b", 1)]
    descending = RangeQuery.with_range("a", "b").with_descending_keys()
    assert result_of(driver, "counts", descending) == [("b", 1), ("a", 2)]
    assert result_of(driver, "counts", RangeQuery.with_lower_bound("b")) == [("b", 1)]
    timed = TimestampedRangeQuery.with_upper_bound("a").with_ascending_keys()
    assert result_of(driver, "counts", timed) == [("a", ValueAndTimestamp(2, 12))]


def test_windows_and_sessions_answer_queries(driver: TopologyTestDriver) -> None:
    """Windows are queried by key and time, or by time; sessions by key."""
    windows = WindowKeyQuery.with_key_and_window_start_range("a", 0, 10)
    assert result_of(driver, "windows", windows) == [(0, (1, 1)), (10, (1, 12))]
    every = WindowRangeQuery.with_window_start_range(10, 10)
    assert [key.key for key, _ in result_of(driver, "windows", every)] == ["a", "b"]
    sessions = result_of(driver, "sessions", WindowRangeQuery.with_key("a"))
    assert [(key.window.start, value) for key, value in sessions] == [(1, 1), (12, 1)]


def test_versioned_stores_answer_queries_by_time(driver: TopologyTestDriver) -> None:
    """The result is the latest version, the one at a time, or all in a range."""
    assert result_of(driver, "history", VersionedKeyQuery.with_key("a")) == ("a12", 12, None)
    assert result_of(driver, "history", VersionedKeyQuery.with_key("a").as_of(5)) == ("a1", 1, 12)
    versions = MultiVersionedKeyQuery.with_key("a")
    assert [record.value for record in result_of(driver, "history", versions)] == ["a12", "a1"]
    ascending = versions.from_time(0).to_time(12).with_ascending_timestamps()
    assert [record.value for record in result_of(driver, "history", ascending)] == ["a1", "a12"]
    early = versions.to_time(5).with_descending_timestamps()
    assert [record.value for record in result_of(driver, "history", early)] == ["a1"]


def test_a_global_store_has_one_result(driver: TopologyTestDriver) -> None:
    """The result is global, not by partition."""
    request = StateQueryRequest.in_store("names").with_query(KeyQuery.with_key("b"))
    result = driver.query(request.require_active().enable_execution_info())
    assert result.get_partition_results() == {}
    actual = result.get_global_result()
    assert actual is not None
    assert (actual.is_success(), actual.get_result()) == (True, "b13")


def test_an_unsupported_query_is_a_failure(driver: TopologyTestDriver) -> None:
    """The failure of each partition has a reason and a message; reading its result raises."""
    request = StateQueryRequest.in_store("windows").with_query(KeyQuery.with_key("a"))
    result = driver.query(request.with_position_bound(PositionBound.unbounded()))
    failed = result.get_partition_results()[0]
    assert failed.is_failure()
    assert failed.get_failure_reason() is FailureReason.UNKNOWN_QUERY_TYPE
    assert "does not support KeyQuery" in (failed.get_failure_message() or "")
    with pytest.raises(StreamsError, match="windows is a TimestampedWindowStore"):
        failed.get_result()
    missing = driver.query(request.with_partitions({7})).get_partition_results()[7]
    assert missing.get_failure_reason() is FailureReason.DOES_NOT_EXIST
    assert result.get_only_partition_result() is None


def test_each_partition_has_its_own_result() -> None:
    """If several partitions have a result, get_only_partition_result raises."""
    builder = Stores.key_value("s", Serdes.string(), Serdes.string())
    stores: list[Any] = [builder.build(DefaultSerdes(), None) for _ in range(3)]
    for number in (0, 2):
        stores[number].put("a", str(number))
    view = view_of(builder, stores, with_timestamps=False)
    request = StateQueryRequest.in_store("s").with_query(KeyQuery.with_key("a"))
    results = request.with_all_partitions().answer(view)
    assert [result.result for result in results.get_partition_results().values()] == [
        "0",
        None,
        "2",
    ]
    with pytest.raises(ValueError, match="2 partitions have a result"):
        results.get_only_partition_result()
    only = request.with_partitions([2]).answer(view).get_only_partition_result()
    assert only is not None
    assert only.get_result() == "2"
    kind = QueryableStoreTypes.key_value_store()
    parameters = StoreQueryParameters.from_name_and_type("s", kind).enable_stale_stores()
    assert parameters.narrow(view) is view
    assert list(parameters.with_partition(2).narrow(view).all()) == [("a", "2")]
    with pytest.raises(StreamsError, match="store s has no partition 3"):
        parameters.with_partition(3).narrow(view)


def test_a_store_is_accessed_by_name_and_type(driver: TopologyTestDriver) -> None:
    """A wrong type is an error, as in Kafka."""

    def named(name: str, kind: Any) -> Any:
        return driver.store(StoreQueryParameters.from_name_and_type(name, kind))

    assert named("counts", QueryableStoreTypes.key_value_store()).get("a") == 2
    assert named("counts", QueryableStoreTypes.timestamped_key_value_store()).get("a") == (2, 12)
    assert named("windows", QueryableStoreTypes.window_store()).fetch("a", 0) == 1
    assert named("windows", QueryableStoreTypes.timestamped_window_store()).fetch("a", 0) == (1, 1)
    assert len(list(named("sessions", QueryableStoreTypes.session_store()).fetch("a"))) == 2
    with pytest.raises(StreamsError, match="store counts is not a window store"):
        named("counts", QueryableStoreTypes.window_store())
