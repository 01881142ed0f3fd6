"""The readers and writers of the matrix that run on Spark.

A start of a query takes longer than a topic: each reads or writes all topics of the corpus at once.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.dataset
from pyspark.sql import DataFrame, SparkSession

from ottla.client.config.access import ClusterAccess
from ottla.client.serdes.registry import Schema
from ottla.streams.pipelines import Pipeline, check
from ottla.streams.pipelines.problems import Problems
from ottla.streams.spark.pipelines.frames import Frames
from ottla.streams.spark.pipelines.run import RunSettings, start
from ottla.testing import Cluster
from ottla.testing.schema_registry import FakeSchemaRegistry
from tests.corpus.judges import Reading, read_with_librdkafka
from tests.corpus.setting import PARTITIONS
from tests.corpus.table import TOPICS
from tests.spark.test_local_files import java

Oracle = Mapping[str, Sequence[Reading]]
Rows = list[tuple[Any, ...]]
Cells = Mapping[str, tuple[Rows, Rows]]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGE = {"max.message.bytes": "30000000", "message.timestamp.after.max.ms": str(2**63 - 1)}
_MIRRORED = ("corpus-values", "corpus-transactions", "corpus-compacted")
_SINKS = """
name: corpus
sources:
  records: {topics: [TOPICS], format: bytes, headers: true}
steps:
  record:
    sql: >
      SELECT _key AS key, value, _headers AS headers, _timestamp AS timestamp,
      CAST(array_position(array(QUOTED), _topic) - 1 AS INT) AS partition FROM records
  columns:
    sql: >
      SELECT _topic AS topic, _partition AS part, _offset AS place, _timestamp AS time,
      _key AS id, value FROM records
sinks:
  topic: {from: record, topic: spark-topic, format: record, compression: zstd}
  files: {from: records, files: FOLDER/files, format: parquet}
  jdbc: {from: columns, jdbc: 'jdbc:derby:FOLDER/db;create=true', table: records}
