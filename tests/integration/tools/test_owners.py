"""How the process that uses a directory is stopped."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.base.platform.processes import await_end
from ottla.tools.owners import owner_of, stop_owner

# It closes the directory at SIGTERM, as a broker does, and ends when its input does.
_OWNER = """
import signal, sys
from ottla.base.files import RealFileSystem
from ottla.storage.files.checkpoints import LOCK_FILE
lock = RealFileSystem().lock(f"{sys.argv[1]}/{LOCK_FILE}")
def close(*_):
    lock.release()
    print("closed", flush=True)
signal.signal(signal.SIGTERM, close)
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that uses the directory."""
    with subprocess.Popen(
        [sys.executable, "-c", _OWNER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process
        process.kill()


def test_stop_returns_after_the_end_of_the_process(
    owner: subprocess.Popen[str], tmp_path: Path
) -> None:
    """A closed directory is not enough: until its end, the process has its ports."""
    assert owner_of(str(tmp_path)) == owner.pid
    stop = threading.Thread(target=stop_owner, args=(str(tmp_path), owner.pid, "the broker", 60))
    stop.start()
    assert owner.stdout is not None
    assert owner.stdout.readline() == "closed\n"
    stop.join(0.3)
    assert stop.is_alive()
    assert owner_of(str(tmp_path)) is None
    assert owner.stdin is not None
    owner.stdin.close()
    stop.join(60)
    assert not stop.is_alive()
    assert owner.poll() == 0


def test_process_that_continues_has_not_ended(owner: subprocess.Popen[str]) -> None:
    """The wait for its end is limited; a process that is gone has ended."""
    assert not await_end(owner.pid, 0)
    owner.kill()
    assert await_end(owner.pid, 1e300)
    owner.wait()
    assert await_end(owner.pid, 0)


def test_the_end_of_a_process_is_noticed_without_process_descriptors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A zombie has ended, as for Linux's own call."""
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert not await_end(process.pid, 0)
        assert process.stdin is not None
        process.stdin.close()
        assert await_end(process.pid, 30)
    assert await_end(process.pid, 0)
