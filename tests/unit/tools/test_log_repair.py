"""`ottla log repair`: logs that a broker has set aside are put back in their places."""

import json
from pathlib import Path

import pytest

from ottla.storage.directories.strays import StrayReason
from ottla.storage.files import checkpoints
from ottla.tools.main import run
from tests.folders import contents
from tests.unit.storage.world import TOPIC_ID, World, make_batch, offsets

COUNT = 40


def set_aside(folder: Path, reason: StrayReason, *, is_replaced: bool = True) -> tuple[World, str]:
    """Return a closed directory with a stray log of 40 records, and a new log in its place."""
    world = World(folder)
    directories = world.directories(broker_id=1)
    log = directories.create("t", 0, bytes(15) + b"\x09", world.config)
    for _ in range(COUNT):
        log.append_as_leader(make_batch(), 0)
    name = Path(directories.set_aside("t", 0, reason)).name
    if is_replaced:
        new = directories.create("t", 0, TOPIC_ID, world.config)
        new.append_as_leader(make_batch(), 0)
        directories.create("u", 1, TOPIC_ID, world.config)
        directories.store_high_watermarks({("t", 0): 1, ("u", 1): 0})
    directories.close()
    return world, name


@pytest.mark.parametrize("is_replaced", [False, True])
def test_log_with_another_topic_id_is_restored_with_all_its_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_replaced: bool
) -> None:
    """The log in its place is set aside in turn, and the controller's topic id is accepted."""
    world, name = set_aside(tmp_path, StrayReason.OTHER_TOPIC_ID, is_replaced=is_replaced)
    line = ["log", "repair", "--data", str(tmp_path), "--output", "json"]
    before = contents(tmp_path)
    assert run(line) == 0
    shown = capsys.readouterr()
    (row,) = json.loads(shown.out)
    assert (row["log"], row["restored"], row["executed"]) == (name, "t-0", False)
    assert row["replaces"] == ("t-0" if is_replaced else None)
    assert "repeat the command with --execute" in shown.err
    assert contents(tmp_path) == before
    assert run([*line, "--execute"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    if is_replaced:
        # Offsets of the replaced log are forgotten.
        path = tmp_path / checkpoints.HIGH_WATERMARK_FILE
        assert checkpoints.parse_offsets(path.read_bytes()) == {("u", 1): 0}
    directories = world.directories()
    log = directories.get("t", 0)
    assert log is not None
    assert directories.create("t", 0, TOPIC_ID, world.config) is log
    assert offsets(log) == list(range(COUNT))
    if is_replaced:
        (replaced,) = directories.directories()[0].strays.listed()
        assert (replaced.name, replaced.reason) == (row["replaces"], StrayReason.REPLACED)
        path = tmp_path / checkpoints.HIGH_WATERMARK_FILE
        assert checkpoints.parse_offsets(path.read_bytes()) == {("u", 1): 0}
    directories.close()
    assert run(line) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_log_of_a_replica_that_was_moved_away_is_restored_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without its name it stays where it is: another broker has the replica."""
    world, name = set_aside(tmp_path, StrayReason.UNASSIGNED, is_replaced=False)
    line = ["log", "repair", "--data", str(tmp_path), "--execute"]
    assert run(line) == 0
    assert "No log has to be restored." in "".join(capsys.readouterr())
    assert run([*line, name]) == 0
    log = world.directories().get("t", 0)
    assert log is not None
    assert log.log_end_offset == COUNT


def test_repair_needs_the_lock_and_a_log_that_exists(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A running broker would serve one log and lose the other."""
    world, _ = set_aside(tmp_path, StrayReason.OTHER_TOPIC_ID)
    line = ["log", "repair", "--data", str(tmp_path), "--execute"]
    assert run([*line, "t-0.5d41-stray"]) != 0
    assert "has a folder 't-0.5d41-stray'" in capsys.readouterr().err
    directories = world.directories()
    assert run(line) != 0
    assert "another broker is using this directory" in capsys.readouterr().err
    directories.close()