"""
_MIRRORS = """
name: corpus-mirrors
sources:
SOURCES
sinks:
SINKS
"""


def _pipeline(text: str) -> Pipeline:
    result = check(text)
    assert result.pipeline is not None, list(map(str, result.problems))
    return result.pipeline


def _ms(time: datetime | None) -> int:
    assert time is not None
    at = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (at - _EPOCH) // timedelta(milliseconds=1)


def _headers(listed: Sequence[Mapping[str, Any]] | None) -> tuple[tuple[str, bytes | None], ...]:
    return tuple((header["key"], header["value"]) for header in listed or ())


def _by_topic(frame: DataFrame, form: Callable[[Mapping[str, Any]], Reading]) -> dict[str, Rows]:
    table = frame.toArrow().to_pylist()
    results: dict[str, Rows] = defaultdict(list)
    for row in table:
        results[row.get("topic") or row["_topic"]].append(form(row))
    return {topic: sorted(rows, key=_place) for topic, rows in results.items()}


def _place(row: Any) -> tuple[int, int]:
    return row.partition, row.offset


def spark_source(spark: SparkSession, cluster: Cluster, oracle: Oracle) -> Cells:
    """Read with `format("ottla")`."""
    found = _by_topic(_records(spark, cluster), _of_record)
    return {topic: (found.get(topic, []), list(oracle[topic])) for topic in TOPICS}


def _records(spark: SparkSession, cluster: Cluster) -> DataFrame:
    options = {
        "kafka.bootstrap.servers": cluster.bootstrap,
        "subscribe": ",".join(TOPICS),
        "includeHeaders": "true",
        "kafka.isolation.level": "read_committed",
    }
    return spark.read.format("ottla").options(**options).load()


def _of_record(row: Mapping[str, Any]) -> Reading:
    return Reading(
        row["partition"],
        row["offset"],
        _ms(row["timestamp"]),
        row["key"],
        row["value"],
        _headers(row["headers"]),
    )


def _of_pipeline(row: Mapping[str, Any]) -> Reading:
    own = {name.removeprefix("_"): value for name, value in row.items() if name != "headers"}
    return _of_record({"value": None, **own})


def _frame(spark: SparkSession, cluster: Cluster, options: str) -> DataFrame:
    text = (
        f"name: corpus\nsources:\n  read: {{topics: [{', '.join(TOPICS)}], "
        f"headers: true, bad_records: skip, {options}}}\nsinks:\n  out: {{from: read, files: x}}\n"
    )
    pipeline, problems = _pipeline(text), Problems()
    # A batch has the same columns as a stream, without the start of one.
    source = replace(pipeline.sources["read"], is_static=True)
    pipeline = replace(pipeline, sources={"read": source})
    access = ClusterAccess(cluster.bootstrap)
    frame = Frames(spark, pipeline, access, problems).get("read")
    assert frame is not None, list(map(str, problems.in_order))
    return frame


def pipeline_bytes(spark: SparkSession, cluster: Cluster, oracle: Oracle) -> Cells:
    """Read with a source of a pipeline, without decoding."""
    found = _by_topic(_frame(spark, cluster, "format: bytes"), _of_pipeline)
    return {topic: (found.get(topic, []), list(oracle[topic])) for topic in TOPICS}


def pipeline_string(spark: SparkSession, cluster: Cluster, oracle: Oracle) -> Cells:
    """Read as text; a value that is none is a bad record."""
    found = _by_topic(_frame(spark, cluster, "format: string"), _of_pipeline)

    def texts(row: Reading) -> Reading:
        key, value = (
            None if b is None else b.decode(errors="replace") for b in (row.key, row.value)
        )
        return replace(row, key=key, value=value)

    return {
        topic: (found.get(topic, []), [texts(row) for row in oracle[topic] if _is_text(row.value)])
        for topic in TOPICS
    }


def _is_text(data: bytes | None) -> bool:
    try:
        return data is None or data.decode() is not None
    except UnicodeDecodeError:
        return False


def pipeline_json(spark: SparkSession, cluster: Cluster, oracle: Oracle) -> Cells:
    """Read one field; a value that is no object with it is a bad record."""
    frame = _frame(spark, cluster, "format: json, schema: n bigint")
    found = {
        topic: [(row.partition, row.offset, row.value) for row in rows]
        for topic, rows in _by_topic(frame.withColumnRenamed("n", "value"), _of_pipeline).items()
    }
    return {
        topic: (
            found.get(topic, []),
            [(*_place(row), _number(row.value)) for row in oracle[topic] if _fits(row.value)],
        )
        for topic in TOPICS
    }


def _fits(value: bytes | None) -> bool:
    """Return True for a tombstone, and for an object of JSON whose field n is a whole number."""
    if value is None:
        return True
    try:
        document = json.loads(value.decode(), parse_constant=_refused)
    except (RecursionError, ValueError):
        return False
    number = document.get("n") if isinstance(document, dict) else ""
    return number is None or (isinstance(number, int) and -(2**63) <= number < 2**63)


def _refused(name: str) -> None:
    raise ValueError(name)


def _number(value: bytes | None) -> int | None:
    return None if value is None else json.loads(value).get("n")


def pipeline_avro(spark: SparkSession, cluster: Cluster, oracle: Oracle) -> Cells:
    """Read the records of one schema of a registry; all others are bad records."""
    city = [{"name": "id", "type": "long"}, {"name": "city", "type": "string"}]
    schema = {"type": "record", "name": "City", "fields": city}
    with FakeSchemaRegistry() as registry:
        for number in range(1, 6):
            registry.register(f"other-{number}", Schema(f'{{"title": "{number}"}}', "JSON"))
        assert registry.register("city", Schema(json.dumps(schema))) == 6
        options = f"format: avro, registry: '{registry.url}', schema: 'id bigint, city string'"
        table = _frame(spark, cluster, options).toArrow().to_pylist()
    found: dict[str, Rows] = defaultdict(list)
    for row in table:
        place = row["_partition"], row["_offset"], row["id"], row["city"]
        found[row["_topic"]].append(place)

    def expected(row: Reading) -> tuple[Any, ...]:
        return (*_place(row), *((None, None) if row.value is None else (7, "Praha")))

    framed = b"\x00\x00\x00\x00\x06\x0e\x0aPraha"
    return {
        topic: (
            sorted(found[topic]),
            [expected(row) for row in oracle[topic] if row.value in (None, framed)],
        )
        for topic in TOPICS
    }


READS: Mapping[str, Callable[[SparkSession, Cluster, Oracle], Cells]] = {
    "Spark source": spark_source,
    "pipeline source, format: bytes": pipeline_bytes,
    "pipeline source, format: string": pipeline_string,
    "pipeline source, format: json": pipeline_json,
    "pipeline source, format: avro": pipeline_avro,
}


def spark_sink(spark: SparkSession, cluster: Cluster, oracle: Oracle) -> Cells:
    """Write the records of each topic to a partition with `format("ottla")`."""
    cluster.create_topic("spark-sink", partitions=len(TOPICS), config=_LARGE)
    names = ", ".join(f"'{topic}'" for topic in TOPICS)
    partition = f"CAST(array_position(array({names}), topic) - 1 AS INT) AS partition"
    records = _records(spark, cluster)
    records = records.selectExpr("key", "value", "headers", "timestamp", partition)
    options = {
        "kafka.bootstrap.servers": cluster.bootstrap,
        "topic": "spark-sink",
        "includeTimestamp": "true",
        "kafka.compression.type": "zstd",
    }
    records.write.format("ottla").options(**options).mode("append").save()
    return _written(cluster, "spark-sink", oracle)


def _written(cluster: Cluster, target: str, oracle: Oracle) -> Cells:
    """Return the records of each partition of a topic, and those of the topic of its number."""
    found: dict[int, Rows] = defaultdict(list)
    for row in read_with_librdkafka(cluster.bootstrap, target, range(len(TOPICS))):
        found[row.partition].append(_content(row))
    return {
        topic: (_in_order(topic, found[number]), _in_order(topic, map(_content, oracle[topic])))
        for number, topic in enumerate(TOPICS)
    }


def _content(row: Reading) -> tuple[Any, ...]:
    return row.timestamp, row.key, row.value, row.headers


def _in_order(topic: str, rows: Any) -> Rows:
    """Return the rows; those of several partitions may come in any order."""
    return sorted(rows, key=repr) if topic in PARTITIONS else list(rows)


class PipelineSinks:
    """The targets of a pipeline that writes the corpus to a topic, to files and to a table."""

    def __init__(self, spark: SparkSession, cluster: Cluster, folder: Path) -> None:
        self._spark, self._cluster, self._folder = spark, cluster, folder
        # Derby would write its log into the current folder.
        java(spark).java.lang.System.setProperty(
            "derby.stream.error.file", str(folder / "derby.log")
        )
        cluster.create_topic("spark-topic", partitions=len(TOPICS), config=_LARGE)
        text = _SINKS.replace("TOPICS", ", ".join(TOPICS)).replace("FOLDER", str(folder))
        text = text.replace("QUOTED", ", ".join(f"'{topic}'" for topic in TOPICS))
        run(_pipeline(text), spark, cluster, folder / "checkpoint")

    def topic(self, oracle: Oracle) -> Cells:
        """Return the records of the topic."""
        return _written(self._cluster, "spark-topic", oracle)

    def files(self, oracle: Oracle) -> Cells:
        """Return the rows of the files, which pyarrow reads."""
        files = pyarrow.dataset.dataset(sorted((self._folder / "files").glob("*.parquet")))
        found: dict[str, Rows] = defaultdict(list)
        for row in files.to_table().to_pylist():
            found[row["_topic"]].append(_of_pipeline(row))
        return {topic: (sorted(found[topic], key=_place), list(oracle[topic])) for topic in TOPICS}

    def jdbc(self, oracle: Oracle) -> Cells:
        """Return the rows of the table."""
        url = f"jdbc:derby:{self._folder}/db"
        table = self._spark.read.format("jdbc").options(url=url, dbtable="records").load()
        found: dict[str, Rows] = defaultdict(list)
        for row in table.toArrow().to_pylist():
            known = {name.lower(): value for name, value in row.items()}
            names = ("part", "place", "time", "id", "value")
            part, place, time, key, value = (known[name] for name in names)
            found[known["topic"]].append((part, place, _ms(time), key, value))
        return {
            topic: (
                sorted(found[topic]),
                [(*_place(row), row.timestamp, row.key, row.value) for row in oracle[topic]],
            )
            for topic in TOPICS
        }

    def mirror(self, oracle: Oracle) -> Cells:
        """Mirror some of the topics, and return the records of the copies."""
        for topic in _MIRRORED:
            partitions = PARTITIONS.get(topic, 1)
            self._cluster.create_topic(f"{topic}-mirror", partitions=partitions, config=_LARGE)
        lines = [f"  s{n}: {{topic: {topic}}}" for n, topic in enumerate(_MIRRORED)]
        sinks = [
            f"  m{n}: {{from: s{n}, mirror: {topic}-mirror}}" for n, topic in enumerate(_MIRRORED)
        ]
        text = _MIRRORS.replace("SOURCES", "\n".join(lines)).replace("SINKS", "\n".join(sinks))
        run(_pipeline(text), self._spark, self._cluster, self._folder / "mirrors")
        bootstrap = self._cluster.bootstrap
        return {
            topic: (
                [(row.partition, *_content(row)) for row in _copy(bootstrap, topic)],
                [(row.partition, *_content(row)) for row in oracle[topic]],
            )
            for topic in _MIRRORED
        }


def _copy(bootstrap: str, topic: str) -> list[Reading]:
    """Return the records of a topic's mirror, in the order of its partitions."""
    return read_with_librdkafka(bootstrap, f"{topic}-mirror", range(PARTITIONS.get(topic, 1)))


def run(pipeline: Pipeline, spark: SparkSession, cluster: Cluster, checkpoint: Path) -> None:
    """Run a pipeline until all existing records are read."""
    settings = RunSettings(cluster.bootstrap, str(checkpoint), once=True)
    with start(pipeline, spark, settings) as running:
        assert running.await_termination(timeout_s=240)
