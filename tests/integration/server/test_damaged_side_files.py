"""Brokers that start with damaged files beside their logs: no record is absent without a report."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.base.errors import ConfigError
from ottla.server.node import Node
from ottla.storage.files import checkpoints
from ottla.tools.main import run
from ottla.wire.records.records import iterate_batches
from tests.integration.server.test_damaged_topic_id import OTHER_ID, node_in, topic_of_batches

pytestmark = pytest.mark.slow

BATCHES, MIXTURES = 40, 40
OF_LOG = (
    *(".index", ".timeindex", ".txnindex", ".snapshot"),
    checkpoints.LEADER_EPOCH_FILE,
    checkpoints.PARTITION_METADATA_FILE,
)
OF_DIRECTORY = (
    checkpoints.RECOVERY_POINT_FILE,
    checkpoints.HIGH_WATERMARK_FILE,
    checkpoints.LOG_START_FILE,
    checkpoints.CLEANER_FILE,
    checkpoints.META_PROPERTIES_FILE,
    checkpoints.REGISTRATIONS_FILE,
    checkpoints.CLEAN_SHUTDOWN_FILE,
)
OTHERS = {
    checkpoints.LEADER_EPOCH_FILE: checkpoints.encode_epochs([(0, 0), (3, 5), (9, 2000)]),
    checkpoints.PARTITION_METADATA_FILE: checkpoints.encode_partition_metadata(OTHER_ID),
    checkpoints.META_PROPERTIES_FILE: b"version=0\nbroker.id=7\n",
    checkpoints.REGISTRATIONS_FILE: checkpoints.encode_registrations([(5, 5)]),
    checkpoints.CLEAN_SHUTDOWN_FILE: b"",
    **{name: checkpoints.encode_offsets({("t", 0): 9999}) for name in OF_DIRECTORY[:4]},
}


def of_another(path: Path) -> None:
    """Replace a file by the one of another log, segment or broker."""
    segments = [item for item in path.parent.iterdir() if item.suffix == path.suffix != ""]
    sibling = segments[0].read_bytes() if segments else b""
    path.write_bytes(OTHERS.get(path.name, sibling))


def ways_of(rng: random.Random) -> dict[str, Callable[[Path], object]]:
    """Return the ways to damage a file."""
    return {
        "removed": Path.unlink,
        "empty": lambda path: path.write_bytes(b""),
        "truncated": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
        "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
        "random": lambda path: path.write_bytes(rng.randbytes(max(40, path.stat().st_size))),
        "of another": of_another,
    }


def damage(logs: Path, rng: random.Random) -> dict[str, str]:
    """Damage some of the files, each kind in one way; return the ways."""
    ways = ways_of(rng)
    chosen = {
        kind: rng.choice(list(ways)) for kind in (*OF_LOG, *OF_DIRECTORY) if rng.random() < 0.35
    }
    # Most starts with these are refused: once in a while is enough.
    if rng.random() < 0.7:
        chosen.pop(checkpoints.META_PROPERTIES_FILE, None)
    for path in sorted([*logs.iterdir(), *(logs / "t-0").iterdir()]):
        for kind, way in chosen.items():
            if path.is_file() and path.name.endswith(kind):
                ways[way](path)
    return chosen


def readable(node: Node) -> list[tuple[int, int]]:
    """Return first and last offset of each batch that consumers can read."""
    log = node.broker.replicas.get("t", 0).log
    spans, offset = [], log.log_start_offset
    while offset < log.log_end_offset:
        fetched = log.read(offset, 1 << 20, max_offset=log.high_watermark)
        assert fetched is not None
        headers = [header for _, header in iterate_batches(fetched.data)]
        assert headers[0].base_offset == offset
        spans += [(header.base_offset, header.last_offset) for header in headers]
        offset = headers[-1].last_offset + 1
    return spans


async def started(folder: Path) -> Node:
    """Start a broker."""
    node = node_in(folder)
    await node.start()
    return node


async def test_every_record_is_readable_or_reported_and_restored(tmp_path: Path) -> None:
    """Random subsets of all files beside the logs are damaged in random ways."""
    original, copy = tmp_path / "original", tmp_path / "copy"
    node = await topic_of_batches(original, BATCHES)
    expected = readable(node)
    assert len(expected) == BATCHES
    await node.stop()
    outcomes = set()
    for seed in range(MIXTURES):
        shutil.copytree(original, copy)
        ways = damage(copy / "logs", random.Random(seed))
        try:
            node = await started(copy)
        except ConfigError as error:
            # Whose data this is cannot be decided.
            assert str(copy / "logs") in str(error), (seed, ways)
            outcomes.add("refused")
        else:
            if (spans := readable(node)) != expected:
                assert spans == [], (seed, ways)
                damaged = node.broker.replicas.directories.damaged()
                assert "ottla log repair" in damaged["t", 0], (seed, ways)
                await node.stop()
                assert run(["log", "repair", "--data", str(copy / "logs"), "--execute"]) == 0
                node = await started(copy)
                outcomes.add("repaired")
            assert readable(node) == expected, (seed, ways)
            await node.stop()
        outcomes.add("served")
        shutil.rmtree(copy)
    assert outcomes == {"refused", "repaired", "served"}
