"""Values of a pipeline's sources that cannot be read, tombstones, and where a source starts."""

import json
import re
import time
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ottla.client.arrow_table import read_table
from ottla.client.raw.producer import RecordProducer
from ottla.streams.pipelines import Pipeline, check
from ottla.streams.spark.pipelines.run import PipelineRun, RunSettings, start
from ottla.streams.spark.query.failures import QueryError
from ottla.testing.cluster import Cluster
from ottla.tools.pipeline.reporting import sink_statuses

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600), pytest.mark.slow, pytest.mark.alone]

_PIPELINE = """\
    name: bad
    sources: {rows: {topic: bad-in, format: json, schema: {number: int}, OPTIONS}}
    sinks: {out: {from: rows, topic: TARGET, key: _offset}}
    """
_FIRST_MS = 1_700_000_000_000
_VALUES = (
    b'{"number": 1}',
    b"no\njson",
    None,
    b"",
    b'{"number": "2"}',
    b"\xff",
    b'{"number": 3}',
)


@pytest.fixture(scope="module", name="filled")
def _filled(broker: Cluster) -> Cluster:
    """Return the broker, with values of all kinds, one a second, in the topic bad-in."""
    broker.create_topic("bad-in", partitions=1, config={"retention.ms": "-1"})
    with RecordProducer(broker.bootstrap) as producer:
        for number, value in enumerate(_VALUES):
            producer.send(
                "bad-in",
                value,
                key=b"k%d" % number,
                partition=0,
                timestamp=_FIRST_MS + 1000 * number,
                headers=[("own", b"h")],
            )
    return broker


def _pipeline(target: str, options: str) -> Pipeline:
    text = _PIPELINE.replace("OPTIONS", options).replace("TARGET", target)
    result = check(dedent(text))
    assert result.pipeline is not None, list(map(str, result.problems))
    return result.pipeline


def _run(
    target: str, options: str, spark: SparkSession, broker: Cluster, path: Path
) -> PipelineRun:
    """Run a pipeline with these options of its source to the end of its topic."""
    broker.create_topic(target, partitions=1)
    text = _PIPELINE.replace("OPTIONS", options).replace("TARGET", target)
    return _start(text, target, spark, broker, path)


def _start(text: str, target: str, spark: SparkSession, broker: Cluster, path: Path) -> PipelineRun:
    """Run a pipeline to the end of its topics; its checkpoint is in a folder of the target's name."""
    result = check(dedent(text))
    assert result.pipeline is not None, list(map(str, result.problems))
    settings = RunSettings(broker.bootstrap, str(path / target), once=True)
    with start(result.pipeline, spark, settings) as run:
        assert run.await_termination(timeout_s=500)
    return run


def _records(broker: Cluster, topic: str) -> list[dict[str, Any]]:
    columns, isolation = ("key", "value", "timestamp", "headers"), "read_committed"
    settings = {"bootstrap": broker.bootstrap, "isolation": isolation, "columns": columns}
    return read_table(topic, **settings).to_pylist()


def _numbers(broker: Cluster, topic: str) -> dict[str, Any]:
    """Return the numbers of the rows by the offsets of their records."""
    rows = _records(broker, topic)
    return {row["key"].decode(): json.loads(row["value"]).get("number") for row in rows}


def test_a_bad_record_ends_the_query_with_one_sentence(
    spark: SparkSession, filled: Cluster, tmp_path: Path
) -> None:
    """It names topic, partition, offset, reason and value, and the options."""
    with pytest.raises(QueryError) as failed:
        _run("bad-fail", "tombstones: skip", spark, filled, tmp_path)
    assert str(failed.value) == (
        "Sink out: source rows: the value of bad-in-0 at offset 1 cannot be read: it is not JSON of "
        "the schema: no json; correct the schema, or set bad_records: skip, or a topic for them."
    )
    with pytest.raises(QueryError, match=r"offset 2 cannot .*: it has no value \(a tombstone\);"):
        _run("bad-stones", "bad_records: skip, tombstones: fail", spark, filled, tmp_path)


