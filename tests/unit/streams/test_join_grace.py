"""A grace period needs a versioned table with as long a history (KIP-923)."""

from typing import Any

import pytest

from ottla.streams import (
    Joined,
    Materialized,
    Stores,
    StreamsBuilder,
    TopologyError,
    TopologyTestDriver,
    ValueTransformerWithKey,
)


def _both(one: Any, other: Any) -> Any:
    return one, other


def _versioned(history: int, name: str = "history") -> Materialized[Any, Any]:
    return Materialized.as_(Stores.versioned(name, history))


_TABLES: dict[str, Any] = {
    "source": lambda b, history: b.table("table", _versioned(history)),
    "filtered": lambda b, history: b.table("table", _versioned(history)).filter(bool),
    "mapped": lambda b, history: b.table("table", _versioned(history)).map_values(str),
    "mapped and kept": lambda b, history: b.table("table", _versioned(10_000, "before")).map_values(
        str, _versioned(history)
    ),
    "of a stream": lambda b, history: b.stream("table").to_table(_versioned(history)),
    "reduced": lambda b, history: b.stream("table").group_by_key().reduce(max, _versioned(history)),
    "joined": lambda b, history: b.table("table", _versioned(10_000, "before")).join(
        b.table("other"), _both, _versioned(history)
    ),
}


@pytest.mark.parametrize("kind", _TABLES)
@pytest.mark.parametrize("join", ["join", "left_join"])
def test_a_grace_longer_than_the_history_is_rejected(kind: str, join: str) -> None:
    """The step raises, because a record would need versions that have expired."""
    builder = StreamsBuilder()
    table = _TABLES[kind](builder, 1000)
    joins = getattr(builder.stream("in"), join)
    with pytest.raises(TopologyError, match=r"grace of '1001' ms.*history of '1000' ms"):
        joins(table, _both, Joined(grace=1001))


@pytest.mark.parametrize("kind", _TABLES)
def test_a_grace_as_long_as_the_history_is_accepted(kind: str) -> None:
    """The history need not be longer."""
    builder = StreamsBuilder()
    table = _TABLES[kind](builder, 1000)
    builder.stream("in").join(table, _both, Joined(grace=1000))
    assert "KSTREAM-JOIN" in str(builder.build().describe())


@pytest.mark.parametrize(
    "table",
    [
        lambda b: b.table("table"),
        lambda b: b.table("table", materialized="kept"),
        lambda b: b.table("table").map_values(str),
        lambda b: b.table("table", _versioned(1000)).map_values(str, "kept"),
        lambda b: b.stream("table").group_by_key().count(),
        lambda b: b.table("table", _versioned(1000)).join(b.table("other"), _both),
    ],
)
def test_a_grace_with_a_table_without_versions_is_rejected(table: Any) -> None:
    """The step raises, before the first record."""
    builder = StreamsBuilder()
    joined = table(builder)
    with pytest.raises(TopologyError, match=r"grace.*versioned table.*Stores\.versioned"):
        builder.stream("in").join(joined, _both, Joined(grace=5))


class Shouting(ValueTransformerWithKey[str, Any, Any]):
    """A transformer to upper case."""

    def transform(self, key: str, value: Any) -> Any:
        """Convert the value to upper case."""
        return value and value.upper()


@pytest.mark.parametrize(
    ("derive", "found"),
    [
        (lambda table: table, "old"),
        (lambda table: table.filter(lambda value: value != "new"), "old"),
        (lambda table: table.filter(lambda value: value == "new"), None),
        (lambda table: table.map_values(lambda value: value + "!"), "old!"),
        (lambda table: table.transform_values(Shouting), "OLD"),
        (lambda table: table.filter(bool).map_values(lambda value: value + "!"), "old!"),
    ],
)
@pytest.mark.parametrize("grace", [None, 50])
def test_a_stream_joins_the_derived_tables_value_at_its_time(
    derive: Any, found: str | None, grace: int | None
) -> None:
    """A table derived from a versioned one is read as of the record's time, as in Kafka."""
    builder = StreamsBuilder()
    table = derive(builder.table("table", _versioned(1000)))
    builder.stream("in").left_join(table, _both, Joined(grace=grace)).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        rows, records = driver.create_input_topic("table"), driver.create_input_topic("in")
        rows.pipe_input("a", "old", timestamp=10)
        rows.pipe_input("a", "new", timestamp=20)
        records.pipe_input("a", 1, timestamp=15)
        records.pipe_input("other", 2, timestamp=100)
        first = driver.create_output_topic("out").read_key_value()
        assert first == ("a", [1, found])
