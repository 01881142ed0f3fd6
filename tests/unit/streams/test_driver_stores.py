"""The stores of a test driver: returned by type, readable and writable, as in Kafka."""

from typing import Any

import pytest

from ottla.streams import (
    Consumed,
    JoinWindows,
    Materialized,
    Processor,
    Record,
    Serdes,
    SessionWindow,
    SessionWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    StreamsError,
    TimeWindow,
    TimeWindows,
    Topology,
    TopologyTestDriver,
    ValueAndTimestamp,
    Windowed,
)

ACCESSORS = {
    "get_key_value_store": {"plain", "timed", "global", "table"},
    "get_timestamped_key_value_store": {"timed", "table"},
    "get_versioned_key_value_store": {"versioned"},
    "get_window_store": {"window", "timed window"},
    "get_timestamped_window_store": {"timed window"},
    "get_session_store": {"session"},
}
_STORES = {
    "plain": Stores.key_value("plain"),
    "timed": Stores.timestamped_key_value("timed"),
    "versioned": Stores.versioned("versioned", 1000),
    "window": Stores.window("window", 10, 5),
    "timed window": Stores.timestamped_window("timed-window", 10, 5),
    "session": Stores.session("session", 10),
    "global": Stores.key_value("global"),
}


class Silent(Processor[Any, Any, Any, Any]):
    """A processor that forwards nothing."""

    def process(self, record: Record[Any, Any]) -> None:
        """Ignore the record."""


@pytest.fixture
def driver() -> Any:
    """Return a driver with a store of each type."""
    builder = StreamsBuilder()
    for kind, store in _STORES.items():
        if kind == "global":
            builder.add_global_store(store, "global", Silent)
        else:
            builder.add_state_store(store)
    builder.table("table", materialized="table")
    builder.stream("in").process(
        Silent, *(store.name for kind, store in _STORES.items() if kind != "global")
    )
    with TopologyTestDriver(builder.build()) as test_driver:
        yield test_driver


def _name(kind: str) -> str:
    return "table" if kind == "table" else _STORES[kind].name


@pytest.mark.parametrize("accessor", ACCESSORS)
@pytest.mark.parametrize("kind", [*_STORES, "table"])
def test_a_store_is_returned_by_the_accessors_of_its_type(
    driver: TopologyTestDriver, accessor: str, kind: str
) -> None:
    """Any other accessor raises ValueError and names a correct one."""
    if kind in ACCESSORS[accessor]:
        assert getattr(driver, accessor)(_name(kind)).name == _name(kind)
        return
    right = next(each for each, kinds in ACCESSORS.items() if kind in kinds)
    with pytest.raises(ValueError, match=rf"store '{_name(kind)}' is a .* store.*{right}\("):
        getattr(driver, accessor)(_name(kind))


@pytest.mark.parametrize("accessor", ACCESSORS)
def test_a_store_that_does_not_exist_is_rejected(driver: TopologyTestDriver, accessor: str) -> None:
    """The error lists the existing stores."""
    with pytest.raises(StreamsError, match=r"there is no store plane; the topology has:.*plain"):
        getattr(driver, accessor)("plane")


def test_a_buffer_has_no_accessor() -> None:
    """The window stores of a join do have an accessor."""
    builder = StreamsBuilder()
    one, two = builder.stream("one"), builder.stream("two")
    one.left_join(two, max, JoinWindows(5, 5), StreamJoined.as_("kept"))
    with TopologyTestDriver(builder.build()) as driver:
        assert driver.get_window_store("kept-this-join-store").name == "kept-this-join-store"
        with pytest.raises(
            ValueError, match="'kept-left-shared-join-store' is an operator's internal buffer"
        ):
            driver.get_key_value_store("kept-left-shared-join-store")


def test_a_key_value_store_is_written_as_in_kafka(driver: TopologyTestDriver) -> None:
    """The methods put_if_absent, put_all and delete work as in Kafka."""
    store = driver.get_key_value_store("plain")
    store.put("a", 1)
    assert store.put_if_absent("a", 2) == 1
    assert store.put_if_absent("b", 2) is None
    store.put_all([("c", 3), ("d", 4)])
    assert store.delete("d") == 4
    assert list(store.all()) == [("a", 1), ("b", 2), ("c", 3)]
    assert store.approximate_num_entries() == 3


@pytest.mark.parametrize("name", ["timed", "table"])
def test_values_without_timestamps_can_be_put_into_a_timestamped_store(
    driver: TopologyTestDriver, name: str
) -> None:
    """Their timestamp is -1, as with Kafka's KeyValueStoreFacade."""
    store, timed = driver.get_key_value_store(name), driver.get_timestamped_key_value_store(name)
    store.put("a", 1)
    assert store.put_if_absent("a", 2) == 1
    assert store.put_if_absent("b", 2) is None
    store.put_all([("c", 3), ("d", None)])
    assert timed.get("a") == ValueAndTimestamp(1, -1)
    assert list(store.range("b", None)) == [("b", 2), ("c", 3)]
    assert store.delete("c") == 3
    store.put("b", None)
    timed.put("e", ValueAndTimestamp(5, 50))
    assert list(store.all()) == [("a", 1), ("e", 5)]
    assert timed.get("e") == ValueAndTimestamp(5, 50)


