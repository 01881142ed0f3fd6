"""Steps in the JVM write the same records as the test driver, for any input."""

import hashlib
import os
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ottla.streams import (
    Serdes,
    StreamsBuilder,
    Topology,
    TopologyError,
    TopologyTestDriver,
)
from ottla.streams.expressions.columns import col
from ottla.streams.layout.layout import Application, Layout, lay_out
from ottla.streams.model.packing import pack
from ottla.streams.model.raw import TopicRecord
from ottla.streams.settings.handlers import (
    ExceptionHandlers,
    LogAndContinueExceptionHandler,
    LogAndContinueProcessingExceptionHandler,
    LogAndContinueProductionExceptionHandler,
)
from ottla.streams.spark.catalyst.frame import columns_frame, spark_types
from ottla.streams.spark.catalyst.row_source import ROWS, Finishing, columns_source, plain_bits
from ottla.streams.spark.catalyst.steps import LoweredSource, lower_layout, topic_numbers
from ottla.streams.spark.query.compile import QuerySettings
from ottla.streams.spark.query.failures import QueryError
from ottla.streams.spark.query.query import start
from ottla.streams.spark.stages.shipping import ship
from ottla.streams.spark.stages.topology_source import SourceSettings
from ottla.streams.task.task import TaskSettings
from ottla.testing.cluster import Cluster
from tests.spark import generated, scenarios

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.alone]

_HANDLERS = ExceptionHandlers(
    LogAndContinueExceptionHandler(),
    LogAndContinueProcessingExceptionHandler(),
    LogAndContinueProductionExceptionHandler(),
    "lowered.dead",
)
_SETTINGS = TaskSettings("app", exception_handlers=_HANDLERS)
_SEED = int(os.environ.get("OTTLA_SEED", "1"))
_OTHER_SEED = pytest.mark.nightly(f"[{_SEED}]")
_CHAINS = 8
_RECORDS = 60

Written = dict[str, list[tuple[Any, ...]]]


def _driven(topology: Topology, records: Mapping[str, list[TopicRecord]]) -> Written:
    """Return the test driver's output by source topic, because topics have no common order."""
    by_key: Written = defaultdict(list)
    with TopologyTestDriver(topology, settings=_SETTINGS) as driver:
        for topic, rows in records.items():
            for row in rows:
                driver.pipe(topic, row)
            for name in sorted(driver.produced_topic_names):
                queue = driver.produced(name)
                by_key[name] += [
                    (e.key, e.value, e.timestamp, *_shown_headers(name, e.headers)) for e in queue
                ]
                queue.clear()
    return dict(by_key)


def _shown_headers(topic: str, headers: Iterable[Any]) -> tuple[Any, ...]:
    """Return the headers; a dead letter's headers without the stack trace."""
    return tuple(
        header for header in headers if topic != "lowered.dead" or "stack" not in header[0]
    )


def _rows(lowered: list[LoweredSource], records: Mapping[str, list[TopicRecord]]) -> pa.Table:
    rows = []
    for topic, number in topic_numbers(lowered).items():
        for offset, one in enumerate(records[topic]):
            headers = pack(list(one.headers)) if one.headers else None
            time = one.timestamp * 1000
            rows.append((number, 0, offset, time, one.key, one.value, headers))
    kinds = [pa.int32(), pa.int32(), pa.int64(), pa.timestamp("us", "UTC"), *[pa.binary()] * 3]
    columns = [
        pa.array(each, kind) for each, kind in zip(zip(*rows, strict=True), kinds, strict=True)
    ]
    columns.append(plain_bits(columns[4], columns[5]))
    return pa.table(columns, names=ROWS.fieldNames())


def _layout(topology: Topology, topics: Iterable[str]) -> Layout:
    return lay_out([Application(topology, _SETTINGS)], dict.fromkeys(topics, 1))


def _on_spark(
    spark: SparkSession, topology: Topology, records: Mapping[str, list[TopicRecord]]
) -> tuple[Written, int]:
    """Return the output through the JVM, and the number of records that Python processed."""
    layout = _layout(topology, records)
    lowered = lower_layout(layout, spark_types(spark))
    if lowered is None:
        return _driven(topology, records), -1
    frame = columns_frame(spark.createDataFrame(_rows(lowered, records)).coalesce(1), lowered)
    source_class: Any = columns_source("x", SourceSettings(ship(layout, 1)), lowered)
    sink = source_class({"kafka.bootstrap.servers": "127.0.0.1:1"}).streamWriter(
        frame.schema, False
    )
    table = frame.toArrow()
    finishing = Finishing(sink.opened.settings)
    by_key: Written = defaultdict(list)
    for batch in table.to_batches(max_chunksize=25):
        for row in finishing.finish(batch).to_pylist():
            headers = tuple((e["key"], e["value"]) for e in row["headers"] or ())
            time = round(row["timestamp"].timestamp() * 1000)
            record = row["key"], row["value"], time, *_shown_headers(row["topic"], headers)
            by_key[row["topic"]].append(record)
    return dict(by_key), sum(entry < 0 for entry in table.column("target").to_pylist())


