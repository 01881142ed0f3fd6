"""`ottla log dump`: the content of log files, and their damage."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from ottla.storage.files import checkpoints, txn_index
from ottla.tools import main
from ottla.wire import group_records
from ottla.wire.records import batch, control
from ottla.wire.records.records import Record, encode_batch

NAME = "00000000000000000100"


def _batch(offset: int, *values: str, **fields: Any) -> bytes:
    records = [
        Record(key=b"k", value=value.encode(), timestamp=1_700_000_000_000) for value in values
    ]
    return bytes(encode_batch(records, base_offset=offset, **fields))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the directory of a partition with a segment of two batches."""
    (tmp_path / "t-0").mkdir()
    data = _batch(100, "a", "b") + _batch(102, "c", compression=4, leader_epoch=3)
    (tmp_path / "t-0" / f"{NAME}.log").write_bytes(data)
    return tmp_path / "t-0"


def _dump(
    capsys: pytest.CaptureFixture[str], *command_line: str | Path
) -> tuple[int, list[dict[str, Any]], str]:
    code = main.run(["log", "dump", "--output", "json", *map(str, command_line)])
    captured = capsys.readouterr()
    return code, [json.loads(line) for line in captured.out.splitlines()], captured.err


def _dump_sidecar(capsys: pytest.CaptureFixture[str], path: Path) -> tuple[int, Any, str]:
    code = main.run(["log", "dump", "--output", "json", str(path)])
    captured = capsys.readouterr()
    return code, json.loads(captured.out or "[]"), captured.err


def test_parts_with_ambiguous_text_are_base64_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON has the bytes of parts that are not UTF-8, and of headers that are null or have `=`."""
    (tmp_path / "t-0").mkdir()
    rows = [
        Record(key=b"\\xff", value=b"\xff", timestamp=0, headers=[("a=b", b"c"), ("n", None)]),
        Record(key=b"\xff", value=None, timestamp=0, headers=[("h", b"v")]),
    ]
    path = tmp_path / "t-0" / f"{NAME}.log"
    path.write_bytes(bytes(encode_batch(rows, base_offset=100)))
    _, (first, second), _ = _dump(capsys, path, "--records")
    assert (first["key"], "key_base64" in first, first["value_base64"]) == ("\\xff", False, "/w==")
    assert first["headers_base64"] == [["a=b", "Yw=="], ["n", None]]
    assert (second["key"], second["key_base64"], second["value"]) == ("\\xff", "/w==", None)
    assert (second["headers"], "headers_base64" in second) == (["h=v"], False)


def test_a_segment_is_shown_batch_by_batch(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The output has offsets, positions, codecs, epochs and the state of the checksum."""
    code, (first, second), errors = _dump(capsys, folder / f"{NAME}.log")
    assert (code, errors) == (0, "")
    assert (first["base_offset"], first["last_offset"], first["records"]) == (100, 101, 2)
    assert (second["codec"], second["leader_epoch"], second["crc"]) == ("zstd", 3, "ok")
    assert second["position"] == first["size"]
    assert first["max_timestamp"] == "2023-11-14T22:13:20.000Z"


