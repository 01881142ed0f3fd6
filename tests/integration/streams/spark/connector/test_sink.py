"""Tasks of the sink against a real broker, called as by Spark."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from kafka.partitioner.default import murmur2
from pyspark import TaskContext
from pyspark.cloudpickle import dumps, loads

from ottla.base.errors import ConfigError
from ottla.client import brokers as brokers_module
from ottla.client.arrow_table import read_table
from ottla.client.connection import Connection
from ottla.client.errors import NotReachable
from ottla.client.transaction import list_open
from ottla.streams.spark.connector import sink as sink_module
from ottla.streams.spark.connector.sink import Written
from ottla.streams.spark.connector.source import OttlaSource
from ottla.testing.cluster import Cluster
from ottla.wire.records.columnar_arrays import HEADERS_TYPE
from tests.integration.streams.spark.rows import EPOCH, struct


@pytest.fixture
def cluster(ottla_cluster: Cluster) -> Cluster:
    """A cluster with topics `a` and `b`, with three partitions each."""
    for name in ("a", "b"):
        ottla_cluster.create_topic(name, partitions=3)
    return ottla_cluster


def _writer(cluster: Cluster, schema: str, **options: str) -> Any:
    all_options = {"kafka.bootstrap.servers": cluster.bootstrap} | options
    source = OttlaSource({name.lower(): text for name, text in all_options.items()})
    # Spark pickles the writer for the executors.
    return loads(dumps(source.writer(struct(schema), False)))


def _rows(cluster: Cluster, topic: str, *columns: str) -> list[tuple[Any, ...]]:
    table = read_table(topic, bootstrap=cluster.bootstrap, columns=columns)
    return [tuple(row.values()) for row in table.to_pylist()]


def test_rows_are_partitioned_as_in_kafka(cluster: Cluster) -> None:
    """Keys select the partition as in every client; rows of a partition keep their order."""
    keys = [f"key-{number % 17}" for number in range(500)]
    values = [str(number) for number in range(500)]
    batches = [
        pa.record_batch({"key": keys[i : i + 100], "value": values[i : i + 100]})
        for i in range(0, 500, 100)
    ]
    written = _writer(cluster, "key string, value string", topic="a").write(iter(batches))
    assert written == Written(500)
    expected: list[tuple[int, bytes, bytes]] = []
    for partition in range(3):
        for key, value in zip(keys, values, strict=True):
            if (murmur2(key.encode()) & 0x7FFFFFFF) % 3 == partition:
                expected.append((partition, key.encode(), value.encode()))
    assert _rows(cluster, "a", "partition", "key", "value") == expected


def test_the_columns_topic_partition_and_headers_are_used(cluster: Cluster) -> None:
    """A row can select topic and partition; if partition is null, the key decides."""
    headers = pa.array([[{"key": "h", "value": b"1"}], None, []], HEADERS_TYPE)
    rows = pa.record_batch(
        {
            "ignored": [1.0, 2.0, 3.0],
            "topic": ["b", "a", "b"],
            "value": pa.array([b"x", None, b"z"], pa.binary()),
            "key": ["21", "21", None],
            "partition": pa.array([2, None, 0], pa.int32()),
            "headers": headers,
        }
    )
    schema = (
        "ignored double, topic string, value binary, key string, partition int, headers headers"
    )
    assert _writer(cluster, schema).write(iter([rows])) == Written(3)
    by_key = (murmur2(b"21") & 0x7FFFFFFF) % 3
    assert _rows(cluster, "a", "partition", "key", "value", "headers") == [
        (by_key, b"21", None, None)
    ]
    assert _rows(cluster, "b", "partition", "key", "value", "headers") == [
        (0, None, b"z", None),
        (2, b"21", b"x", [{"key": "h", "value": b"1"}]),
    ]


def test_the_option_topic_overrides_the_column(cluster: Cluster) -> None:
    """The precedence is the same as in Spark's connector."""
    rows = pa.record_batch({"topic": ["b"], "value": ["x"]})
    _writer(cluster, "topic string, value string", topic="a").write(iter([rows]))
    assert len(_rows(cluster, "a", "offset")) == 1
    assert _rows(cluster, "b", "offset") == []


def test_times_are_now_or_those_of_the_column(cluster: Cluster) -> None:
    """The column timestamp is written only with includeTimestamp; nulls become the current time."""
    moment = datetime.fromtimestamp(EPOCH / 1000 + 0.25, UTC)
    rows = pa.record_batch(
        {"value": ["x", "y"], "timestamp": pa.array([moment, None], pa.timestamp("us", "UTC"))}
    )
    schema = "value string, timestamp timestamp"
    before = datetime.now(UTC).replace(microsecond=0)
    _writer(cluster, schema, topic="a", includeTimestamp="true").write(iter([rows]))
    first, second = _rows(cluster, "a", "timestamp")
    assert first == (moment,)
    assert before <= second[0] <= datetime.now(UTC)
    _writer(cluster, schema, topic="b").write(iter([rows]))
    assert all(before <= time <= datetime.now(UTC) for (time,) in _rows(cluster, "b", "timestamp"))


