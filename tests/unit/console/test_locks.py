"""Locks of clusters, of two consoles with one folder."""

from pathlib import Path

from ottla.base.files import RealFileSystem
from ottla.console.locks import ClusterLocks


def test_one_of_two_consoles_samples_a_cluster_until_it_ends(tmp_path: Path) -> None:
    """The other one can sample other clusters, and takes over after the first one is closed."""
    database = tmp_path / "console.sqlite3"
    first, second = (ClusterLocks(database, RealFileSystem()) for _ in range(2))
    assert first.take("live")
    assert not first.take("live"), "it has been taken before"
    assert not second.take("live")
    assert second.take("test")
    assert (first.holds("live"), second.holds("live"), second.holds("test")) == (True, False, True)
    assert (first.is_with_other("live"), second.is_with_other("live")) == (False, True)
    first.close()
    assert not first.take("live"), "a closed console takes nothing"
    assert second.take("live")
    assert not second.is_with_other("live")
    second.close()


def test_databases_in_memory_are_not_shared() -> None:
    """No file is written."""
    first, second = (ClusterLocks(":memory:", RealFileSystem()) for _ in range(2))
    assert first.take("live")
    assert second.take("live")
    first.close()
    second.close()