@pytest.mark.parametrize("seed", [_SEED, pytest.param(_SEED + 1, marks=_OTHER_SEED)])
def test_random_expressions_and_records_yield_the_same_output(
    spark: SparkSession, seed: int
) -> None:
    """All steps and serdes are covered, with nulls, extremes, malformed records and errors."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    builder = StreamsBuilder()
    records = {}
    for number in range(_CHAINS):
        name = f"t{number}"
        kinds = generated.add_chain(builder, chance, name)
        records[name] = generated.records(chance, kinds, _RECORDS)
    topology = builder.build()
    expected = _driven(topology, records)
    actual, in_python = _on_spark(spark, topology, records)
    for topic in sorted({*expected, *actual}):
        assert actual.get(topic) == expected.get(topic), topic
    total = _CHAINS * _RECORDS
    print(f"{in_python} of {total} records were Python's")
    assert 0 <= in_python < total * 0.9


_TEXT = Serdes.string()


def test_records_of_a_source_of_two_topics_keep_their_own_topic(spark: SparkSession) -> None:
    """A function sees the topic of a record, and so does a dead letter."""
    builder = StreamsBuilder()
    both = builder.stream(["one", "two"], key=_TEXT, value=_TEXT).filter(col("value") != "x")
    both.to(lambda key, value, context: f"from-{context.topic}", key=_TEXT, value=_TEXT)
    third = builder.stream("three", key=_TEXT, value=_TEXT).map_values(col("value").upper())
    third.to("four", key=_TEXT, value=_TEXT)
    topology = builder.build()
    values = (b"a", b"x", b"\xff", b"b")
    records = {
        topic: [TopicRecord(b"k", value, number) for number, value in enumerate(values)]
        for topic in ("one", "two", "three")
    }
    expected = _driven(topology, records)
    actual, in_python = _on_spark(spark, topology, records)
    assert expected.keys() == {"from-one", "from-two", "four", "lowered.dead"}
    assert actual == expected
    assert in_python == 7


def _create(broker: Cluster, topic: str) -> None:
    """Create a topic that keeps records with old times."""
    broker.create_topic(topic, config={"retention.ms": "-1"})


def _run(
    spark: SparkSession,
    broker: Cluster,
    topology: Topology,
    folder: Path,
    tasks: TaskSettings = _SETTINGS,
    **settings: Any,
) -> str:
    """Process the existing records; return the plan of the last micro-batch."""
    query = start(
        topology,
        spark,
        application_id="lowered",
        bootstrap=broker.bootstrap,
        checkpoint=str(folder),
        task_settings=replace(tasks, writes_changelogs=False),
        query_settings=QuerySettings("", "", **settings),
    )
    with query:
        query.process_all_available()
        # This is the executed plan, not the logical one.
        plan: str = query.queries[0]._jsq.explainInternal(False)
    return plan


def test_a_query_of_expressions_runs_without_python(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """Spark's plan filters and projects in the JVM; the output is the driver's."""
    builder = StreamsBuilder()
    stream = builder.stream("lowered.in", key=_TEXT, value=_TEXT)
    filtered = stream.filter(col("value").length() > 1).map_values(col("value").upper())
    filtered.to("lowered.out", key=_TEXT, value=_TEXT)
    topology = builder.build()
    chance = random.Random(1)
    rows = [
        replaced._replace(key=b"k") for replaced in generated.records(chance, ("text", "text"), 300)
    ]
    for topic in ("lowered.in", "lowered.out", "lowered.dead"):
        _create(broker, topic)
    scenarios.produce(broker.bootstrap, {"lowered.in": rows})
    once = {"processingGuarantee": "exactly_once"}
    plan = _run(spark, broker, topology, tmp_path, sink_options=once)
    nodes = [line for line in plan.splitlines() if "+-" in line]
    assert "Scan" in nodes[-1]
    assert any("Filter" in line for line in nodes)
    for word in ("UDF", "MapIn", "EvalPython", "Pandas"):
        assert word not in "".join(nodes), plan
    expected = _driven(topology, {"lowered.in": [row._replace(headers=()) for row in rows]})
    for topic in ("lowered.out", "lowered.dead"):
        actual = [(e.key, e.value, e.timestamp) for e in scenarios.read(broker.bootstrap, topic)]
        assert actual == [each[:3] for each in expected[topic]], topic
    assert len(expected["lowered.dead"]) > 5


def test_an_unreadable_record_ends_the_query(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """The error is the driver's and names the record."""
    builder = StreamsBuilder()
    filtered = builder.stream("poison.in", key=_TEXT, value=_TEXT).filter(col("value") != "x")
    filtered.to("poison.out", key=_TEXT, value=_TEXT)
    for topic in ("poison.in", "poison.out"):
        _create(broker, topic)
    rows = [TopicRecord(b"k", value, 1_700_000_000_000) for value in (b"a", b"x", b"\xff")]
    scenarios.produce(broker.bootstrap, {"poison.in": rows})
    with pytest.raises(
        QueryError, match=r"the record of poison\.in-0 at offset 2 cannot be read by"
    ):
        _run(spark, broker, builder.build(), tmp_path, tasks=TaskSettings("app"))