def test_rows_without_keys_use_one_partition_at_a_time(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches are fuller, and all partitions are used in turn."""
    monkeypatch.setattr(sink_module, "_GATHER_BYTES", 1)
    batches = [pa.record_batch({"value": ["x"] * 10}) for _ in range(6)]
    assert _writer(cluster, "value string", topic="a").write(iter(batches)) == Written(60)
    partitions = [partition for (partition,) in _rows(cluster, "a", "partition")]
    assert [partitions.count(number) for number in range(3)] == [20, 20, 20]


def test_a_topic_is_created_on_first_use(cluster: Cluster) -> None:
    """Brokers create topics by default, as in Kafka."""
    rows = pa.record_batch({"value": ["x"]})
    _writer(cluster, "value string", topic="new").write(iter([rows]))
    assert _rows(cluster, "new", "value") == [(b"x",)]


def test_writing_no_rows_sends_no_request(cluster: Cluster) -> None:
    """Empty tasks and empty batches complete immediately."""
    empty = pa.record_batch({"value": pa.array([], pa.string())})
    writer = _writer(cluster, "value string", topic="never")
    assert writer.write(iter([])) == Written(0)
    assert writer.write(iter([empty])) == Written(0)


@pytest.mark.parametrize(
    ("schema", "options", "message"),
    [
        ("key string", {"topic": "a"}, "no column value"),
        ("value string", {}, "Set the option topic, or add a column topic"),
        ("value int", {"topic": "a"}, "Column value is int: it must be binary or string"),
        ("value string, partition bigint", {"topic": "a"}, "Column partition is bigint"),
        ("value string, headers string", {"topic": "a"}, "Column headers is string"),
        (
            "value string",
            {"topic": "a", "includeTimestamp": "true"},
            "which the data frame does not have",
        ),
        ("value string", {"topik": "a"}, "There is no option topik. Is topic meant"),
        ("value string", {"topic": "a", "startingOffsets": "latest"}, "not for writing"),
        ("value string", {"topic": "a", "processingGuarantee": "exactly_once"}, "is for streams"),
    ],
)
def test_invalid_columns_and_options_are_rejected_immediately(
    cluster: Cluster, schema: str, options: dict[str, str], message: str
) -> None:
    """The driver validates them before any task runs."""
    with pytest.raises(ConfigError, match=message):
        _writer(cluster, schema, **options)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"topic": ["a", None], "value": ["x", "y"], "partition": [0, 0]}, "topic is null"),
        (
            {"topic": ["a", "b"], "value": ["x", "y"], "partition": [0, 3]},
            "'b' has no partition 3: the last one is 2",
        ),
    ],
)
def test_rows_with_an_invalid_destination_are_an_error(
    cluster: Cluster, columns: dict[str, Any], message: str
) -> None:
    """Topic and partition of each row are checked against the cluster."""
    rows = pa.record_batch({name: pa.array(values) for name, values in columns.items()})
    rows = rows.set_column(2, "partition", rows.column(2).cast(pa.int32()))
    with pytest.raises(ConfigError, match=message):
        _writer(cluster, "topic string, value string, partition int").write(iter([rows]))


def _task(number: int, batch: int) -> TaskContext:
    # The constructor would make it the context of this process, which then cannot start Spark.
    context = object.__new__(TaskContext)
    context._partitionId = number
    context._localProperties = {
        "sql.streaming.queryId": "q",
        "spark.jobGroup.id": "run",
        "streaming.sql.batchId": str(batch),
    }
    return context


def test_a_stream_is_written_exactly_once_on_request(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver commits the tasks' rows; a repeated batch is computed but not written."""
    all_options = {
        "bootstrap": cluster.bootstrap,
        "topic": "a",
        "processingguarantee": "exactly_once",
    }
    for batch in (0, 0, 1):
        writer: Any = OttlaSource(all_options).streamWriter(struct("value string"), False)
        messages = []
        for number in range(3):
            task = _task(number, batch)
            monkeypatch.setattr(TaskContext, "get", lambda task=task: task)
            rows = [pa.record_batch({"value": [f"{batch}-{number}"] * number})] * 2
            received = iter(rows)
            messages.append(loads(dumps(writer)).write(received))
            assert next(received, None) is None
        writer.commit(messages, batch)
        assert isinstance(messages[0], Written)
    lost = [writer.write(iter([pa.record_batch({"value": ["never"]})]))]
    writer.abort([*lost, None], 2)
    with cluster.admin() as brokers:
        assert list_open(brokers, "") == []
    values = sorted(value.decode() for (value,) in _rows(cluster, "a", "value"))
    expected = [f"{batch}-{number}" for batch in (0, 1) for number in (1, 1, 2, 2, 2, 2)]
    assert [value for value in values if value != "never"] == expected


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once"])
def test_a_stream_waits_for_a_broker_that_restarts(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, guarantee: str
) -> None:
    """Tasks and the commit in the driver retry while the broker is down."""
    all_options = {"bootstrap": cluster.bootstrap, "topic": "a", "processingguarantee": guarantee}
    writer: Any = OttlaSource(all_options).streamWriter(struct("value string"), False)
    monkeypatch.setattr(TaskContext, "get", lambda: _task(0, 0))
    monkeypatch.setattr(brokers_module, "Connection", _down(times=3))
    message = writer.write(iter([pa.record_batch({"value": ["x"]})]))
    monkeypatch.setattr(brokers_module, "Connection", _down(times=3))
    writer.commit([message], 0)
    monkeypatch.setattr(brokers_module, "Connection", Connection)
    assert _rows(cluster, "a", "value") == [(b"x",)]


def _down(times: int) -> Any:
    refusals = iter(range(times))

    def connect(*words: Any, **named: Any) -> Connection:
        if next(refusals, None) is not None:
            raise NotReachable("nothing listens")
        return Connection(*words, **named)

    return connect


def test_topics_are_never_overwritten(cluster: Cluster) -> None:
    """The mode `overwrite` is rejected."""
    source = OttlaSource({"bootstrap": cluster.bootstrap, "topic": "a"})
    with pytest.raises(ConfigError, match="append"):
        source.writer(struct("value string"), True)