def test_a_bad_value_is_shortened_and_shown_as_bytes_if_it_is_no_text(
    spark: SparkSession, filled: Cluster, tmp_path: Path
) -> None:
    """The sentence has one line, and says how long the value is."""
    filled.create_topic("bad-long", partitions=1)
    with RecordProducer(filled.bootstrap) as producer:
        producer.send("bad-long", b"x" * 5000, partition=0)
    for number, options, shown in (
        (0, "start: {bad-in: {0: 5}}", ": 0xFF; correct the schema"),
        (1, "start: earliest", f": {'x' * 200}… (5000 bytes); correct the schema"),
    ):
        text = _PIPELINE if number == 0 else _PIPELINE.replace("bad-in", "bad-long")
        text = text.replace("OPTIONS", options).replace("TARGET", f"bad-shown-{number}")
        with pytest.raises(QueryError, match=re.escape(shown)):
            _start(text, f"bad-shown-{number}", spark, filled, tmp_path)


def test_an_error_of_an_expression_names_the_records_of_its_batch(
    spark: SparkSession, filled: Cluster, tmp_path: Path
) -> None:
    """Spark's error has the value; the partition and its offsets are those of the batch."""
    filled.create_topic("cast-in", partitions=1)
    text = """\
        name: cast
        sources: {rows: {topic: cast-in}}
        steps: {numbers: {sql: "SELECT CAST(value AS INT) AS number, _offset FROM rows"}}
        sinks: {out: {from: numbers, topic: cast-out, key: _offset}}
        """
    with RecordProducer(filled.bootstrap) as producer:
        producer.send("cast-in", b"1", partition=0)
        producer.flush()
        _start(text, "cast-out", spark, filled, tmp_path)
        producer.send("cast-in", b"2", partition=0)
        producer.send("cast-in", b"three", partition=0)
    with pytest.raises(QueryError) as failed:
        _start(text, "cast-out", spark, filled, tmp_path)
    assert "'three'" in str(failed.value)
    assert str(failed.value).endswith("The batch has the records of cast-in-0 from offset 1 to 2.")


def test_bad_records_are_counted_and_left_out(
    spark: SparkSession, filled: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A tombstone is a row of NULLs by default; an empty value is bad."""
    run = _run("bad-skip", "bad_records: skip", spark, filled, tmp_path)
    assert _numbers(filled, "bad-skip") == {"0": 1, "2": None, "6": 3}
    assert run.sinks["out"].bad_records == 4
    (status,) = sink_statuses(_pipeline("bad-skip", "bad_records: skip"), run.sinks)
    assert (status.records, status.skipped, status.dead_letters, status.lag) == (7, 4, 0, 0)
    assert abs(status.batch_ended_ms / 1000 - time.time()) < 120
    assert "sink out: left out 4 bad records of rows" in caplog.text


def test_bad_records_go_to_a_topic(spark: SparkSession, filled: Cluster, tmp_path: Path) -> None:
    """They keep key, bytes, time and headers, and have headers for the reason and the position."""
    # The records keep their times, which are older than the default retention.
    filled.create_topic("bad-letters", partitions=1, config={"retention.ms": "-1"})
    options = "bad_records: {topic: bad-letters}, tombstones: skip, start: {bad-in: {0: 1}}"
    run = _run("bad-rest", options, spark, filled, tmp_path)
    counts = {row.sink: row for row in sink_statuses(_pipeline("bad-rest", options), run.sinks)}
    assert (counts["out"].skipped, counts["out"].dead_letters) == (0, 4)
    assert _numbers(filled, "bad-rest") == {"6": 3}
    letters = _records(filled, "bad-letters")
    assert [letter["value"] for letter in letters] == [_VALUES[n] for n in (1, 3, 4, 5)]
    assert [letter["key"] for letter in letters] == [b"k1", b"k3", b"k4", b"k5"]
    assert letters[1]["timestamp"].timestamp() * 1000 == _FIRST_MS + 3000
    assert [(header["key"], header["value"]) for header in letters[1]["headers"]] == [
        ("own", b"h"),
        ("__streams.errors.message", b"it is empty"),
        ("__streams.errors.topic", b"bad-in"),
        ("__streams.errors.partition", b"0"),
        ("__streams.errors.offset", b"3"),
    ]


def test_a_source_starts_at_a_time(spark: SparkSession, filled: Cluster, tmp_path: Path) -> None:
    """`start: @time` reads from the first record at or after the time."""
    _run("bad-time", f"bad_records: skip, start: '@{_FIRST_MS + 2000}'", spark, filled, tmp_path)
    assert _numbers(filled, "bad-time") == {"2": None, "6": 3}
