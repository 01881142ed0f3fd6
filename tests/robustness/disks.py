"""Disks that fail under a broker process: a full one, and one whose fsync fails."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from tests import strace
from tests.runs import needs

# The size of a small disk at first, and after it was enlarged.
_SMALL, _LARGE = "6m", "200m"
_SYNCS_BEFORE = 60


class FailingDisk(Protocol):
    """A folder on a disk that fails before some hundred records of 20 KB are written."""

    path: Path
    # The error message of the operating system.
    reason: str

    def serve(self, process_id: int, log: Path) -> None:
        """Let the disk fail at some time from now on, for a process that writes to that log."""
        ...

    def mend(self) -> None:
        """End the failure."""
        ...


def _run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)


def _must(*words: object) -> None:
    done = _run(*words)
    assert done.returncode == 0, f"{words}: {done.stderr}"


class FullDisk:
    """A small tmpfs: a write that does not fit fails, and leaves a part of the record."""

    reason = "No space left on device"

    def __init__(self, path: Path) -> None:
        self.path = path
        done = _run("mount", "-t", "tmpfs", "-o", f"size={_SMALL}", "tmpfs", path)
        if done.returncode:
            needs.not_permitted("mount", done.stderr)

    def serve(self, process_id: int, log: Path) -> None:
        """Do nothing: the disk fails by itself."""

    def mend(self) -> None:
        _must("mount", "-o", f"remount,size={_LARGE}", self.path)

    def close(self) -> None:
        _must("umount", "-l", self.path)


class DeafDisk:
    """Writes succeed, and at some point fsync fails; strace injects the error."""

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
    """Create a disk; the test is skipped if that is not permitted or not possible."""
    path.mkdir()
    disk = kind(path)
    try:
        yield disk
    finally:
        disk.close()
