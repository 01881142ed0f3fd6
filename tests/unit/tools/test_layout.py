"""`ottla.tools.broker.layout`: which files are removed if brokers do not start."""

from pathlib import Path

import pytest

from ottla.base.errors import ConfigError
from ottla.base.files import RealFileSystem
from ottla.tools.broker.layout import removed_unless_started


def _format(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in (".lock", "meta.properties", "cluster.journal.0", "log-start-offset-checkpoint"):
        (folder / name).touch()


def _fail_in(*folders: Path, is_started: bool = False) -> None:
    with (
        pytest.raises(ConfigError, match="no port"),
        removed_unless_started([str(folder) for folder in folders]) as on_started,
    ):
        for folder in folders:
            _format(folder)
        if is_started:
            on_started()
        raise ConfigError("no port")


def test_new_folders_and_their_parents_are_removed(tmp_path: Path) -> None:
    """Several log directories may share a parent that was absent as well."""
    _fail_in(tmp_path / "a" / "b" / "1", tmp_path / "a" / "b" / "2")
    assert list(tmp_path.iterdir()) == []


def test_folder_that_was_not_created_does_not_stop_the_removal(tmp_path: Path) -> None:
    """The start may fail before all log directories exist."""
    first, second = tmp_path / "1", tmp_path / "2"
    with pytest.raises(ConfigError), removed_unless_started([str(second), str(first)]):
        _format(first)
        raise ConfigError("no space")
    assert list(tmp_path.iterdir()) == []


def test_folder_with_other_files_is_kept(tmp_path: Path) -> None:
    """A folder that is not empty before the start is not cleaned up."""
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "notes").touch()
    _fail_in(tmp_path / "old", tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert len(list((tmp_path / "old").iterdir())) == 5


def test_brokers_that_have_started_keep_their_files(tmp_path: Path) -> None:
    """A later failure, such as a disk's, removes nothing."""
    _fail_in(tmp_path / "data", is_started=True)
    assert (tmp_path / "data" / "meta.properties").exists()


def test_folder_with_a_topic_is_kept(tmp_path: Path) -> None:
    """A client may have created a topic before the start failed."""
    data = tmp_path / "data"
    with pytest.raises(ConfigError), removed_unless_started([str(data)]):
        _format(data)
        (data / "t-0").mkdir()
        (data / "t-0" / "00000000000000000000.log").touch()
        raise ConfigError("no port")
    assert (data / "meta.properties").exists()


def test_folder_that_another_process_has_locked_is_kept(tmp_path: Path) -> None:
    """If two brokers start in one folder at the same time, the second one removes nothing."""
    data = tmp_path / "data"
    with pytest.raises(ConfigError), removed_unless_started([str(data)]):
        _format(data)
        lock = RealFileSystem().lock(str(data / ".lock"))
        raise ConfigError("another process uses this directory")
    lock.release()
    assert (data / "meta.properties").exists()
