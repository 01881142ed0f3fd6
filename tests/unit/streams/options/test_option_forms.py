"""Options as objects, in all forms of Kafka's classes."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from ottla.streams import (
    AutoOffsetReset,
    Branched,
    BufferConfig,
    Consumed,
    Grouped,
    Joined,
    JoinWindows,
    Materialized,
    Named,
    Produced,
    Repartitioned,
    Serdes,
    SessionWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TableJoined,
    TimeWindows,
    TopologyError,
    TopologyTestDriver,
    UnlimitedWindows,
    ValueTransformerWithKey,
    ValueTransformerWithKeySupplier,
    WallclockTimestampExtractor,
)
from ottla.streams.stores.builders import StoreBuilder
from ottla.streams.task.task import TaskSettings

KEY, VALUE = Serdes.string(), Serdes.long()


def chooser(_topic: str, _key: Any, _value: Any, _count: int) -> int:
    """Choose the first partition."""
    return 0


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (Named.as_("a").with_name("b"), Named("b")),
        (Branched.as_("a").with_name("b"), Branched("b")),
        (
            Consumed.with_(KEY, VALUE, WallclockTimestampExtractor, AutoOffsetReset.latest()),
            Consumed(KEY, VALUE, WallclockTimestampExtractor, "latest"),
        ),
        (Consumed.with_(AutoOffsetReset.earliest()), Consumed(offset_reset="earliest")),
        (Consumed.with_(chooser), Consumed(timestamp_extractor=chooser)),  # type: ignore[arg-type]
        (Produced.key_serde(KEY).with_value_serde(VALUE), Produced(KEY, VALUE)),
        (Produced.stream_partitioner(chooser), Produced(partitioner=chooser)),
        (Grouped.with_("g", KEY, VALUE), Grouped(KEY, VALUE, "g")),
        (Grouped.value_serde(VALUE).with_key_serde(KEY), Grouped(KEY, VALUE)),
        (Repartitioned.number_of_partitions(3), Repartitioned().with_number_of_partitions(3)),
        (Repartitioned.stream_partitioner(chooser), Repartitioned(partitioner=chooser)),
        (
            Joined.key_serde(KEY).with_value_serde(VALUE).with_other_value_serde(KEY),
            Joined.with_(KEY, VALUE, KEY),
        ),
        (TableJoined.with_(chooser, chooser).with_name("j"), TableJoined("j", chooser, chooser)),
        (
            TableJoined.as_("j").with_partitioner(chooser).with_other_partitioner(chooser),
            TableJoined("j", chooser, chooser),
        ),
        (StreamJoined.as_("s").with_logging_enabled(), StreamJoined(store_name="s")),
        (BufferConfig.max_records(3).with_no_bound(), BufferConfig.unbounded()),
        (Suppressed.BufferConfig.max_bytes(3), BufferConfig(max_bytes_count=3)),
        (
            UnlimitedWindows.of().start_on(datetime(1970, 1, 2, tzinfo=UTC)),
            UnlimitedWindows(86_400_000),
        ),
    ],
)
def test_options_are_written_as_in_java(theirs: object, ours: object) -> None:
    """Java's forms and the constructor yield equal values."""
    assert theirs == ours


def test_join_windows_of_is_deprecated_and_has_javas_grace() -> None:
    """The warning names the replacements; the grace period is 24 hours less the window size."""
    with pytest.warns(DeprecationWarning, match="use of_time_difference_with_no_grace") as warned:
        windows = JoinWindows.of("1 h")
    assert windows.grace_period_ms == 22 * 3_600_000
    assert windows.grace("1 s") == JoinWindows.of_time_difference_and_grace("1 h", "1 s")
    assert warned[0].filename == __file__, "the warning points at the caller"


def test_time_windows_of_is_deprecated_and_has_no_grace() -> None:
    """The warning mentions Java's grace of 24 hours; the result is the same as before."""
    with pytest.warns(DeprecationWarning, match="which had a grace of 24 hours; use of_size_with"):
        windows = TimeWindows.of("1 min")
    assert windows == TimeWindows.of_size_with_no_grace("1 min")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (AutoOffsetReset.none, "set state_dir to a directory that is kept"),
        (lambda: AutoOffsetReset.by_duration("1 h"), "with a filter on their timestamps"),
    ],
)
def test_an_unsupported_offset_reset_is_rejected_with_the_alternative(
    make: Callable[[], object], sentence: str
) -> None:
    """The policies none and by_duration raise instead of being ignored."""
    with pytest.raises(TopologyError, match=sentence):
        make()


