"""A broker that starts with a damaged `partition.metadata`: its records are reported, and restored."""

import logging
from pathlib import Path

import pytest

from ottla.controller.planning.requests import TopicRequest
from ottla.server.node import Node
from ottla.storage.files import checkpoints
from ottla.tools.main import run
from ottla.wire.records.records import Record, encode_batch
from tests.folders import contents

RECORDS = 4000
OTHER_ID = bytes(15) + b"\x07"


def node_in(folder: Path) -> Node:
    """Return a broker that keeps its metadata beside its logs."""
    return Node(
        {
            "node.id": "1",
            "log.dirs": str(folder / "logs"),
            "coordination.dir": str(folder / "coordination"),
            "listeners": "PLAINTEXT://127.0.0.1:0",
        }
    )


async def topic_of_batches(folder: Path, count: int) -> Node:
    """Start a broker with a topic of several segments, which has this number of batches."""
    node = node_in(folder)
    await node.start()
    config = {"internal.segment.bytes": "20000"}
    (created,) = await node.broker.controller.create_topics([TopicRequest("t", 1, 1, (), config)])
    assert created.error is None
    batch = encode_batch([Record(None, b"value-%d" % number) for number in range(100)])
    for _ in range(count):
        node.broker.replicas.get("t", 0).append_as_leader(bytearray(batch), acks=-1)
    return node


def end_offset(node: Node) -> int:
    """Return the end of the log."""
    return node.broker.replicas.get("t", 0).log.log_end_offset


async def test_damaged_topic_id_is_reported_and_its_log_is_restored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """One wrong id made the log a stray of another topic: the partition was empty, without an
    error.
    """
    node = node_in(tmp_path)
    await node.start()
    (created,) = await node.broker.controller.create_topics([TopicRequest("t", 1, 1)])
    assert created.error is None
    batch = encode_batch([Record(None, b"value") for _ in range(RECORDS)])
    node.broker.replicas.get("t", 0).append_as_leader(batch, acks=-1)
    await node.stop()
    log = tmp_path / "logs" / "t-0"
    records = contents(log)["00000000000000000000.log"]
    (log / checkpoints.PARTITION_METADATA_FILE).write_bytes(
        checkpoints.encode_partition_metadata(OTHER_ID)
    )
    caplog.set_level(logging.WARNING)
    node = node_in(tmp_path)
    await node.start()
    assert end_offset(node) == 0
    (error,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert "log has another topic id than its topic" in error.getMessage()
    assert "partition=t-0" in error.getMessage()
    assert "has another topic id" in node.broker.replicas.directories.damaged()["t", 0]
    (directory,) = node.broker.replicas.directories.directories()
    (stray,) = directory.strays.listed()
    assert stray.key == ("t", 0)
    assert stray.size_bytes > len(records) // 2
    await node.stop()
    assert run(["log", "repair", "--data", str(tmp_path / "logs"), "--execute"]) == 0
    assert stray.name in capsys.readouterr().out
    node = node_in(tmp_path)
    await node.start()
    assert end_offset(node) == RECORDS
    await node.stop()
    assert contents(log)["00000000000000000000.log"] == records
