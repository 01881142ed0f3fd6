"""A topic as a table: columns, positions, and errors for invalid arguments."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

import ottla.client
from ottla.base.errors import ApiError, ConfigError
from ottla.client.arrow_table import DEFAULT_COLUMNS, read_table
from ottla.wire.records.columnar import COLUMNS
from ottla.wire.records.records import Record
from tests.unit.client.topics import Topic

NOW = 1_700_000_000_000


@pytest.fixture
def topic(broker: Any) -> Topic:
    """Return a topic with partitions of 20 and 10 records, a second apart."""
    served = Topic("t", partitions=2).serve_from(broker)
    for partition, count in ((0, 20), (1, 10)):
        records = [
            Record(b"k%d" % (n % 3), b"%d" % n, (("n", b"x"),), NOW + 1000 * n)
            for n in range(count)
        ]
        for first in range(0, count, 5):
            served.append(records[first : first + 5], partition)
    return served


def _offsets(broker: Any, **asked: Any) -> dict[int, list[int]]:
    table = read_table("t", bootstrap=broker.bootstrap, columns=["partition", "offset"], **asked)
    result: dict[int, list[int]] = {}
    for row in table.to_pylist():
        result.setdefault(row["partition"], []).append(row["offset"])
    return result


def test_a_topic_becomes_a_table(broker: Any, topic: Topic) -> None:
    """All records are returned, partition by partition, in the default columns."""
    table = read_table("t", bootstrap=broker.bootstrap)
    assert table.column_names == list(DEFAULT_COLUMNS)
    assert table.num_rows == 30
    assert table.slice(21, 1).to_pylist() == [
        {
            "key": b"k1",
            "value": b"1",
            "partition": 1,
            "offset": 1,
            "timestamp": datetime.fromtimestamp((NOW + 1000) / 1000, UTC),
        }
    ]


def test_columns_can_be_selected(broker: Any, topic: Topic) -> None:
    """Every column of Spark's Kafka connector can be selected."""
    table = read_table("t", bootstrap=broker.bootstrap, columns=COLUMNS.names, start=9)
    assert table.schema == COLUMNS
    first = table.slice(0, 1).to_pylist()[0]
    assert (first["topic"], first["timestampType"]) == ("t", 0)
    assert first["headers"] == [{"key": "n", "value": b"x"}]


def test_empty_range_is_an_empty_table_with_the_same_columns(broker: Any, topic: Topic) -> None:
    """The table of an empty range has columns and types."""
    table = read_table("t", bootstrap=broker.bootstrap, start="latest")
    assert table.num_rows == 0
    assert table.schema == pa.schema([COLUMNS.field(name) for name in DEFAULT_COLUMNS])


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("earliest", "latest", {0: range(20), 1: range(10)}),
        (8, "latest", {0: range(8, 20), 1: range(8, 10)}),
        (0, 3, {0: range(3), 1: range(3)}),
        (-4, "latest", {0: range(16, 20), 1: range(6, 10)}),
        ("earliest", -8, {0: range(12), 1: range(2)}),
        ({0: 18, 1: 0}, {0: 99, 1: 2}, {0: range(18, 20), 1: range(2)}),
        (
            datetime.fromtimestamp(NOW / 1000 + 8.5, UTC),
            "latest",
            {0: range(9, 20), 1: range(9, 10)},
        ),
        ("earliest", datetime.fromtimestamp(NOW / 1000 + 15, UTC), {0: range(15), 1: range(10)}),
        (15, "latest", {0: range(15, 20)}),
    ],
)
def test_positions_select_the_range(
    broker: Any, topic: Topic, start: Any, end: Any, expected: dict[int, range]
) -> None:
    """Positions are names, offsets, counts from the end, times, or offsets by partition, within the
    log.
    """
    actual = _offsets(broker, start=start, end=end)
    assert actual == {partition: list(offsets) for partition, offsets in expected.items()}


def test_partitions_can_be_selected(broker: Any, topic: Topic) -> None:
    """Only the selected partitions are read."""
    assert set(_offsets(broker, partitions=[1])) == {1}
    assert set(_offsets(broker, partitions=[1], start={1: 3})) == {1}


def test_read_committed_ends_before_open_transactions(broker: Any) -> None:
    """The table ends at the last stable offset."""
    topic = Topic("t").serve_from(broker)
    topic.fill(30)
    topic.last_stable = 20
    assert len(_offsets(broker, isolation="read_committed")[0]) == 20
    assert len(_offsets(broker)[0]) == 30


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"columns": ["keys"]}, "no column 'keys'; choose of: key, value"),
        ({"columns": []}, "choose of"),
        ({"partitions": [2]}, "partitions 0 to 1, no 2"),
        ({"start": {0: 1}}, "no offset of partition 1"),
        ({"start": "begin"}, "'begin' is not a position"),
        ({"isolation": "dirty"}, "read_uncommitted, read_committed"),
    ],
)
def test_invalid_arguments_are_rejected(
    broker: Any, topic: Topic, asked: dict[str, Any], message: str
) -> None:
    """The error says what would be right."""
    with pytest.raises(ConfigError, match=message):
        read_table("t", bootstrap=broker.bootstrap, **asked)


def test_a_topic_that_does_not_exist_is_named(broker: Any, topic: Topic) -> None:
    """Reading creates no topic."""
    with pytest.raises(ApiError, match="no topic 'other'"):
        read_table("other", bootstrap=broker.bootstrap)


def test_client_package_exports_it_lazily() -> None:
    """The name `ottla.client.read_table` exists, and unknown names do not."""
    assert ottla.client.read_table is read_table
    with pytest.raises(AttributeError):
        _ = ottla.client.read_tables
