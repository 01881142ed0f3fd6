"""Truncation that waits for the device off the event loop."""

import asyncio
import errno
from pathlib import Path
from typing import Any

import pytest

from ottla.base.errors import StorageError
from ottla.storage.log.log import Log
from ottla.testing.sim.files import SimFileSystem
from tests.unit.storage.world import World, make_batch, offsets, small_segments


def always() -> bool:
    return True


def filled(folder: Path) -> Log:
    """Return a log of ten records in several segments and two epochs."""
    folder.mkdir()
    log = small_segments(folder).load()
    for number in range(5):
        log.append_as_leader(make_batch(2), 3 + number // 3)
    return log


def state(log: Log) -> tuple[Any, ...]:
    """Return what a truncation changes."""
    names = sorted(name for name in log.files.list(log.directory) if not name.endswith(".deleted"))
    return (
        log.log_start_offset, log.log_end_offset, log.recovery_point, log.bases,
        log.epochs.entries, names, log.size_bytes,
    )  # fmt: skip


@pytest.mark.parametrize("cut", range(11))
def test_result_is_that_of_a_truncation_on_the_loop(tmp_path: Path, cut: int) -> None:
    """Segments, end, epochs and files are the same; the next append continues at the cut."""
    one, other = filled(tmp_path / "one"), filled(tmp_path / "other")
    one.truncation.truncate_to(cut)
    asyncio.run(other.truncation.truncate_to_in_background(cut, always))
    assert state(other) == state(one)
    end = other.log_end_offset
    assert other.append_as_leader(make_batch(), 9).base_offset == end
    assert offsets(other) == list(range(end + 1))


def test_log_that_begins_again_elsewhere_is_empty(tmp_path: Path) -> None:
    """A follower whose leader has deleted its records begins where the leader's log does."""
    one, other = filled(tmp_path / "one"), filled(tmp_path / "other")
    one.truncation.truncate_fully_and_start_at(50)
    asyncio.run(other.truncation.restart_in_background(50, always))
    assert state(other) == state(one)
    assert other.append_as_leader(make_batch(), 9).base_offset == 50


def test_truncation_restores_producers(tmp_path: Path) -> None:
    """The producer may repeat the batches behind the cut."""
    log = small_segments(tmp_path).load()
    for sequence in range(10):
        log.append_as_leader(make_batch(sequence=sequence), 0)
    asyncio.run(log.truncation.truncate_to_in_background(4, always))
    assert log.append_as_leader(make_batch(sequence=3), 0).is_duplicate
    assert log.append_as_leader(make_batch(sequence=4), 0).base_offset == 4


@pytest.mark.parametrize("step", range(3))
def test_truncation_ends_early_when_the_log_is_gone(tmp_path: Path, step: int) -> None:
    """A deleted topic's files must not be opened again; the log has no gap at any step."""
    log = filled(tmp_path / "log")
    responses = [True] * step + [False] * 10

    asyncio.run(log.truncation.truncate_to_in_background(1, lambda: responses.pop(0)))
    assert log.failure is None
    assert offsets(log) == list(range(log.log_end_offset))


def test_failed_sync_makes_the_log_unusable() -> None:
    """A failed sync is not repeated: the log directory goes offline."""
    world = World("/data")
    files = world.files = SimFileSystem()
    files.make_directories("/data")
    log = world.load()
    log.append_as_leader(make_batch(2), 3)
    log.append_as_leader(make_batch(2), 3)
    files.faults.fail("sync", times=-1, error=errno.EIO)
    with pytest.raises(StorageError):
        asyncio.run(log.truncation.truncate_to_in_background(2, always))
    assert log.failure is not None
