"""Measure the processor time of a process with all its children, and the speed of the machine."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

# The fields utime, stime, cutime and cstime of /proc/PID/stat, behind the program's name (proc(5)).
_TIMES = slice(11, 15)

# The loop below takes this long on the machine whose processor seconds the budgets state.
REFERENCE_LOOP_SECONDS = 0.0045
_LOOP = 200_000


def processor_seconds() -> float:
    """Return the processor seconds of this process and of all its descendants so far.

    A descendant that has ended counts if its parent has waited for it.
    """
    times = os.times()
    own = times.user + times.system + times.children_user + times.children_system
    return own + sum(_seconds_of(pid) for pid in _descendants(os.getpid()))


def loop_seconds() -> float:
    """Return the processor seconds of a fixed loop, which measures how fast the machine is now."""
    start = time.process_time()
    total = 0
    for number in range(_LOOP):
        total += number & 7
    assert total
    return time.process_time() - start


def _descendants(pid: int) -> Iterator[int]:
    # A process lists the children of each of its threads: far cheaper than all processes' parents.
    for thread in _entries(Path(f"/proc/{pid}/task")):
        for child in _read(thread / "children").split():
            yield int(child)
            yield from _descendants(int(child))


def _seconds_of(pid: int) -> float:
    fields = _read(Path(f"/proc/{pid}/stat")).rpartition(b")")[2].split()
    return sum(int(field) for field in fields[_TIMES]) / _TICKS_PER_SECOND


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _read(path: Path) -> bytes:
    """Return a file of /proc; nothing if the process has ended."""
    try:
        return path.read_bytes()
    except OSError:
        return b""
