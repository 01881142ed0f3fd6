"""A log directory that another process has locked."""

import subprocess
import sys
from pathlib import Path

import pytest

from ottla.base.errors import StorageError
from ottla.storage.config import LogConfig
from tests.unit.storage.world import World

CONFIG = LogConfig(segment_bytes=500, file_delete_delay_ms=1000)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a world with a log directory of its own."""
    return World(tmp_path / "data", CONFIG)


def test_a_directory_locked_by_another_process_is_not_opened(world: World) -> None:
    """The lock on the .lock file is of the same kind as the one that Java brokers take."""
    world.path.mkdir()
    program = (
        "import fcntl, sys\n"
        f"file = open({str(world.path / '.lock')!r}, 'w')\n"
        "fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "print('locked', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == b"locked\n"
        with pytest.raises(StorageError, match="its process is not known"):
            world.directories()
        holder.stdin.close()
    world.directories().close()
