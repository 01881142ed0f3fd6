"""The text files beside the logs: checkpoints, partition.metadata and meta.properties."""

from pathlib import Path

import pytest

from ottla.base import uuids
from ottla.base.files import RealFileSystem
from ottla.storage.files import checkpoints

TOPIC_ID = bytes(range(16))


def test_offsets_are_written_as_kafka_writes_them() -> None:
    """The file has the version and the count, then a line of topic, partition and offset each."""
    data = checkpoints.encode_offsets({("a", 0): 5, ("b.c", 12): 7})
    assert data == b"0\n2\na 0 5\nb.c 12 7\n"
    assert checkpoints.parse_offsets(data) == {("a", 0): 5, ("b.c", 12): 7}
    assert checkpoints.parse_offsets(checkpoints.encode_offsets({})) == {}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 20,
        b"1\n0\n",
        b"0\n2\na 0 5\n",
        b"0\n1\na 0 5\nb 0 6\n",
        b"0\n1\na 0 -5\n",
        b"0\n1\na b c d\n",
        b"\xff\xfe",
    ],
)
def test_damaged_offsets_are_detected(data: bytes, tmp_path: Path) -> None:
    """Parsing damaged offsets raises ValueError; loading treats them as unknown."""
    with pytest.raises(ValueError):
        checkpoints.parse_offsets(data)
    path = tmp_path / "x"
    path.write_bytes(data)
    assert checkpoints.load_offsets(RealFileSystem(), str(path)) == {}


def test_a_missing_checkpoint_is_empty(tmp_path: Path) -> None:
    """A missing checkpoint loads as an empty one, as in a new directory."""
    assert checkpoints.load_offsets(RealFileSystem(), str(tmp_path / "x")) == {}
    assert checkpoints.load_epochs(RealFileSystem(), str(tmp_path)) is None
    assert checkpoints.load_topic_id(RealFileSystem(), str(tmp_path)) == uuids.ZERO_UUID


def test_epochs_are_written_as_kafka_writes_them() -> None:
    """The file has the version and the count, then a line of epoch and start offset each."""
    data = checkpoints.encode_epochs([(0, 0), (3, 100)])
    assert data == b"0\n2\n0 0\n3 100\n"
    assert checkpoints.parse_epochs(data) == [(0, 0), (3, 100)]


@pytest.mark.parametrize("rows", ["1 0\n1 5", "1 5\n2 4", "2 0\n1 5", "-1 0\n2 0", "1\n2 0"])
def test_epochs_that_do_not_increase_are_damaged(rows: str, tmp_path: Path) -> None:
    """Loading treats such epochs as unknown, and they are rebuilt from the log."""
    data = f"0\n2\n{rows}\n".encode()
    with pytest.raises(ValueError):
        checkpoints.parse_epochs(data)
    (tmp_path / checkpoints.LEADER_EPOCH_FILE).write_bytes(data)
    assert checkpoints.load_epochs(RealFileSystem(), str(tmp_path)) is None


def test_partition_metadata_has_the_topic_id() -> None:
    """The file has two lines, the second without a newline, as Kafka writes it."""
    data = checkpoints.encode_partition_metadata(TOPIC_ID)
    assert data == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert checkpoints.parse_partition_metadata(data) == TOPIC_ID


@pytest.mark.parametrize(
    "data", [b"", bytes(43), b"version: 1\ntopic_id: AAECAwQFBgcICQoLDA0ODw", b"version: 0", b"x"]
)
def test_damaged_partition_metadata_has_no_topic_id(data: bytes, tmp_path: Path) -> None:
    """The topic id stays unknown until the controller sends it again."""
    (tmp_path / checkpoints.PARTITION_METADATA_FILE).write_bytes(data)
    assert checkpoints.load_topic_id(RealFileSystem(), str(tmp_path)) == uuids.ZERO_UUID


def test_java_properties_are_read() -> None:
    """Comments are skipped and Java's escapes are decoded."""
    text = "#\n#Sat Nov 21 11:32:18 UTC 2026\nbroker.id=1\n cluster.id = a\\=b \n!x\n\nversion=0\n"
    assert checkpoints.parse_properties(text.encode()) == {
        "broker.id": "1",
        "cluster.id": "a=b",
        "version": "0",
    }
    with pytest.raises(ValueError):
        checkpoints.parse_properties(b"broker.id\n")


def test_properties_are_written_so_that_java_reads_them() -> None:
    """Properties are written as one name=value pair a line."""
    assert checkpoints.encode_properties({"version": "0", "broker.id": "1"}) == (
        b"version=0\nbroker.id=1\n"
    )
