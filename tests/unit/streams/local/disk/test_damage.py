"""Damaged state is never read: it is an earlier batch, whole, or it is discarded."""

import shutil
import sqlite3
import tempfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.streams.local.disk import database as state_database
from ottla.streams.local.disk.database import (
    FILE_NAME,
    SavedState,
    StateDatabase,
    saved_positions,
)
from ottla.streams.local.disk.directory import StateDirectory
from ottla.streams.model.errors import StateDamaged, StreamsError

_BATCHES = 3


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that a process leaves that was killed after some batches, and one after a close."""
    folder = tmp_path_factory.mktemp("killed")
    for name in ("killed", "closed"):
        (folder / f"live-{name}").mkdir()
        database = StateDatabase(str(folder / f"live-{name}"))
        for batch in range(_BATCHES):
            _write(database, batch)
        if name == "closed":
            database.close()
        shutil.copytree(folder / f"live-{name}", folder / name)
        database.close()
    return folder


def _entries(batch: int) -> dict[bytes, bytes]:
    return {b"key-%d" % number: b"%d-%d" % (batch, number) * 5 for number in range(200)}


def _write(database: StateDatabase, batch: int) -> None:
    entries = database.open_map("counts")
    for key, value in _entries(batch).items():
        entries.put(key, value)
    database.save(SavedState("these", {"log": batch}, {}, 1))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damage_is_noticed_or_has_lost_whole_batches(killed: Path, data: st.DataObject) -> None:
    """Files are cut, overwritten with garbage, or missing, after a kill and after a close."""
    with tempfile.TemporaryDirectory() as copy:
        name = data.draw(st.sampled_from(["killed", "closed"]))
        folder = Path(copy) / "task"
        shutil.copytree(killed / name, folder)
        file = data.draw(st.sampled_from(sorted(folder.iterdir())))
        content = file.read_bytes()
        at = data.draw(st.integers(0, max(0, len(content) - 1)))
        how = data.draw(st.sampled_from(["cut", "garbage", "missing"]))
        if how == "missing":
            file.unlink()
        elif how == "cut":
            file.write_bytes(content[:at])
        else:
            garbage = data.draw(st.binary(min_size=1, max_size=300))
            file.write_bytes(content[:at] + garbage + content[at + len(garbage) :])
        try:
            database = StateDatabase(str(folder))
        except StateDamaged:
            return
        batch = database.saved.positions.get("log")
        found = dict(database.open_map("counts").walk())
        database.close()
        assert found == ({} if batch is None else _entries(batch))


def test_a_directory_replaces_damaged_state(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The new state is empty, and a warning names the task."""
    directory = StateDirectory(str(tmp_path))
    directory.open()
    (tmp_path / "local-1" / "0_1").mkdir()
    (tmp_path / "local-1" / "0_1" / FILE_NAME).write_bytes(b"no database" * 500)
    database = directory.database("0_1")
    assert database is not None
    assert database.saved.positions == {}
    assert "Task 0_1: the state on disk is discarded" in caplog.text
    database.close()
    directory.close()


def test_positions_are_read_while_the_database_is_open(tmp_path: Path) -> None:
    """No position is returned for a database that does not exist, or is damaged."""
    assert saved_positions(str(tmp_path)) == {}
    database = StateDatabase(str(tmp_path))
    _write(database, 7)
    assert saved_positions(str(tmp_path)) == {"log": 7}
    database.close()
    (tmp_path / FILE_NAME).write_bytes(b"x" * 5_000)
    assert saved_positions(str(tmp_path)) == {}


def test_a_full_disk_is_an_error_that_names_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch is not written in part: after the error the last one is there."""
    first = StateDatabase(str(tmp_path))
    _write(first, 0)
    first.close()
    limit = (*state_database.PRAGMAS, "PRAGMA max_page_count=1")
    monkeypatch.setattr(state_database, "PRAGMAS", limit)
    database = StateDatabase(str(tmp_path))
    for number in range(5_000):
        database.open_map("counts").put(b"new-%d" % number, b"x" * 100)
    with pytest.raises(StreamsError, match=r"state\.db.*full.*Check the free space"):
        database.save(SavedState("these", {"log": 9}))
    database.close()
    again = StateDatabase(str(tmp_path))
    assert again.saved.positions == {"log": 0}
    assert dict(again.open_map("counts").walk()) == _entries(0)
    again.close()


def test_each_instance_has_the_first_folder_that_is_free(tmp_path: Path) -> None:
    """Instances on one machine share a state_dir; a restart continues with the state of its folder."""
    first, second, third = (StateDirectory(str(tmp_path)) for _ in range(3))
    for directory in (first, second):
        directory.open()
        database = directory.database("0_0")
        assert database is not None
        _write(database, 0 if directory is first else 1)
        database.close()
    first.close()
    third.open()
    assert third.positions() == {"0_0": {"log": 0}}
    assert second.positions() == {"0_0": {"log": 1}}
    for directory in (second, third):
        directory.close()


def test_a_static_member_always_has_the_same_folder(tmp_path: Path) -> None:
    """A second instance of the same name is refused with its process; it can start after a close."""
    first, second = (StateDirectory(str(tmp_path), "reports-1") for _ in range(2))
    first.open()
    with pytest.raises(StreamsError, match=r"in use .*\(process \d+\).*group_instance_id"):
        second.open()
    first.close()
    second.open()
    assert (tmp_path / "local-reports-1").is_dir()
    second.close()


def test_two_workers_do_not_open_one_task(tmp_path: Path) -> None:
    """The second one waits until the first one has closed it."""
    directory = StateDirectory(str(tmp_path))
    directory.open()
    database = directory.database("0_0")
    assert database is not None
    assert directory.database("0_0") is None
    database.close()
    directory.release("0_0")
    again = directory.database("0_0")
    assert again is not None
    again.close()
    directory.close()


def test_the_state_of_instances_that_run_is_not_deleted(tmp_path: Path) -> None:
    """The state of closed ones is; a directory that does not exist is no error."""
    first, second = (StateDirectory(str(tmp_path / "app")) for _ in range(2))
    first.delete()
    for directory in (first, second):
        directory.open()
        database = directory.database("0_0")
        assert database is not None
        database.close()
    first.close()
    first.delete()
    assert list(first.positions()) == []
    assert list(second.positions()) == ["0_0"]
    second.close()


def test_damage_is_remembered_if_its_error_was_ignored(tmp_path: Path) -> None:
    """A processor may handle the error of a read, whose result would be wrong."""
    database = StateDatabase(str(tmp_path))
    _write(database, 0)
    database.close()
    database = StateDatabase(str(tmp_path))
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        connection.execute("UPDATE entries SET value = X'0000'")
    connection.close()
    assert database.damage == ""
    with pytest.raises(StateDamaged):
        database.open_map("counts").get(b"key-1")
    assert "checksum" in database.damage
    database.close()


def test_an_unknown_format_is_discarded(tmp_path: Path) -> None:
    """State of a later version is restored from the changelogs."""
    StateDatabase(str(tmp_path)).close()
    meta = b"later"
    row = zlib.crc32(meta).to_bytes(4, "big") + meta
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        connection.execute("INSERT OR REPLACE INTO meta VALUES (0, ?)", (row,))
    connection.close()
    with pytest.raises(StateDamaged, match="its format b'l' is not known"):
        StateDatabase(str(tmp_path))
    assert saved_positions(str(tmp_path)) == {}