def test_the_stores_of_a_join_can_be_supplied() -> None:
    """Their size and duplicates must match the join (KIP-479); otherwise the error shows them."""
    windows = JoinWindows.of_time_difference_with_no_grace(5)
    stores = [Stores.in_memory_window_store(name, 10, 10, True) for name in ("this", "other")]
    builder = StreamsBuilder()
    one, two = builder.stream("one"), builder.stream("two")
    supplied = StreamJoined.with_(*stores).with_name("join")
    one.join(two, lambda a, b: [a, b], windows, supplied).to("out")
    topology = builder.build()
    assert {"this", "other"} <= topology.stores.keys()
    with TopologyTestDriver(topology) as driver:
        for topic in ("one", "two", "one"):
            driver.create_input_topic(topic).pipe_input("a", topic)
        assert driver.create_output_topic("out").read_values_to_list() == [["one", "two"]] * 2
    wrong = StreamJoined().with_this_store_supplier(
        Stores.in_memory_window_store("w", 11, 10, True)
    )
    with pytest.raises(TopologyError, match=r"persistent_window_store\('w', 10, 10, retain_dup"):
        one.join(two, lambda a, b: [a, b], windows, wrong)


def test_the_other_table_of_a_foreign_key_join_can_have_a_partitioner() -> None:
    """The join uses it to find the partition of the other table's key (KIP-775)."""
    calls: list[Any] = []

    def first(_topic: str, key: Any, value: Any, _count: int) -> int:
        calls.append((key, value))
        return 1

    builder = StreamsBuilder()
    orders, users = builder.table("orders"), builder.table("users")
    options = TableJoined.as_("bought").with_other_partitioner(first)
    orders.join(users, lambda v: v, lambda order, user: user, options).to_stream().to("out")
    with TopologyTestDriver(builder.build(), settings=TaskSettings("app", partitions=2)) as driver:
        driver.create_input_topic("users").pipe_input("ann", "Ann")
        driver.create_input_topic("orders").pipe_input(1, "ann")
        assert driver.create_output_topic("out").read_key_value() == (1, "Ann")
    assert calls == [("ann", None)]


def test_windowed_cogroups_accept_options_as_in_java() -> None:
    """Named and Materialized follow the initializer, or the merger of sessions."""
    builder = StreamsBuilder()
    cogroup = builder.stream("in").group_by_key().cogroup(lambda value, total: total + value)
    name, materialized = Named.as_("name"), Materialized.as_("kept")
    cogroup.windowed_by(TimeWindows.of_size_with_no_grace(10)).aggregate(int, name, materialized)
    sessions = cogroup.windowed_by(SessionWindows.of_inactivity_gap_with_no_grace(5))
    sessions.aggregate(int, lambda one, two: one + two, Materialized.as_("gaps"))
    assert cogroup.aggregate(int, Materialized.as_("all")).queryable_store_name == "all"
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_key_value_list([("a", 2), ("a", 3)])
        assert driver.get_key_value_store("all").get("a") == 5
        assert driver.get_window_store("kept").fetch("a", 0) == 5
        assert [record.value for record in driver.get_session_store("gaps").fetch("a")] == [5]


class Counted(ValueTransformerWithKey[str, Any, list[Any]]):
    """Count the changes of an entry."""

    def transform(self, key: str, value: Any) -> list[Any]:
        """Count the change."""
        store = self.context.get_state_store("changes")
        store.put(key, (store.get(key) or 0) + 1)
        return [value, store.get(key)]


class CountedSupplier(ValueTransformerWithKeySupplier[str, Any, list[Any]]):
    """A supplier with its store."""

    def get(self) -> Counted:
        """Return a new transformer."""
        return Counted()

    def stores(self) -> Iterable[StoreBuilder]:
        """Return the store."""
        return [Stores.key_value("changes")]


def test_a_table_transformer_has_stores_and_is_materialized() -> None:
    """Materialized and Named are accepted in Java's positions."""
    builder = StreamsBuilder()
    table = builder.table("in")
    table.transform_values(CountedSupplier(), Materialized.as_("kept"), Named.as_("counted"))
    topology = builder.build()
    assert topology.connected["counted"] == ["changes", "kept"]
    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("in").pipe_key_value_list([("a", "x"), ("a", "y")])
        assert driver.get_key_value_store("kept").get("a") == ["y", 2]


def test_a_global_table_has_a_queryable_store_name() -> None:
    """The property belongs to a table."""
    assert StreamsBuilder().global_table("in", Materialized.as_("g")).queryable_store_name == "g"


def test_a_changelog_has_its_own_settings() -> None:
    """They are set with logging of a store or of a materialized table."""
    options = {"retention.ms": "1000"}
    builder = StreamsBuilder()
    grouped = builder.stream("in", key=KEY, value=VALUE).group_by_key()
    grouped.count(Materialized.as_("counts").with_logging_enabled(options))
    builder.add_state_store(Stores.key_value("own").with_logging_enabled(options))
    stores = builder.build().stores
    assert [stores[name].log_config for name in ("counts", "own")] == [options, options]