def test_records_are_shown_on_request(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Records of compressed batches are decompressed."""
    _, rows, _ = _dump(capsys, folder / f"{NAME}.log", "--records")
    assert [(row["offset"], row["value"]) for row in rows] == [(100, "a"), (101, "b"), (102, "c")]


def test_default_output_is_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table has a header and one line for each batch."""
    assert main.run(["log", "dump", str(folder / f"{NAME}.log")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["BASE-OFFSET", "LAST-OFFSET", "RECORDS"]
    assert len(lines) == 3


def test_wrong_checksum_is_reported_and_the_dump_continues(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The batches after the damage are printed as well."""
    path = folder / f"{NAME}.log"
    data = bytearray(path.read_bytes())
    data[batch.HEADER_SIZE + 2] ^= 1
    path.write_bytes(data)
    code, rows, errors = _dump(capsys, path)
    assert (code, [row["crc"] for row in rows]) == (1, ["BAD", "ok"])
    assert "1 batch has a wrong checksum" in errors


@pytest.mark.parametrize("cut", [1, 30, 70])
def test_torn_tail_is_reported_with_its_position(
    folder: Path, capsys: pytest.CaptureFixture[str], cut: int
) -> None:
    """The complete batches before it are printed."""
    path = folder / f"{NAME}.log"
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    code, rows, errors = _dump(capsys, path)
    assert (code, len(rows)) == (1, 1)
    assert f"from position {rows[0]['size']} on are not a complete batch" in errors


def test_garbage_is_no_batch(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The dump ends at bytes that cannot be a header, whatever their length field."""
    path = folder / f"{NAME}.log"
    path.write_bytes(path.read_bytes() + b"\xff" * 200)
    code, rows, errors = _dump(capsys, path)
    assert (code, len(rows), "200 bytes from position" in errors) == (1, 2, True)


def test_transaction_markers_are_decoded(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The key and the value of a control record are decoded."""
    marker = control.EndTransactionMarker(control.ControlType.COMMIT, 7)
    data = control.encode_marker(marker, producer_id=1, producer_epoch=0, timestamp=5)
    (folder / f"{NAME}.log").write_bytes(data)
    _, (row,), _ = _dump(capsys, folder / f"{NAME}.log", "--records")
    assert (row["key"], row["value"]) == ("COMMIT", "coordinator_epoch=7")


def test_group_records_are_decoded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In __consumer_offsets committed offsets and tombstones are decoded."""
    folder = tmp_path / "__consumer_offsets-3"
    folder.mkdir()
    key = group_records.encode_key(group_records.OffsetCommitKey(group="g", topic="t", partition=1))
    value = group_records.encode_value(group_records.OffsetCommitValue(offset=42, metadata="m"))
    records = [Record(key=key, value=value), Record(key=key, value=None)]
    (folder / f"{NAME}.log").write_bytes(encode_batch(records, base_offset=100))
    _, rows, _ = _dump(capsys, folder / f"{NAME}.log", "--records")
    assert [(row["key"], row["value"]) for row in rows] == [
        ("offset g t-1", "42 m"),
        ("offset g t-1", None),
    ]


def test_an_offset_index_has_absolute_offsets(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Space that Kafka preallocates is omitted."""
    batches = [_batch(100, "a" * 11), _batch(101, "b" * 249), _batch(102, *"cdef")]
    assert [len(data) for data in batches[:2]] == [80, 320]
    (folder / f"{NAME}.log").write_bytes(b"".join(batches))
    path = folder / f"{NAME}.index"
    path.write_bytes(struct.pack(">iiii", 1, 80, 5, 400) + bytes(80))
    assert _dump_sidecar(capsys, path) == (
        0,
        [{"offset": 101, "position": 80}, {"offset": 105, "position": 400}],
        "",
    )


def test_index_that_does_not_increase_is_damaged(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 1 with the entry's number, and an incomplete last entry is reported as well."""
    path = folder / f"{NAME}.index"
    path.write_bytes(struct.pack(">iiii", 5, 400, 1, 800) + b"abc")
    code, _, errors = _dump_sidecar(capsys, path)
    assert code == 1
    assert "entry 1 does not rise: offset 101 follows 105" in errors
    assert "3 bytes at the end are not a complete entry" in errors


def test_a_time_index_has_readable_times(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON has milliseconds, the table has readable times."""
    path = folder / f"{NAME}.timeindex"
    path.write_bytes(struct.pack(">qi", 1_700_000_000_000, 2))
    _, (row,), _ = _dump_sidecar(capsys, path)
    assert row == {
        "timestamp": 1_700_000_000_000,
        "time": "2023-11-14T22:13:20.000Z",
        "offset": 102,
    }


def test_index_is_compared_with_its_segment(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An entry has the last offset of the batch at its position."""
    second = len(_batch(100, "a", "b"))
    path = folder / f"{NAME}.index"
    path.write_bytes(struct.pack(">iiii", 1, 0, 2, second))
    assert _dump_sidecar(capsys, path)[::2] == (0, "")
    path.write_bytes(struct.pack(">iiii", 0, 0, 2, second))
    code, rows, errors = _dump_sidecar(capsys, path)
    assert (code, len(rows)) == (1, 2)
    assert "offset 100 is in the index, and the batch at its position ends with" in errors
    assert "delete it while the broker is stopped" in errors


@pytest.mark.parametrize("position", [1, 100_000, -5])
def test_index_that_points_to_no_batch_is_reported(
    folder: Path, capsys: pytest.CaptureFixture[str], position: int
) -> None:
    """The position is in the middle of a batch, behind the last one or before the first."""
    path = folder / f"{NAME}.index"
    path.write_bytes(struct.pack(">ii", 1, position))
    code, _, errors = _dump_sidecar(capsys, path)
    assert (code, f"no complete batch is at position {position} " in errors) == (1, True)


def test_time_index_is_compared_with_its_segment(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An entry has the largest timestamp and the last offset of a batch."""
    path = folder / f"{NAME}.timeindex"
    path.write_bytes(struct.pack(">qiqi", 1_700_000_000_000, 0, 1_700_000_000_001, 2))
    code, rows, errors = _dump_sidecar(capsys, path)
    assert (code, len(rows)) == (1, 2)
    assert "offset 100 is in the index, and no batch of the segment ends with it" in errors
    assert "timestamp 1700000000001 is in the index, and the largest one of its batch is" in errors


def test_index_without_its_segment_is_shown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A note says that it was not compared."""
    (folder / f"{NAME}.log").unlink()
    path = folder / f"{NAME}.index"
    path.write_bytes(struct.pack(">ii", 1, 80))
    code, rows, errors = _dump_sidecar(capsys, path)
    assert (code, len(rows), "is not compared with its segment" in errors) == (0, 1, True)


def test_offsets_of_a_segment_that_do_not_rise_are_reported(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Compaction leaves gaps, and never an offset twice."""
    path = folder / f"{NAME}.log"
    path.write_bytes(_batch(100, "a") + _batch(105, "b") + _batch(105, "c"))
    code, rows, errors = _dump(capsys, path)
    assert (code, len(rows), errors.count("\n")) == (1, 3, 1)
    assert (
        "the batch at position 140 begins with offset 105, although the next one is 106" in errors
    )


def test_a_producer_snapshot_is_checked_and_shown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is one row for each producer id, and a flipped bit is reported."""
    # Kafka's layout: count, then id, epoch, last sequence, last offset, offset delta, time, two
    # more.
    body = struct.pack(">iqhiqiqiq", 1, 9, 2, 5, 98, 0, 1_700_000_000_000, -1, -1)
    path = folder / f"{NAME}.snapshot"
    path.write_bytes(struct.pack(">hI", 1, batch.crc32c(body)) + body)
    code, (row,), _ = _dump_sidecar(capsys, path)
    assert (code, row["producer_id"], row["epoch"]) == (0, 9, 2)
    assert (row["last_sequence"], row["last_offset"]) == (5, 98)
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    code, rows, errors = _dump_sidecar(capsys, path)
    assert (code, rows, "the checksum or the length" in errors) == (1, [], True)


def test_aborted_transactions_are_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The output has the offsets that consumers skip."""
    path = folder / f"{NAME}.txnindex"
    path.write_bytes(txn_index.encode([txn_index.AbortedTransaction(9, 100, 110, 105)]))
    _, (row,), _ = _dump_sidecar(capsys, path)
    assert (row["producer_id"], row["first_offset"], row["last_offset"]) == (9, 100, 110)


def test_checkpoints_are_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The output has offsets by partition, epochs by start offset, ids and properties."""
    contents = {
        checkpoints.HIGH_WATERMARK_FILE: checkpoints.encode_offsets({("t", 0): 5}),
        checkpoints.LEADER_EPOCH_FILE: checkpoints.encode_epochs([(1, 0), (2, 10)]),
        checkpoints.PARTITION_METADATA_FILE: checkpoints.encode_partition_metadata(bytes(16)),
        checkpoints.META_PROPERTIES_FILE: b"version=0\nbroker.id=1\n",
    }
    output = {}
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
        output[name] = _dump_sidecar(capsys, tmp_path / name)[1]
    assert list(output.values()) == [
        [{"topic": "t", "partition": 0, "offset": 5}],
        [{"leader_epoch": 1, "start_offset": 0}, {"leader_epoch": 2, "start_offset": 10}],
        [{"topic_id": "AAAAAAAAAAAAAAAAAAAAAA"}],
        [{"name": "broker.id", "value": "1"}, {"name": "version", "value": "0"}],
    ]


def test_damaged_checkpoint_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error is one line, with exit code 1."""
    path = tmp_path / checkpoints.HIGH_WATERMARK_FILE
    path.write_bytes(b"garbage")
    code, _, errors = _dump_sidecar(capsys, path)
    assert (code, "the file is damaged" in errors, errors.count("\n")) == (1, True, 1)


def test_unsupported_file_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error lists the supported file names."""
    (tmp_path / "notes.txt").touch()
    assert main.run(["log", "dump", str(tmp_path / "notes.txt")]) == 1
    assert ".log, .index, .timeindex" in capsys.readouterr().err