def test_pyspark_columns_have_the_same_meaning_in_the_driver(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """They are evaluated for the records that reach their step, and for no others."""
    builder = StreamsBuilder()
    stream = builder.stream("sparks.in", key=_TEXT, value=_TEXT)
    numbers = stream.filter(F.col("value").rlike("^[0-9]+$")).map_values(
        F.col("value").cast("int") * 2
    )
    numbers.select_key(F.md5("key")).to("sparks.out", key=_TEXT, value=Serdes.long())
    topology = builder.build()
    for topic in ("sparks.in", "sparks.out"):
        _create(broker, topic)
    rows = [TopicRecord(b"k", value, 1_700_000_000_000) for value in (b"1", b"x", b"21", None)]
    bad = TopicRecord(b"k", b"\xff", 1_700_000_000_000)
    scenarios.produce(broker.bootstrap, {"sparks.in": [*rows, bad]})
    _run(spark, broker, topology, tmp_path)
    actual = [
        (record.key, record.value) for record in scenarios.read(broker.bootstrap, "sparks.out")
    ]
    key = hashlib.md5(b"k").hexdigest().encode()
    assert actual == [(key, number.to_bytes(8, "big")) for number in (2, 42)]
    expected = _driven(topology, {"sparks.in": rows})["sparks.out"]
    assert [each[:2] for each in expected] == actual


def test_pyspark_columns_run_in_stateful_queries_and_after_functions(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """Python's workers evaluate them without a Spark session; SQL text is one of their forms."""
    builder = StreamsBuilder()
    stream = builder.stream("beside.in", key=_TEXT, value=_TEXT).map_values(str.strip)
    filtered = stream.filter(F.length("value") > 1).select_key(F.expr("left(value, 2)"))
    counts = filtered.group_by_key(key=_TEXT, value=_TEXT).count("beside").to_stream()
    counts.filter(F.col("value") % 2 == 0).map_values(F.concat_ws(":", "key", "value")).to(
        "beside.out", key=_TEXT, value=_TEXT
    )
    topology = builder.build()
    for topic in ("beside.in", "beside.out"):
        _create(broker, topic)
    words = (b"abc", b"x", b" abd", b"b1", b"abe ", b"b1", b"abf")
    rows = {"beside.in": [TopicRecord(b"k", word, 1_700_000_000_000) for word in words]}
    scenarios.produce(broker.bootstrap, rows)
    _run(spark, broker, topology, tmp_path, tasks=TaskSettings("beside"))
    actual = [
        (record.key, record.value) for record in scenarios.read(broker.bootstrap, "beside.out")
    ]
    assert sorted(actual) == [(b"ab", b"ab:2"), (b"ab", b"ab:4"), (b"b1", b"b1:2")]
    expected = _driven(topology, rows)["beside.out"]
    assert [each[:2] for each in expected] == actual


def test_pyspark_columns_unknown_to_python_are_rejected_in_python_steps(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """The error is raised before the start and names the step; the test driver raises it, too."""
    builder = StreamsBuilder()
    stream = builder.stream("refused.in", key=_TEXT, value=_TEXT).map_values(str.upper)
    stream.filter(F.soundex("value") == "A123").to("out", key=_TEXT, value=_TEXT)
    topology = builder.build()
    _create(broker, "refused.in")
    why = r"Ottla does not translate soundex.*it follows a step in Python"
    with pytest.raises(TopologyError, match=why):
        _run(spark, broker, topology, tmp_path)
    row = TopicRecord(b"k", b"v", 1_700_000_000_000)
    with TopologyTestDriver(topology) as driver, pytest.raises(TopologyError, match="soundex"):
        driver.pipe("refused.in", row)
