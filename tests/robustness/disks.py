"""Disks that fail under a broker process: a full one, and one on which nothing becomes durable."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pytest

from tests import strace

# What a small disk holds at first, and after it has been mended.
_SMALL, _LARGE = "6m", "200m"
_SYNCS_BEFORE = 60


class FailingDisk(Protocol):
    """A folder of a disk that fails before some hundred records of 20 KB are on it."""

    path: Path
    # What the system says of it.
    reason: str

    def serve(self, process_id: int, log: Path) -> None:
        """Fail sooner or later from now on, under a process that writes to that log."""
        ...

    def mend(self) -> None:
        """Fail no more."""
        ...


def _run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)


def _must(*words: object) -> None:
    done = _run(*words)
    assert done.returncode == 0, f"{words}: {done.stderr}"


class FullDisk:
    """A small tmpfs: a write for which there is no room fails, and leaves a part of the record."""

    reason = "No space left on device"

    def __init__(self, path: Path) -> None:
        self.path = path
        done = _run("mount", "-t", "tmpfs", "-o", f"size={_SMALL}", "tmpfs", path)
        if done.returncode:
            pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")

    def serve(self, process_id: int, log: Path) -> None:
        """It fails by itself."""

    def mend(self) -> None:
        _must("mount", "-o", f"remount,size={_LARGE}", self.path)

    def close(self) -> None:
        _must("umount", "-l", self.path)


class DeafDisk:
    """Writes succeed, and at some point fsync fails; strace makes the system say so."""

    reason = "Input/output error"

    def __init__(self, path: Path) -> None:
        self.path = path
        self._strace: subprocess.Popen[str] | None = None

    def serve(self, process_id: int, log: Path) -> None:
        failure = f"inject=fsync,fdatasync:error=EIO:when={_SYNCS_BEFORE}+"
        self._strace = strace.attach(process_id, "-P", str(log), "-e", failure, "-o", "/dev/null")

    def mend(self) -> None:
        self.close()

    def close(self) -> None:
        if self._strace is not None:
            strace.detach(self._strace)
            self._strace = None


@contextmanager
def failing_disk(kind: type[FullDisk] | type[DeafDisk], path: Path) -> Iterator[FailingDisk]:
    """Make a disk; the test is skipped where that is not allowed or cannot be done."""
    path.mkdir()
    disk = kind(path)
    try:
        yield disk
    finally:
        disk.close()
