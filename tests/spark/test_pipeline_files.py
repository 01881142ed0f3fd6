"""Pipeline files on a real Spark: each recipe works exactly once, even over a restart."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ottla.base.errors import ConfigError
from ottla.client.admin.offsets import CommittedOffset, commit_offsets, committed_offsets
from ottla.client.arrow_table import read_table
from ottla.client.brokers import Brokers
from ottla.client.config.access import ClusterAccess
from ottla.client.raw.producer import RecordProducer
from ottla.client.serdes.avro import avro_reader
from ottla.operations.mirror.translation import origin_of
from ottla.streams.pipelines import Pipeline, check
from ottla.streams.serdes import Serde, Serdes
from ottla.streams.spark.pipelines import jdbc
from ottla.streams.spark.pipelines.mirror import Mirror
from ottla.streams.spark.pipelines.run import PipelineRun, RunSettings, check_deep, plans, start
from ottla.streams.spark.pipelines.topic_files import ExportSettings, LoadSettings, export, load
from ottla.streams.spark.query.failures import QueryError
from ottla.testing.cluster import Cluster
from ottla.testing.schema_registry import FakeSchemaRegistry
from ottla_scripts import entry

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300), pytest.mark.slow, pytest.mark.alone]


def _pipeline(text: str) -> Pipeline:
    result = check(dedent(text))
    assert result.pipeline is not None, list(map(str, result.problems))
    return result.pipeline


def _create(broker: Cluster, *topics: str, partitions: int = 2) -> None:
    for topic in topics:
        broker.create_topic(topic, partitions=partitions, config={"retention.ms": "-1"})


def _produce(broker: Cluster, topic: str, rows: Mapping[str, Any] | list[Any]) -> None:
    """Write values as JSON; the number of a row selects its partition."""
    pairs = rows.items() if isinstance(rows, Mapping) else ((None, row) for row in rows)
    with RecordProducer(broker.bootstrap) as producer:
        for number, (key, value) in enumerate(pairs):
            encoded = None if key is None else key.encode()
            producer.send(topic, json.dumps(value).encode(), key=encoded, partition=number % 2)


def _run(pipeline: Pipeline, spark: SparkSession, broker: Cluster, checkpoint: Path) -> PipelineRun:
    """Run the pipeline until all existing records are read."""
    settings = RunSettings(broker.bootstrap, str(checkpoint), once=True)
    with start(pipeline, spark, settings) as run:
        assert run.await_termination(timeout_s=120)
    return run


def _flights(numbers: range) -> list[dict[str, Any]]:
    return [
        {
            "number": n,
            "origin": ("JFK", "LGA", "EWR")[n % 3],
            "at": f"2026-01-{n % 5 + 1:02}T10:00:00",
        }
        for n in numbers
    ]


def test_a_topic_is_written_to_files_by_time_once(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """A crash between writing the files and the commit neither duplicates nor loses a row."""
    _create(broker, "files-in")
    pipeline = _pipeline(
        f"""\
        name: lake
        sources:
          flights:
            topic: files-in
            format: json
            schema: number int, origin string, at timestamp
            max_records: 60
        sinks:
          lake:
            from: flights
            files: {tmp_path}/lake
            partition_by_time: {{column: at, by: day}}
        """
    )
    _produce(broker, "files-in", _flights(range(100)))
    run = _run(pipeline, spark, broker, tmp_path / "c")
    assert (run.sinks["lake"].rows, run.sinks["lake"].batches) == (100, 2)
    _forget_last_commit(tmp_path / "c" / "lake")
    _produce(broker, "files-in", _flights(range(100, 150)))
    _run(pipeline, spark, broker, tmp_path / "c")
    rows = spark.read.parquet(str(tmp_path / "lake"))
    assert sorted(row.number for row in rows.select("number").collect()) == list(range(150))
    days = {str(row.day) for row in rows.select("day").distinct().collect()}
    assert days == {f"2026-01-0{n}" for n in range(1, 6)}
    assert (tmp_path / "lake" / "day=2026-01-01").is_dir()


def _forget_last_commit(checkpoint: Path) -> None:
    """Restore a checkpoint as after a crash between writing a batch and committing it."""
    commits = sorted((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    commits[-1].unlink()
    (checkpoint / "commits" / f".{commits[-1].name}.crc").unlink(missing_ok=True)


def test_a_topic_is_aggregated_into_a_topic_once(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """Each result of a window and a static table is written once, when its window has closed."""
    _create(broker, "sql-in", "sql-names", "sql-out")
    pipeline = _pipeline(
        """\
        name: totals
        sources:
          flights:
            topic: sql-in
            format: json
            schema: {number: int, origin: string, at: timestamp}
            watermark: {column: at, delay: 1 hour}
          names: {topic: sql-names, static: true}
        steps:
          named:
            from: flights
            do:
              - where: number >= 3
              - with: {airport: upper(origin)}
          totals:
            sql: |
              SELECT n.value AS airport, date(window.start) AS day, count(*) AS flights
              FROM named JOIN names n ON n._key = airport
              GROUP BY n.value, window(at, '1 day')
        sinks:
          totals: {from: totals, topic: sql-out, key: airport}
        """
    )
    _produce(broker, "sql-names", {"JFK": "Kennedy", "EWR": "Newark"})
    _produce(broker, "sql-in", _flights(range(30)))
    _run(pipeline, spark, broker, tmp_path / "c")
    _forget_last_commit(tmp_path / "c" / "totals")
    later = [{"number": 99, "origin": "JFK", "at": "2026-03-01T00:00:00"}]
    _produce(broker, "sql-in", later)
    _run(pipeline, spark, broker, tmp_path / "c")
    table = read_table("sql-out", bootstrap=broker.bootstrap, isolation="read_committed")
    rows = [(row["key"], json.loads(row["value"])) for row in table.to_pylist()]
    required = [row for row in _flights(range(3, 30)) if row["origin"] != "LGA"]
    assert sum(total["flights"] for _, total in rows) == len(required)
    assert len({(key, total["day"]) for key, total in rows}) == len(rows)
    names = {b'"Kennedy"': '"Kennedy"', b'"Newark"': '"Newark"'}
    assert all(names[key] == total["airport"] for key, total in rows)


@pytest.fixture
def url(spark: SparkSession, tmp_path: Path) -> str:
    """The URL of a Derby database, which is part of Spark; its log is in the temporary folder."""
    jvm: Any = spark._jvm
    jvm.java.lang.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    return f"jdbc:derby:{tmp_path}/db;create=true"


def _rows(spark: SparkSession, url: str, table: str) -> list[Any]:
    return spark.read.format("jdbc").options(url=url, dbtable=table).load().collect()


def test_a_topic_is_written_to_a_table_once(
    spark: SparkSession, broker: Cluster, tmp_path: Path, url: str
) -> None:
    """New totals replace the old ones; a repeated batch changes nothing."""
    _create(broker, "jdbc-in")
    pipeline = _pipeline(
        f"""\
        name: table
        sources:
          flights: {{topic: jdbc-in, format: json, schema: 'number int, origin string'}}
        steps:
          totals: {{sql: 'SELECT origin, count(*) AS flights, max(number) AS last FROM flights GROUP BY origin'}}
        sinks:
          totals: {{from: totals, jdbc: '{url}', table: totals, key: origin, mode: update}}
          latest: {{from: flights, jdbc: '{url}', table: newest, key: origin, latest_by: number}}
        """
    )
    _produce(broker, "jdbc-in", _flights(range(60)))
    _run(pipeline, spark, broker, tmp_path / "c")
    for sink in pipeline.sinks:
        _forget_last_commit(tmp_path / "c" / sink)
    _produce(broker, "jdbc-in", _flights(range(60, 90)))
    _run(pipeline, spark, broker, tmp_path / "c")
    totals = {row.origin: (row.flights, row.last) for row in _rows(spark, url, "totals")}
    assert totals == {"JFK": (30, 87), "LGA": (30, 88), "EWR": (30, 89)}
    assert {row.origin: row.number for row in _rows(spark, url, "newest")} == {
        "JFK": 87,
        "LGA": 88,
        "EWR": 89,
    }


def test_a_batch_that_fails_writes_nothing(
    spark: SparkSession,
    broker: Cluster,
    tmp_path: Path,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows and batch number are one transaction; the error names the sink."""
    _create(broker, "jdbc-torn")
    pipeline = _pipeline(
        f"""\
        name: torn
        sources: {{flights: {{topic: jdbc-torn, format: json, schema: 'number int'}}}}
        sinks: {{all: {{from: flights, jdbc: '{url}', table: everything}}}}
        """
    )
    _produce(broker, "jdbc-torn", _flights(range(10)))
    good = jdbc._Statements.change

    def torn(statements: Any, text: str, values: Any = ()) -> int:
        changed = good(statements, text, values)
        if text.startswith("INSERT INTO everything"):
            raise OSError("the database went away")
        return changed

    with monkeypatch.context() as patch:
        patch.setattr(jdbc._Statements, "change", torn)
        with pytest.raises(QueryError, match="Sink all: OSError: the database went away"):
            _run(pipeline, spark, broker, tmp_path / "c")
    assert _rows(spark, url, "everything") == []
    _run(pipeline, spark, broker, tmp_path / "c")
    assert sorted(row.number for row in _rows(spark, url, "everything")) == list(range(10))


