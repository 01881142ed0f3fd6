"""The folder of an instance keeps the state of tasks that are used, or were used recently."""

from pathlib import Path

from ottla.streams.local.disk.directory import StateDirectory

_DELAY_MS = 1_000


def test_state_that_is_not_used_is_deleted_after_the_delay(tmp_path: Path) -> None:
    """The time begins when a worker closes the task, or when the state was found after a start."""
    now = 0.0
    directory = StateDirectory(str(tmp_path), clock=lambda: now)
    directory.open()
    for task in ("0_0", "0_1", "0_2"):
        database = directory.database(task)
        assert database is not None
        database.close()
    directory.release("0_1")
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    (folder / "0_3").mkdir()
    directory.discard_unused(_DELAY_MS)
    assert _tasks(folder) == ["0_0", "0_1", "0_2", "0_3"]
    now = 0.5
    directory.release("0_2")
    now = 1.0
    directory.discard_unused(_DELAY_MS)
    assert _tasks(folder) == ["0_0", "0_2"]
    now = 1.5
    directory.discard_unused(_DELAY_MS)
    assert _tasks(folder) == ["0_0"]
    assert directory.database("0_1") is not None
    directory.close()


def _tasks(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_dir())
