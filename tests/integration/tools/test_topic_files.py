"""`ottla topic export` and `ottla topic load` in the process, judged by pyarrow, DuckDB and a plain
consumer.
"""

import gzip
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin import configs
from ottla.client.admin.configs import Resource, ResourceType
from ottla.client.raw.producer import RecordProducer
from ottla.testing import Cluster
from ottla.tools.files import limits
from tests.corpus.judges import Reading, read_with_librdkafka
from tests.integration.tools.conftest import Run

pytestmark = pytest.mark.slow

# Case 19: texts that careless CSV changes.
_TEXTS = [
    b"a\nb",
    b'q"u"o',
    b"  blanks  ",
    b"",
    None,
    b"\r\n",
    b"a,b",
    b"\\",
    b"\xc3\xbc\0",
    b"NULL",
]


@pytest.fixture(name="cluster", scope="module")
def _cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running


@pytest.fixture(name="ottla")
def _ottla(run_alone: Run, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("OTTLA_BOOTSTRAP", cluster.bootstrap)
    return run_alone


def _read(cluster: Cluster, topic: str, partitions: int = 1) -> list[Reading]:
    return read_with_librdkafka(cluster.bootstrap, topic, range(partitions))


def _values(cluster: Cluster, topic: str) -> list[Any]:
    return [row.value for row in _read(cluster, topic)]


def _written(cluster: Cluster, topic: str, partitions: int = 1) -> list[Reading]:
    cluster.create_topic(topic, partitions=partitions)
    with RecordProducer(cluster.bootstrap) as producer:
        for number, text in enumerate(_TEXTS):
            headers = [("h", b"\xff"), ("h", None)] if number == 1 else []
            partition = number % partitions
            producer.send(topic, text, key=_TEXTS[-number], partition=partition, headers=headers)
    return _read(cluster, topic, partitions)


@pytest.mark.parametrize("file_format", ["csv", "json", "parquet"])
def test_files_of_an_export_restore_the_records(
    ottla: Run, cluster: Cluster, tmp_path: Path, file_format: str
) -> None:
    """Partition, key, value and timestamp; headers, too, if the format has them."""
    rows = _written(cluster, f"out-{file_format}", 2)
    cluster.create_topic(f"in-{file_format}", partitions=2)
    folder = str(tmp_path / "out")
    done = ottla("topic", "export", f"out-{file_format}", folder, "--format", file_format)
    assert done.code == 0, done.errors
    assert ("the headers of 1 record are left out" in done.errors) is (file_format == "csv")
    loaded = ottla(
        "topic", "load", f"in-{file_format}", folder, "--format", file_format, "--records",
        "--output", "json",
    )  # fmt: skip
    result = {"topic": f"in-{file_format}", "records": len(_TEXTS), "refused": 0}
    assert (loaded.json, loaded.errors) == (result, "")
    back = _read(cluster, f"in-{file_format}", 2)
    if file_format == "csv":
        rows, back = _without_headers(rows), _without_headers(back)
    assert back == rows


def _without_headers(rows: list[Reading]) -> list[Any]:
    return [(row.partition, row.offset, row.timestamp, row.key, row.value) for row in rows]


def test_other_programs_read_exported_files(ottla: Run, cluster: Cluster, tmp_path: Path) -> None:
    """DuckDB reads the same texts from CSV, JSON lines and Parquet, and pyarrow the same columns."""
    _written(cluster, "judged")
    expected = [(n, None if text is None else text.decode()) for n, text in enumerate(_TEXTS)]
    for name in ("csv", "json", "parquet"):
        assert ottla("topic", "export", "judged", str(tmp_path / name), "--format", name).code == 0
    readers = {
        "csv": "read_csv('{}/csv/*.csv', delim=',', header=true, quote='\"', escape='\"', allow_quoted_nulls=false)",
        "json": "read_json('{}/json/*.json', format='newline_delimited')",
        "parquet": "read_parquet('{}/parquet/*.parquet')",
    }
    with duckdb.connect() as connection:
        for table in readers.values():
            statement = f'SELECT "offset", value FROM {table.format(tmp_path)} ORDER BY 1'
            assert connection.execute(statement).fetchall() == expected
    table = pq.read_table(tmp_path / "parquet")
    names = ["key", "value", "partition", "offset", "timestamp", "headers"]
    assert table.column_names == names
    assert table.schema.field("timestamp").type == pa.timestamp("us", tz="UTC")


def test_bytes_that_are_no_text_need_an_option(
    ottla: Run, cluster: Cluster, tmp_path: Path
) -> None:
    """The error names record and option; no file is left; --bytes restores them in each format."""
    cluster.create_topic("binary")
    with RecordProducer(cluster.bootstrap) as producer:
        for value in (b"text", b"\xff\xfe\0"):
            producer.send("binary", value, key=b"\x00\xff", partition=0)
    rows = _read(cluster, "binary")
    for name in ("csv", "json", "parquet"):
        folder = str(tmp_path / name)
        refused = ottla("topic", "export", "binary", folder, "--format", name)
        assert refused.code == 1
        assert "partition 0, offset 0: the key is not UTF-8" in refused.errors
        assert "add --bytes" in refused.errors
        assert list((tmp_path / name).iterdir()) == []
        assert ottla("topic", "export", "binary", folder, "--format", name, "--bytes").code == 0
        cluster.create_topic(f"binary-{name}")
        words = ("topic", "load", f"binary-{name}", folder, "--format", name, "--records")
        assert ottla(*words).code == 0
        assert _read(cluster, f"binary-{name}") == rows


def test_only_committed_records_up_to_a_time_are_exported(
    ottla: Run, cluster: Cluster, tmp_path: Path
) -> None:
    """An upper bound of time looks at each record's time, not at offsets."""
    cluster.create_topic("times", config={"retention.ms": "-1"})
    with RecordProducer(cluster.bootstrap) as producer:
        for at in (1000, 2000, 600_000, 3000, 4000):
            producer.send("times", b"%d" % at, partition=0, timestamp=at)
    words = (
        "topic",
        "export",
        "times",
        str(tmp_path / "x"),
        "--format",
        "json",
        "--to",
        "@1970-01-01T00:01:00Z",
    )
    assert ottla(*words, "--output", "json").json["records"] == 4
    lines = (tmp_path / "x" / "part-00000.json").read_text().splitlines()
    assert [json.loads(line)["value"] for line in lines] == ["1000", "2000", "3000", "4000"]


def test_values_become_columns_of_a_schema(ottla: Run, cluster: Cluster, tmp_path: Path) -> None:
    """Values that do not fit are empty columns, and the first one is reported."""
    cluster.create_topic("typed")
    values = [
        b'{"n": 1, "d": 1.50, "at": "2026-01-01T00:00:00Z", "p": 1.25, "b": true}',
        b'{"n": "x"}', b"no JSON", b"{}", None,
    ]  # fmt: skip
    with RecordProducer(cluster.bootstrap) as producer:
        for value in values:
            producer.send("typed", value, partition=0)
    schema = "n int, d double, at timestamp, p decimal(4,2), b boolean"
    for name in ("parquet", "csv", "json"):
        words = ("topic", "export", "typed", str(tmp_path / name), "--schema", schema)
        done = ottla(*words, "--format", name)
        assert done.code == 0, done.errors
        assert "3 values did not fit --schema and became empty columns" in done.errors
        assert "offset 1: column 'n': \"x\" is not of type int" in done.errors
    rows = pq.read_table(tmp_path / "parquet").to_pylist()
    assert [row["n"] for row in rows] == [1, None, None, None, None]
    assert (rows[0]["d"], str(rows[0]["p"]), rows[0]["b"]) == (1.5, "1.25", True)
    assert rows[0]["at"].isoformat() == "2026-01-01T00:00:00+00:00"
    assert list(rows[0])[5:] == ["_key", "_partition", "_offset", "_timestamp"]


def test_the_folder_is_replaced_only_by_a_whole_export(
    ottla: Run, cluster: Cluster, tmp_path: Path
) -> None:
    """A failure keeps the former files; an empty topic has a file with the columns."""
    cluster.create_topic("nothing")
    folder = tmp_path / "f"
    folder.mkdir()
    (folder / "old.csv").write_text("old")
    refused = ottla("topic", "export", "nothing", str(folder), "--format", "csv")
    assert (refused.code, "is not empty" in refused.errors) == (1, True)
    assert (
        ottla("topic", "export", "nothing", str(folder), "--format", "csv", "--overwrite").code == 0
    )
    assert [path.name for path in folder.iterdir()] == ["part-00000.csv"]
    head = '"key","value","partition","offset","timestamp"\n'
    assert (folder / "part-00000.csv").read_text() == head
    cluster.create_topic("again")
    words = ("topic", "load", "again", str(folder), "--format", "csv", "--records")
    assert ottla(*words, "--output", "json").json["records"] == 0


_CSV = 'id,name,delay\n1,"a\nb",5\n2,,x\n3,c\n4,"d" e,7\n5,\u00e9,8\n6,"",99999999999\n'


def test_rows_that_do_not_fit_go_to_a_file(ottla: Run, cluster: Cluster, tmp_path: Path) -> None:
    """They are unchanged below the header; file, line, column and reason are on standard error."""
    cluster.create_topic("rows")
    (tmp_path / "in.csv").write_text(_CSV)
    bad = tmp_path / "bad.csv"
    words = ("topic", "load", "rows", str(tmp_path / "in.csv"), "--key", "id")
    schema = ("--schema", "id int, name string, delay int")
    done = ottla(*words, *schema, "--bad-rows", str(bad), "--output", "json")
    assert (done.code, done.json) == (0, {"topic": "rows", "records": 2, "refused": 4})
    assert bad.read_text() == 'id,name,delay\n2,,x\n3,c\n4,"d" e,7\n6,"",99999999999\n'
    path = tmp_path / "in.csv"
    assert done.errors.splitlines() == [
        f"{path}, line 4, column 'delay': 'x' is not of type int",
        f"{path}, line 5: the row has 2 columns, not 3",
        f"{path}, line 6, column 'name': text follows the closing quote",
        f"{path}, line 8, column 'delay': 99999999999 is outside of int (-2147483648 to 2147483647)",
        f"4 rows were refused and written to {bad}, 2 records loaded.",
    ]
    assert [(row.key, row.value) for row in _read(cluster, "rows")] == [
        (b"1", b'{"id":1,"name":"a\\nb","delay":5}'),
        (b"5", '{"id":5,"name":"\u00e9","delay":8}'.encode()),
    ]
    again = ottla(*words, *schema, "--bad-rows", str(bad))
    assert (again.code, "needs the name of a new file" in again.errors) == (1, True)


def test_the_first_row_that_does_not_fit_ends_the_load(
    ottla: Run, cluster: Cluster, tmp_path: Path
) -> None:
    """All rows before it are loaded, none after it, and the sentence has the way to continue."""
    cluster.create_topic("first")
    (tmp_path / "in.csv").write_text(_CSV)
    words = ("topic", "load", "first", str(tmp_path / "in.csv"))
    done = ottla(*words, "--schema", "id int, name string, delay int")
    assert done.code == 1
    assert "line 4, column 'delay': 'x' is not of type int" in done.errors
    assert "The rows before it are loaded (1 record)" in done.errors
    assert "--bad-rows FILE" in done.errors
    assert len(_values(cluster, "first")) == 1


def test_lines_of_json_are_loaded_as_they_are(ottla: Run, cluster: Cluster, tmp_path: Path) -> None:
    """Digits, equal names and blanks are kept; a line that is no object is refused."""
    cluster.create_topic("lines")
    lines = ['{"id": 12345678901234567890.10, "big": 1e400, "a": 1, "a": 2}', '{ "id" : "k" }']
    (tmp_path / "in.jsonl.gz").write_bytes(
        gzip.compress("\n".join([*lines, "{", "[1]", "{}"]).encode())
    )
    bad = tmp_path / "bad"
    words = ("topic", "load", "lines", str(tmp_path / "in.jsonl.gz"), "--key", "id")
    done = ottla(*words, "--bad-rows", str(bad))
    assert "line 3: not a JSON object" in done.errors
    assert "line 4: not a JSON object" in done.errors
    assert "line 5, column 'id': the object has no such field" in done.errors
    assert bad.read_text() == "{\n[1]\n{}\n"
    rows = _read(cluster, "lines")
    assert [row.value for row in rows] == [line.encode() for line in lines]
    assert [row.key for row in rows] == [b"12345678901234567890.10", b"k"]


def test_a_schema_of_json_loads_no_row_without_its_fields(
    ottla: Run, cluster: Cluster, tmp_path: Path
) -> None:
    """A wrong type and a missing field are refused, a null is kept, and left out fields are named."""
    cluster.create_topic("objects")
    lines = ['{"n": 1, "s": null, "x": 1}', '{"n": "1", "s": "a"}', '{"n": 2}']
    (tmp_path / "in.json").write_text("\n".join(lines))
    words = ("topic", "load", "objects", str(tmp_path / "in.json"), "--schema", "n int, s string")
    done = ottla(*words, "--bad-rows", str(tmp_path / "bad"))
    assert "--schema leaves out x." in done.errors
    assert "line 2, column 'n'" in done.errors
    assert "line 3, column 's': the object has no such field" in done.errors
    assert _values(cluster, "objects") == [b'{"n":1,"s":null}']


def test_parquet_rows_become_objects(ottla: Run, cluster: Cluster, tmp_path: Path) -> None:
    """Refused rows are Parquet, too."""
    cluster.create_topic("columns")
    table = pa.table({"id": [1, 2, 3], "v": [1.5, float("nan"), None], "b": [b"\xff", b"", None]})
    pq.write_table(table, tmp_path / "in.parquet")
    bad = tmp_path / "bad.parquet"
    words = ("topic", "load", "columns", str(tmp_path / "in.parquet"), "--key", "id")
    done = ottla(*words, "--bad-rows", str(bad))
    assert "row 2: nan is not a JSON number" in done.errors
    values = [b'{"id":1,"v":1.5,"b":"/w=="}', b'{"id":3,"v":null,"b":null}']
    assert _values(cluster, "columns") == values
    assert pq.read_table(bad).column("id").to_pylist() == [2]


def test_records_that_are_too_large_for_the_topic_are_refused(
    ottla: Run, cluster: Cluster, tmp_path: Path
) -> None:
    """The limit counts after compression, as the broker's does; a batch never exceeds it."""
    with cluster.admin() as brokers:
        for topic in ("small", "packed"):
            cluster.create_topic(topic)
            resource = Resource(ResourceType.TOPIC, topic)
            configs.alter_config(brokers, resource, assign={"max.message.bytes": "2000"})
    rows = [f'"{number}","{"x" * 300}"' for number in range(50)]
    rows.insert(25, f'"large","{"y" * 3000}"')
    (tmp_path / "in.csv").write_text("\n".join(["k,v", *rows]) + "\n")
    words = (str(tmp_path / "in.csv"), "--key", "k", "--value", "v")
    done = ottla("topic", "load", "small", *words)
    assert (done.code, len(_values(cluster, "small"))) == (1, 25)
    assert "line 27: the record has" in done.errors
    assert "more than max.message.bytes of topic 'small' (2000)" in done.errors
    assert ottla("topic", "load", "packed", *words, "--compression", "zstd").code == 0
    assert len(_values(cluster, "packed")) == 51


def test_partitions_times_and_columns_that_do_not_exist_are_named(
    ottla: Run, cluster: Cluster, tmp_path: Path
) -> None:
    """Each has a sentence of its own."""
    cluster.create_topic("wrong", config={"retention.ms": "-1"})
    file = tmp_path / "in.csv"
    file.write_text("value,partition,timestamp\na,5,\nb,x,\nc,0,noon\nd,0,2026-01-01\n")
    done = ottla(
        "topic", "load", "wrong", str(file), "--records", "--bad-rows", str(tmp_path / "b")
    )
    assert "has no partition 5: the last one is 0" in done.errors
    assert "'x' is not the number of a partition" in done.errors
    assert "'noon' is not a time such as" in done.errors
    (row,) = _read(cluster, "wrong")
    assert (row.value, row.timestamp) == (b"d", 1_767_225_600_000)
    missing = ottla("topic", "load", "wrong", str(file), "--key", "id")
    assert "has no column 'id'; it has: value, partition, timestamp" in missing.errors
    twice = tmp_path / "twice.csv"
    twice.write_text("a,a\n1,2\n")
    assert "column 'a' is there twice" in ottla("topic", "load", "wrong", str(twice)).errors


def test_missing_libraries_are_named(
    ottla: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence has the command that installs them."""
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "pyarrow" else found(name)
    )
    (tmp_path / "in.csv").write_text("a\n1\n")
    for words in (("load", "t", str(tmp_path / "in.csv")), ("export", "t", str(tmp_path / "x"))):
        done = ottla("topic", *words)
        assert (done.code, "pip install 'ottla[arrow]'" in done.errors) == (1, True)


def test_refusals_of_the_topic_are_reported(ottla: Run, cluster: Cluster, tmp_path: Path) -> None:
    """A topic that does not exist, and options that belong to the other engine or format."""
    (tmp_path / "in.json").write_text("{}\n")
    file = str(tmp_path / "in.json")
    assert ottla("topic", "load", "absent", file).code == 1
    cluster.create_topic("present")
    assert ottla("topic", "load", "present", file, "-X", "sep=;").code == 2
    both = ottla("topic", "load", "present", file, "--engine", "spark", "--bad-rows", "x")
    assert (both.code, "--bad-rows is not for --engine spark" in both.errors) == (2, True)


def test_records_that_the_topic_refuses_for_time_or_key_are_rows_of_a_file(
    ottla: Run, cluster: Cluster, tmp_path: Path
) -> None:
    """A broker refuses whole batches, so that the load checks each record before it sends."""
    limits = {"message.timestamp.before.max.ms": "1000", "cleanup.policy": "compact"}
    cluster.create_topic("strict", config=limits)
    (tmp_path / "in.csv").write_text("key,value,timestamp\na,1,\n,2,\nc,3,2020-01-01\nd,4,\n")
    bad = tmp_path / "bad"
    words = ("topic", "load", "strict", str(tmp_path / "in.csv"), "--records")
    done = ottla(*words, "--bad-rows", str(bad))
    assert "line 3: topic 'strict' is compacted, and the record has no key" in done.errors
    assert "line 4: the time of the record, 1577836800000 ms, is outside of message" in done.errors
    assert bad.read_text() == "key,value,timestamp\n,2,\nc,3,2020-01-01\n"
    assert _values(cluster, "strict") == [b"1", b"4"]


@pytest.mark.parametrize("file_format", ["csv", "json", "parquet"])
def test_times_of_any_year_are_restored(
    ottla: Run, cluster: Cluster, tmp_path: Path, file_format: str
) -> None:
    """0, no time, and years that Python's calendar lacks."""
    config = {"retention.ms": "-1", "message.timestamp.after.max.ms": str(2**63 - 1)}
    for topic in (f"years-{file_format}", f"years-{file_format}-2"):
        cluster.create_topic(topic, config=config)
    file = tmp_path / "in.csv"
    times = ["1970-01-01", "1969-12-31T23:59:59.999Z", "10000-02-29T12:00:00.5Z", "+123456-01-01"]
    file.write_text("value,timestamp\n" + "".join(f"v,{at}\n" for at in times))
    assert ottla("topic", "load", f"years-{file_format}", str(file), "--records").code == 0
    rows = _read(cluster, f"years-{file_format}")
    far = 253_402_300_800_000 + 59 * 86_400_000 + 43_200_500
    assert [row.timestamp for row in rows][:3] == [0, -1, far]
    folder = str(tmp_path / "out")
    words = ("topic", "export", f"years-{file_format}", folder, "--format", file_format)
    assert ottla(*words).code == 0
    done = ottla("topic", "load", f"years-{file_format}-2", folder, "--records")
    assert done.code == 0, done.errors
    assert _read(cluster, f"years-{file_format}-2") == rows


def test_times_of_parquet_become_texts_in_utc(ottla: Run, cluster: Cluster, tmp_path: Path) -> None:
    """A zone is converted; microseconds are kept; numbers are seconds."""
    cluster.create_topic("zones", config={"retention.ms": "-1"})
    noon = 1_767_268_800_000_000
    columns = {
        "zoned": pa.array([noon], pa.timestamp("us", "Asia/Tokyo")),
        "plain": pa.array([noon + 1], pa.timestamp("us")),
        "nanos": pa.array([noon * 1000 + 1], pa.timestamp("ns")),
        "seconds": pa.array([noon / 1_000_000]),
    }
    pq.write_table(pa.table(columns), tmp_path / "in.parquet")
    words = ("topic", "load", "zones", str(tmp_path / "in.parquet"), "--timestamp", "seconds")
    assert ottla(*words).code == 0
    (row,) = _read(cluster, "zones")
    assert row.timestamp == noon // 1000
    texts = [json.loads(row.value or b"")[name] for name in ("zoned", "plain", "nanos")]
    assert texts == ["2026-01-01T12:00:00.000Z", "2026-01-01T12:00:00.000001Z", texts[0]]


def test_damaged_compressed_files_are_named(ottla: Run, cluster: Cluster, tmp_path: Path) -> None:
    """The error has the file and the number of loaded records."""
    cluster.create_topic("damaged")
    whole = gzip.compress(b"a\n" + b"".join(b"%d\n" % number for number in range(100_000)))
    (tmp_path / "in.csv.gz").write_bytes(whole[:-20])
    done = ottla("topic", "load", "damaged", str(tmp_path / "in.csv.gz"))
    assert (done.code, "in.csv.gz is damaged: " in done.errors) == (1, True)


def test_an_open_transaction_ends_the_export(ottla: Run, cluster: Cluster, tmp_path: Path) -> None:
    """The records after its beginning are not committed yet, and a note says so."""
    cluster.create_topic("open")
    settings = {"bootstrap.servers": cluster.bootstrap, "transactional.id": "open"}
    producer = confluent_kafka.Producer({**settings, "partitioner": "murmur2_random"})
    producer.init_transactions()
    for value, is_committed in ((b"1", True), (b"2", False)):
        producer.begin_transaction()
        producer.produce("open", value, partition=0)
        producer.flush()
        if is_committed:
            producer.commit_transaction()
    done = ottla("topic", "export", "open", str(tmp_path / "x"), "--format", "json")
    assert "open-0: exported up to offset 2, where an open transaction begins" in done.errors
    (line,) = (tmp_path / "x" / "part-00000.json").read_text().splitlines()
    assert json.loads(line)["value"] == "1"
    producer.abort_transaction()


def test_a_refusal_of_the_broker_is_reported_with_the_number_of_written_records(
    ottla: Run, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the limits of the topic cannot be read, the broker refuses the batch."""
    cluster.create_topic("unread", config={"max.message.bytes": "2000"})

    def denied(*_arguments: Any, **_options: Any) -> None:
        raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    monkeypatch.setattr(limits, "read_config", denied)
    (tmp_path / "in.csv").write_text("v\n" + "x" * 3000 + "\n")
    done = ottla("topic", "load", "unread", str(tmp_path / "in.csv"), "--value", "v")
    assert done.code == 1
    assert "0 records were acknowledged before the error" in done.errors
    assert "max.message.bytes" in done.errors
