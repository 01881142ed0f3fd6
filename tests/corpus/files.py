"""The readers and writers of the matrix that use files: export, load, log dump, mirror maker.

DuckDB reads exported CSV and JSON lines, pyarrow reads Parquet.
"""

import base64
import io
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow.parquet as pq

from ottla.client.admin.offsets import EARLIEST, list_offsets
from ottla_scripts import entry
from tests.corpus.judges import Reading, read_with_librdkafka
from tests.corpus.setting import PARTITIONS, Setting

Rows = Sequence[Reading]
Pair = tuple[Any, Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# As the topics of the corpus allow.
_LARGE = {"max.message.bytes": "30000000", "message.timestamp.after.max.ms": str(2**63 - 1)}
_CSV = "all_varchar=true, header=true, delim=',', quote='\"', escape='\"', allow_quoted_nulls=false"


def export_files(at: Setting, topic: str, folder: Path, name: str, rows: Rows) -> None:
    """Export a topic: as text, or as bytes if the verb says that some are no text."""
    words = ("topic", "export", topic, str(folder), "--format", name)
    done = at.run(*words)
    parts = [part for row in rows for part in (row.key, row.value) if part is not None]
    if not all(map(_is_text, parts)):
        assert done.code == 1
        assert "is not UTF-8, so that it cannot be exported as text: add --bytes" in done.errors
        done = at.run(*words, "--bytes")
    assert done.code == 0, done.errors
    is_said = f"the headers of {sum(bool(row.headers) for row in rows)} record" in done.errors
    assert is_said is (name == "csv" and any(row.headers for row in rows))


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _exported(at: Setting, topic: str, rows: Rows, name: str) -> Pair:
    with TemporaryDirectory() as place:
        folder = Path(place) / "files"
        export_files(at, topic, folder, name, rows)
        found = [row for path in sorted(folder.iterdir()) for row in _JUDGES[name](path)]
    if name == "csv":
        rows = [_without_headers(row) for row in rows]
    return sorted(map(_reading, found), key=lambda row: (row.partition, row.offset)), list(rows)


def _without_headers(row: Reading) -> Reading:
    return Reading(row.partition, row.offset, row.timestamp, row.key, row.value, ())


def _of_csv(path: Path) -> list[dict[str, Any]]:
    return _of_duckdb(f"read_csv('{path}', {_CSV}, max_line_size=60000000, buffer_size=240000000)")


def _of_json(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def _of_duckdb(table: str) -> list[dict[str, Any]]:
    with duckdb.connect() as connection:
        result = connection.execute(f"SELECT * FROM {table}")
        names = [column[0] for column in result.description]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def _of_parquet(path: Path) -> list[dict[str, Any]]:
    return list(pq.read_table(path).to_pylist())


_JUDGES: Mapping[str, Callable[[Path], list[dict[str, Any]]]] = {
    "csv": _of_csv,
    "json": _of_json,
    "parquet": _of_parquet,
}


def _reading(row: Mapping[str, Any]) -> Reading:
    def part(name: str) -> bytes | None:
        data = row.get(name)
        if f"{name}_base64" in row:
            coded = row[f"{name}_base64"]
            return None if coded is None else base64.b64decode(coded)
        return data.encode() if isinstance(data, str) else data

    at = row["timestamp"]
    moment = datetime.fromisoformat(at) if isinstance(at, str) else at
    headers = tuple((pair["key"], _header(pair["value"])) for pair in row.get("headers") or ())
    milliseconds = (moment - _EPOCH) // timedelta(milliseconds=1)
    place = int(row["partition"]), int(row["offset"])
    return Reading(*place, milliseconds, part("key"), part("value"), headers)


def _header(value: Any) -> bytes | None:
    return base64.b64decode(value) if isinstance(value, str) else value


def log_dump(at: Setting, topic: str, rows: Rows) -> Pair:
    """Dump the segments, and compare with a consumer that reads uncommitted records, too."""
    numbers = range(PARTITIONS.get(topic, 1))
    judged = read_with_librdkafka(at.cluster.bootstrap, topic, numbers, committed=False)
    known = {(row.partition, row.offset) for row in judged}
    with at.cluster.admin() as brokers:
        starts = list_offsets(brokers, {(topic, number): EARLIEST for number in numbers})
    found = []
    for number in numbers:
        paths = [str(path) for path in sorted(at.cluster.data.rglob(f"{topic}-{number}/*.log"))]
        done = at.run("log", "dump", *paths, "--records", "--output", "json")
        assert done.code == 0, done.errors
        for line in done.out.decode().split("\n"):
            # Files have records before the beginning of the log, which consumers do not see.
            row = json.loads(line) if line else None
            if row is None or row["offset"] < starts[topic, number].offset:
                continue
            if (number, row["offset"]) in known:
                found.append(_dumped(number, row))
            else:
                assert row["key"] in ("COMMIT", "ABORT"), row
    expected = [
        (row.partition, row.offset, _moment(row.timestamp), row.key, row.value, row.headers)
        for row in judged
    ]
    return found, expected


def _moment(timestamp: int) -> str:
    moment = _EPOCH + timedelta(milliseconds=timestamp)
    text = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return "" if timestamp == -1 else text


def _dumped(number: int, row: Mapping[str, Any]) -> tuple[Any, ...]:
    def part(name: str) -> bytes | None:
        if f"{name}_base64" in row:
            return base64.b64decode(row[f"{name}_base64"])
        return None if row[name] is None else str(row[name]).encode()

    pairs = [text.split("=", 1) for text in row["headers"]]
    headers: list[tuple[str, bytes | None]] = [(name, value.encode()) for name, value in pairs]
    if "headers_base64" in row:
        headers = [(name, _header(value)) for name, value in row["headers_base64"]]
    place = number, row["offset"], row["timestamp"]
    return *place, part("key"), part("value"), tuple(headers)


def _loaded(name: str) -> Callable[[Setting, str, str, Rows, Path], Rows]:
    def load(at: Setting, topic: str, target: str, rows: Rows, folder: Path) -> Rows:
        export_files(at, topic, folder / "files", name, rows)
        at.cluster.create_topic(target, partitions=PARTITIONS.get(topic, 1), config=_LARGE)
        words = ("topic", "load", target, str(folder / "files"), "--format", name, "--records")
        done = at.run(*words, "--output", "json")
        assert done.code == 0, done.errors
        assert done.json == {"topic": target, "records": len(rows), "refused": 0}, done.errors
        return rows

    return load


def mirror_maker(at: Setting, topic: str, target: str, rows: Rows, folder: Path) -> Rows:
    """Copy with `kafka-mirror-maker`, into another topic of the same cluster."""
    client = f"bootstrap.servers={at.cluster.bootstrap}\n"
    consumer, producer = folder / "consumer.properties", folder / "producer.properties"
    consumer.write_text(f"{client}group.id={target}\nauto.offset.reset=earliest\n")
    producer.write_text(client)
    files = ["--consumer.config", str(consumer), "--producer.config", str(producer)]
    words = [*files, "--include", topic.replace(".", r"\."), "--until-end", "--target-topic"]
    if topic == "corpus-sizes":
        with redirect_stderr(io.StringIO()) as errors:
            assert entry.run("kafka-mirror-maker", [*words, f"{target}-plain"]) == 1
        assert "Set compression.type in the file of --producer.config" in errors.getvalue()
        producer.write_text(f"{client}compression.type=lz4\n")
    assert entry.run("kafka-mirror-maker", [*words, target]) == 0
    return rows


def _whole(row: Reading) -> tuple[Any, ...]:
    return row.partition, row.timestamp, row.key, row.value, row.headers


def _whole_without_headers(row: Reading) -> tuple[Any, ...]:
    return row.partition, row.timestamp, row.key, row.value


def _reader(name: str) -> Callable[[Setting, str, Rows], Pair]:
    return lambda at, topic, rows: _exported(at, topic, rows, name)


FILE_READS: Mapping[str, Callable[[Setting, str, Rows], Pair]] = {
    "ottla log dump": log_dump,
    **{f"ottla topic export --format {name}": _reader(name) for name in _JUDGES},
}
FILE_WRITES: Mapping[
    str,
    tuple[Callable[[Setting, str, str, Rows, Path], Rows], Callable[[Reading], tuple[Any, ...]]],
] = {
    "kafka-mirror-maker": (mirror_maker, _whole),
    "ottla topic load --format csv": (_loaded("csv"), _whole_without_headers),
    "ottla topic load --format json": (_loaded("json"), _whole),
    "ottla topic load --format parquet": (_loaded("parquet"), _whole),
}