def test_a_topic_is_mirrored_with_its_groups(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """Partitions, keys, headers and timestamps are copied; a group continues at its position."""
    _create(broker, "mirror-in")
    pipeline = _pipeline(
        """\
        name: mirror
        sources: {orders: {topic: mirror-in, format: bytes, max_records: 10}}
        sinks: {copy: {from: orders, mirror: mirror-out, groups: [billing, unused]}}
        """
    )
    _produce(broker, "mirror-in", {f"k{n}": n for n in range(40)})
    with RecordProducer(broker.bootstrap) as producer:
        producer.send(
            "mirror-in", None, key=b"gone", partition=1, headers=[("h", b"x"), ("h", None)]
        )
    with Brokers(broker.bootstrap) as brokers:
        read = {
            ("mirror-in", 0): CommittedOffset(20, -1, ""),
            ("mirror-in", 1): CommittedOffset(7, -1, ""),
        }
        commit_offsets(brokers, "billing", read)
        run = _run(pipeline, spark, broker, tmp_path / "c")
        moved = committed_offsets(brokers, "billing")
    columns = ["partition", "key", "value", "timestamp", "headers"]
    source = read_table("mirror-in", bootstrap=broker.bootstrap, columns=columns)
    target = read_table("mirror-out", bootstrap=broker.bootstrap, columns=[*columns, "offset"])
    assert target.select(columns).to_pylist() == source.to_pylist()
    # Partition 0 was read to its end: nothing is seen again. Of partition 1, less than a
    # micro-batch is.
    offsets = {p: moved["mirror-out", p].offset for p in (0, 1)}
    assert run.sinks["copy"].translated == {"billing": offsets, "unused": {}}
    rest = {
        p: [
            row["key"]
            for row in target.to_pylist()
            if row["partition"] == p and row["offset"] >= offsets[p]
        ]
        for p in (0, 1)
    }
    assert rest[0] == []
    unread = [row["key"] for row in source.to_pylist() if row["partition"] == 1][7:]
    assert rest[1][-len(unread) :] == unread
    assert len(rest[1]) - len(unread) <= 10
    points = read_table("mirror-out.mirror-offsets", bootstrap=broker.bootstrap, columns=["key"])
    origins = {origin_of(row["key"]) for row in points.to_pylist()}
    assert origins == {(broker.cluster_id, "mirror-in")}
    access = ClusterAccess(broker.bootstrap)
    with pytest.raises(ConfigError, match="'mirror-out' is a copy of 'mirror-in'"):
        Mirror("mirror-out", access, "mirror-in", access, "back").prepare()


def test_spark_errors_are_reported_with_their_line(spark: SparkSession) -> None:
    """Syntax, unknown columns and wrong types are reported together, without reading any record."""
    pipeline = _pipeline(
        """\
        name: wrong
        sources:
          flights: {topic: t, format: json, schema: {number: int, origin: string}}
        steps:
          one:
            sql: |
              SELECT origin,
                     nmber FROM flights
          two:
            from: flights
            do:
              - select: [origin, number +]
          three: {sql: SELECT origin flights x y FROM flights}
          four: {from: one, do: [{where: origin}]}
          five:
            from: flights
            do:
              - where: origin > array(1)
        sinks:
          a: {from: one, console: true}
          b: {from: two, console: true}
          c: {from: three, console: true}
          d: {from: four, console: true}
          e: {from: five, console: true}
          f: {from: flights, topic: x, key: orign}
        """
    )
    texts = [str(problem) for problem in check_deep(pipeline, spark, ClusterAccess("127.0.0.1:1"))]
    locations = [line.partition(": ")[0] for line in texts]
    assert locations == [
        "line 8, column 14",
        "line 12, column 34",
        "line 13, column 38",
        "line 18, column 16",
        "line 25, column 37",
    ], texts
    assert "nmber" in texts[0]
    assert "Did you mean" in texts[0]


def test_the_plan_of_a_stream_is_shown(spark: SparkSession) -> None:
    """No broker is needed."""
    pipeline = _pipeline(
        """\
        name: planned
        sources: {rows: {topic: in, format: json, schema: {number: int}}}
        steps: {large: {from: rows, do: [{where: number > 41}]}}
        sinks: {out: {from: large, topic: out}}
        """
    )
    ((name, plan),) = plans(pipeline, spark, ClusterAccess("127.0.0.1:1")).items()
    assert name == "out"
    assert "Filter" in plan
    assert "> 41" in plan


def test_translated_file_connectors_copy_lines_as_they_are(
    spark: SparkSession, broker: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of `connect-standalone` run; blank lines, spaces, quotes and # are kept."""
    _create(broker, "connect-lines", partitions=1)
    lines = ["foo", 'bar "q" , x', "", "  spaces  ", "# hash", "ü"]
    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    # Spark's JVM has started in another folder.
    source = (
        f"name=in\nconnector.class=FileStreamSource\nfile={tmp_path}/in.txt\ntopic=connect-lines\n"
    )
    sink = (
        f"name=out\nconnector.class=FileStreamSink\nfile={tmp_path}/copies\ntopics=connect-lines\n"
    )
    texts = {"worker": f"bootstrap.servers={broker.bootstrap}\n", "in": source, "out": sink}
    for name, text in texts.items():
        Path(f"{name}.properties").write_text(text)
    assert entry.run("connect-standalone", [f"{name}.properties" for name in texts]) == 1
    for name in ("in", "out"):
        _run(_pipeline(Path(f"{name}.yaml").read_text()), spark, broker, tmp_path / "c" / name)
    files = (tmp_path / "copies").glob("part-*")
    assert [line for file in files for line in file.read_text("utf-8").splitlines()] == lines


def test_files_are_read_into_a_topic_and_back(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """CSV with a key, Parquet and ranges of offsets work; keys are partitioned as in Kafka."""
    _create(broker, "load-in", "load-copy", partitions=3)
    rows = "".join(f"k{n % 7},{n},2026-01-02T03:04:05Z\n" for n in range(50))
    (tmp_path / "rows.csv").write_text(f"id,number,at\n{rows}", encoding="utf-8")
    progress: list[tuple[int, int]] = []
    settings = LoadSettings(topic="load-in", format="csv", key="id", timestamp="at")
    count = load(
        spark,
        ClusterAccess(broker.bootstrap),
        [str(tmp_path / "rows.csv")],
        settings,
        _appending(progress),
    )
    table = read_table("load-in", bootstrap=broker.bootstrap).to_pylist()
    assert (count, len(table)) == (50, 50)
    assert json.loads(table[0]["value"]).keys() == {"id", "number", "at"}
    assert {row["timestamp"].isoformat() for row in table} == {"2026-01-02T03:04:05+00:00"}
    starts = {("load-in", p): 0 for p in range(3)}
    ends = {("load-in", p): sum(row["partition"] == p for row in table) for p in range(3)}
    export_settings = ExportSettings(
        topic="load-in", folder=str(tmp_path / "out"), format="parquet",
        starts=starts | {("load-in", 0): min(1, ends["load-in", 0])}, ends=ends, as_bytes=True,
    )  # fmt: skip
    skipped = min(1, ends["load-in", 0])
    assert (
        export(spark, ClusterAccess(broker.bootstrap), export_settings, _appending(progress))
        == 50 - skipped
    )
    back = LoadSettings(topic="load-copy", format="parquet", is_records=True)
    assert (
        load(
            spark,
            ClusterAccess(broker.bootstrap),
            [str(tmp_path / "out")],
            back,
            _appending(progress),
        )
        == 50 - skipped
    )
    copied = read_table("load-copy", bootstrap=broker.bootstrap).to_pylist()
    names = ("key", "value", "partition", "timestamp")

    def told_apart(rows: list[dict[str, Any]]) -> list[Any]:
        return sorted([tuple(row[name] for name in names) for row in rows], key=repr)

    source = [
        row for row in table if row["offset"] >= export_settings.starts["load-in", row["partition"]]
    ]
    assert told_apart(copied) == told_apart(source)
    with RecordProducer(broker.bootstrap) as producer:
        producer.send("load-copy", b"same", key=b"k3")
    last = read_table("load-copy", bootstrap=broker.bootstrap).to_pylist()
    assert len({row["partition"] for row in last if row["key"] == b"k3"}) == 1


def _appending(progress: list[tuple[int, int]]) -> Callable[[int, int], None]:
    return lambda done, total: progress.append((done, total))


def test_load_errors_are_reported(spark: SparkSession, broker: Cluster, tmp_path: Path) -> None:
    """A missing column is reported with the existing ones; JSON values become columns."""
    _create(broker, "load-none", partitions=1)
    (tmp_path / "rows.json").write_text('{"a": 1}\n{"a": 2}\n', encoding="utf-8")
    files = [str(tmp_path / "rows.json")]
    wrong = LoadSettings(topic="load-none", format="json", key="b")
    with pytest.raises(ConfigError, match="The files have no column 'b'; they have: a"):
        load(spark, ClusterAccess(broker.bootstrap), files, wrong, _appending([]))
    missing = LoadSettings(topic="load-none", format="json")
    with pytest.raises(QueryError, match="does not exist"):
        load(
            spark,
            ClusterAccess(broker.bootstrap),
            [str(tmp_path / "nothing.json")],
            missing,
            _appending([]),
        )
    assert load(spark, ClusterAccess(broker.bootstrap), files, missing, _appending([])) == 2
    ranges = {("load-none", 0): 2}
    export_settings = ExportSettings(
        topic="load-none", folder=str(tmp_path / "out"), format="csv",
        starts={("load-none", 0): 0}, ends=ranges, schema="a int",
    )  # fmt: skip
    assert export(spark, ClusterAccess(broker.bootstrap), export_settings, _appending([])) == 2
    lines = sorted(
        line for path in (tmp_path / "out").glob("*.csv") for line in path.read_text().splitlines()
    )
    assert lines[-1].startswith("a,_key,_partition")
    assert [line.split(",")[0] for line in lines[:2]] == ["1", "2"]


_FLIGHT = {
    "type": "record",
    "name": "Flight",
    "fields": [
        {"name": "origin", "type": "string"},
        {"name": "delays", "type": {"type": "array", "items": "int"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}


@pytest.mark.parametrize("schema", ["-1", "origin", "a strin", "a int b int", "é int", "a=b"])
def test_schema_that_is_none_is_an_error(
    spark: SparkSession, broker: Cluster, tmp_path: Path, schema: str
) -> None:
    """The sentence has the text, Spark's reason and an example, for both directions."""
    access = ClusterAccess(broker.bootstrap)
    (tmp_path / "in.json").write_text("{}\n")
    loading = LoadSettings(topic="t", format="json", schema=schema)
    with pytest.raises(ConfigError, match=r"as in 'origin string") as loaded:
        load(spark, access, [str(tmp_path / "in.json")], loading, _appending([]))
    exporting = ExportSettings(
        topic="t", folder=str(tmp_path / "out"), format="json", schema=schema,
        starts={("t", 0): 0}, ends={("t", 0): 1},
    )  # fmt: skip
    with pytest.raises(ConfigError) as exported:
        export(spark, access, exporting, _appending([]))
    assert str(exported.value) == str(loaded.value)
    assert len(str(loaded.value).splitlines()) == 1
    assert repr(schema) in str(loaded.value)


def test_avro_is_read_and_written(spark: SparkSession, broker: Cluster, tmp_path: Path) -> None:
    """Schemas from a registry are compatible with other clients; no registry is needed."""
    _create(broker, "avro-in", "avro-out", "avro-plain")
    moment = datetime(2026, 1, 1, 10, tzinfo=UTC)
    rows = [{"origin": f"A{n}", "delays": [n, 1], "at": moment} for n in range(20)]
    with FakeSchemaRegistry() as registry:
        serde: Serde[Any] = Serdes.avro(_FLIGHT, registry=registry).of("avro-in", is_key=False)
        with RecordProducer(broker.bootstrap) as producer:
            for row in rows:
                producer.send("avro-in", serde.to_bytes(row), key=b"k", partition=0)
            producer.send("avro-in", b"no Avro", key=b"k", partition=0)
        pipeline = _pipeline(
            f"""\
            name: avro
            sources:
              flights:
                topic: avro-in
                format: avro
                registry: {registry.url}
                schema: {{origin: string, delays: array<int>, at: timestamp, other: double}}
                bad_records: skip
            steps:
              sums: {{sql: "SELECT origin, delays[0] + delays[1] AS delay, at, other FROM flights"}}
            sinks:
              out: {{from: sums, topic: avro-out, key: origin, format: avro, registry: '{registry.url}'}}
              plain: {{from: flights, topic: avro-plain, format: avro, avro: '{json.dumps(_FLIGHT)}'}}
            """
        )
        _run(pipeline, spark, broker, tmp_path / "c")
        read = avro_reader(registry)
        records = [read(value) for value in _values(broker, "avro-out")]
    other = {"at": moment, "other": None}
    required = [{"origin": f"A{n}", "delay": n + 1, **other} for n in range(20)]
    assert sorted(records, key=lambda row: row["delay"]) == required
    plain: Serde[Any] = Serdes.avro(_FLIGHT)
    values = [plain.deserialize(value) for value in _values(broker, "avro-plain")]
    assert sorted(values, key=lambda row: row["delays"]) == rows


def _values(broker: Cluster, topic: str) -> list[bytes]:
    table = read_table(topic, bootstrap=broker.bootstrap, isolation="read_committed")
    return [row["value"] for row in table.to_pylist()]