def test_windows_sessions_and_versions_are_written(driver: TopologyTestDriver) -> None:
    """Each type of store is written and read."""
    driver.get_window_store("window").put("a", 1, 0)
    driver.get_window_store("timed-window").put("a", 2, 0)
    driver.get_session_store("session").put(Windowed("a", SessionWindow(0, 5)), 3)
    driver.get_versioned_key_value_store("versioned").put("a", 4, 10)
    assert driver.get_window_store("window").fetch("a", 0) == 1
    assert driver.get_window_store("timed-window").fetch("a", 0) == 2
    timed = driver.get_timestamped_window_store("timed-window")
    assert list(timed.fetch_all(0, 10)) == [
        (Windowed("a", TimeWindow(0, 5)), ValueAndTimestamp(2, -1))
    ]
    assert driver.get_session_store("session").fetch_session("a", 0, 5) == 3
    assert driver.get_versioned_key_value_store("versioned").get("a", 10).value == 4


def _counts(builder: StreamsBuilder) -> None:
    text = Serdes.string()
    group = builder.stream("in", Consumed.with_(text, text)).group_by_key()
    group.count(Materialized.as_("counts")).to_stream().to("out")
    hours = group.windowed_by(TimeWindows.of_size_with_no_grace(10))
    hours.count(Materialized.as_("hours")).to_stream(lambda key, _: key.key).to("hours-out")
    gaps = group.windowed_by(SessionWindows.of_inactivity_gap_with_no_grace(5))
    gaps.count(Materialized.as_("gaps"))


@pytest.mark.parametrize("cache", [0, 1 << 20])
def test_the_topology_continues_from_entries_of_a_test(cache: int) -> None:
    """A test can prepare a store as in Kafka, with and without a cache."""
    builder = StreamsBuilder()
    _counts(builder)
    settings = {"statestore.cache.max.bytes": cache}
    with TopologyTestDriver(builder.build(), settings) as driver:
        driver.get_key_value_store("counts").put("a", 41)
        driver.get_window_store("hours").put("a", 7, 0)
        driver.get_session_store("gaps").put(Windowed("a", SessionWindow(1, 2)), 9)
        assert driver.get_key_value_store("counts").get("a") == 41
        text = Serdes.string()
        driver.create_input_topic("in", text, text).pipe_input("a", "x", timestamp=3)
        out = driver.create_output_topic("out", text, Serdes.long())
        assert out.read_key_values_to_list() == [("a", 42)]
        hours = driver.create_output_topic("hours-out", value=Serdes.long())
        assert hours.read_key_values_to_list() == [("a", 8)]
        assert driver.get_session_store("gaps").fetch_session("a", 1, 3) == 10


def test_writes_of_a_test_go_to_the_changelog() -> None:
    """They are logged with the next record, as in Kafka; outside a record their time is 0."""
    topology = Topology().add_source("Source", "in").add_processor("Process", Silent, "Source")
    topology.add_state_store(Stores.key_value("kept"), "Process")
    topology.add_state_store(Stores.timestamped_key_value("timed"), "Process")
    with TopologyTestDriver(topology) as driver:
        driver.get_key_value_store("kept").put("a", 1)
        driver.get_key_value_store("timed").put("a", 1)
        driver.create_input_topic("in").pipe_input("b", 2, timestamp=10)
        for name in ("kept", "timed"):
            records = driver.create_output_topic(f"test-{name}-changelog").read_records_to_list()
            assert [(record.key, record.value, record.timestamp) for record in records] == [
                ("a", 1, 0)
            ]


class Starting(Silent):
    """A processor that writes to its store before the first record."""

    def init(self, context: Any) -> None:
        """Write an entry."""
        super().init(context)
        context.get_state_store("kept").put("a", 1)


def test_writes_in_init_have_the_time_0() -> None:
    """There is no record that could supply the time."""
    topology = Topology().add_source("Source", "in").add_processor("Process", Starting, "Source")
    topology.add_state_store(Stores.key_value("kept"), "Process")
    with TopologyTestDriver(topology) as driver:
        driver.advance_wall_clock_time(1)
        changelog = driver.create_output_topic("test-kept-changelog")
        assert changelog.read_record().timestamp == 0


def test_interactive_queries_are_read_only(driver: TopologyTestDriver) -> None:
    """`driver.store` returns the same views as `KafkaStreams.store`."""
    driver.get_key_value_store("plain").put("a", 1)
    view = driver.store("plain")
    assert view.get("a") == 1
    with pytest.raises(AttributeError, match="put"):
        view.put("a", 2)
