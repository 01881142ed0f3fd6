"""A log with transactions: the records that read_committed returns, before and after a restart."""

from pathlib import Path

import pytest

from ottla.storage.files.txn_index import AbortedTransaction
from ottla.wire.records.batch import HEADER_SIZE
from ottla.wire.records.records import iterate_batches
from tests.unit.storage.world import (
    TOPIC_ID,
    World,
    end_transaction,
    fill,
    make_batch,
    offsets,
    small_segments,
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a world with a log directory of its own."""
    return World(tmp_path, file_delete_delay_ms=0)


def test_readers_of_committed_records_stop_at_open_transactions(world: World) -> None:
    """Reads resume when the marker is replicated, and list aborted transactions."""
    log = world.load()
    fill(log, 1)
    log.append_as_leader(make_batch(2, sequence=0, transactional=True), 0)
    fill(log, 1)
    assert log.last_stable_offset(4) == 1
    end_transaction(log, "ABORT")
    assert log.last_stable_offset(4) == 1
    assert log.last_stable_offset(5) == 5
    assert log.aborted_transactions(0, 5) == [AbortedTransaction(7, 1, 4, 5)]
    assert log.aborted_transactions(0, 1) == []


def test_last_stable_offset_is_not_below_the_log_start(world: World) -> None:
    """DeleteRecords may pass an open transaction, or one whose marker may be lost."""
    log = world.load()
    log.append_as_leader(make_batch(2, sequence=0, transactional=True), 0)
    fill(log, 3)
    log.truncation.advance_log_start_offset(4)
    assert log.last_stable_offset(5) == 4
    assert log.last_stable_offset(4) == 4
    end_transaction(log, "COMMIT")
    assert log.last_stable_offset(5) == 4
    assert log.last_stable_offset(6) == 6


def test_transactions_survive_a_restart(tmp_path: Path) -> None:
    """After a clean or unclean restart transactions are still open or aborted."""
    world = small_segments(tmp_path)
    log = world.load()
    for producer_id in range(20, 26):
        data = make_batch(1, sequence=0, producer_id=producer_id, transactional=True)
        log.append_as_leader(data, 0)
        end_transaction(log, "ABORT" if producer_id % 2 else "COMMIT", producer_id)
    log.append_as_leader(make_batch(sequence=0, transactional=True), 0)
    aborted = log.aborted_transactions(0, 99)
    assert len(aborted) == 3
    log.abandon()
    for clean in (False, True):
        log = world.load(clean=clean)
        assert log.aborted_transactions(0, 99) == aborted
        assert log.last_stable_offset(log.log_end_offset) == 12
        log.close()


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("damage", [b"garbage", bytes(34), b""])
def test_damaged_transaction_index_is_rebuilt(tmp_path: Path, damage: bytes, clean: bool) -> None:
    """It is rebuilt from the markers in the log, also an empty one, which was created for an entry."""
    world = small_segments(tmp_path)
    log = world.load()
    for producer_id in range(20, 26):
        data = make_batch(1, sequence=0, producer_id=producer_id, transactional=True)
        log.append_as_leader(data, 0)
        end_transaction(log, "ABORT", producer_id)
    aborted = log.aborted_transactions(0, 99)
    log.close()
    for name in world.names(".txnindex"):
        (world.folder / name).write_bytes(damage)
    log = world.load(clean=clean)
    assert log.aborted_transactions(0, 99) == aborted
    assert offsets(log)[0] == 0


def damaged_marker(path: Path) -> tuple[World, list[AbortedTransaction]]:
    """Return a world with aborted transactions; the body of the second marker is damaged."""
    world = small_segments(path)
    directories = world.directories()
    log = directories.create("t", 0, TOPIC_ID, world.config)
    for producer_id in range(20, 26):
        data = make_batch(1, sequence=0, producer_id=producer_id, transactional=True)
        log.append_as_leader(data, 0)
        end_transaction(log, "ABORT", producer_id)
    aborted = log.aborted_transactions(0, 99)
    directories.close()
    first = world.folder / world.names(".log")[0]
    content = bytearray(first.read_bytes())
    second = [at for at, header in iterate_batches(bytes(content)) if header.is_control][1]
    content[second + HEADER_SIZE : second + HEADER_SIZE + 8] = b"\xff" * 8
    first.write_bytes(content)
    return world, aborted


@pytest.mark.parametrize("lost", [".txnindex", ".snapshot"])
def test_damaged_marker_does_not_prevent_the_start(tmp_path: Path, lost: str) -> None:
    """The marker is reported; the other aborted transactions are read from the log."""
    world, aborted = damaged_marker(tmp_path)
    for name in world.names(lost):
        (world.folder / name).write_bytes(b"")
    directories = world.directories()
    log = directories.logs()["t", 0]
    assert directories.damaged().keys() == {("t", 0)}
    rebuilt = log.aborted_transactions(0, 99)
    if lost == ".txnindex":
        others = [entry for entry in aborted if entry.producer_id != 21]
        assert [entry[:3] for entry in rebuilt] == [entry[:3] for entry in others]
    else:
        assert rebuilt == aborted
    assert log.last_stable_offset(12) == 2
    log.append_as_leader(make_batch(), 0)
    directories.close()


def test_damaged_marker_does_not_end_a_truncation(tmp_path: Path) -> None:
    """A follower that reads its producers again after a truncation continues behind the marker."""
    world, _ = damaged_marker(tmp_path)
    for name in world.names(".snapshot"):
        (world.folder / name).unlink()
    directories = world.directories()
    log = directories.logs()["t", 0]
    log.truncation.truncate_to(8)
    assert log.log_end_offset == 8
    assert sorted(log.producers.producers) == [20, 21, 22, 23]
    directories.close()
