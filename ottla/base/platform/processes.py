"""Processes: their figures, their command lines, and how to wait for the end of one.

Not done: without /proc, the memory of the own process is its highest so far, its start is the time
of its first figures, and the bytes read from devices are not known.
"""

import os
import select
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ottla.base.platform import IS_LINUX, IS_MACOS

try:
    import resource
except ModuleNotFoundError:
    # Windows.
    resource = None  # type: ignore[assignment]

_STAT, _BOOT = "/proc/self/stat", "/proc/stat"
_DESCRIPTORS = "/proc/self/fd" if IS_LINUX else "/dev/fd"
_IO = "/proc/self/io"
# Fields of /proc/self/stat after the name of the program, counted from 0.
_USER_TICKS, _SYSTEM_TICKS, _THREADS, _START_TICKS = 11, 12, 17, 19
_VIRTUAL_BYTES, _RESIDENT_PAGES = 20, 21
# getrusage(2): bytes on macOS, kilobytes elsewhere.
_RESIDENT_UNIT = 1 if IS_MACOS else 1024
_SECONDS_MAX = 10
_POLL_SECONDS = 0.05
# The system takes a number of ms with 32 bits.
_WAIT_SECONDS_MAX = 2_000_000.0

Read = Callable[[str], bytes]
List = Callable[[str], list[str]]


class ProcessFigures(NamedTuple):
    """The operating system's figures of the process; times in seconds. 0 bytes are unknown."""

    cpu_seconds: float
    started_seconds: float
    virtual_bytes: int
    resident_bytes: int
    threads_count: int


def own_figures(read: Read) -> ProcessFigures | None:
    """Return the figures of this process; None if they are not available.

    `read` returns the content of a file, and raises OSError.
    """
    if not IS_LINUX:
        return figures_of_usage()
    try:
        fields = _fields_of_stat(read(_STAT))
        boot = read(_BOOT).split(b"btime ")[1].split()[0]
    except (OSError, IndexError):
        return None
    ticks = os.sysconf("SC_CLK_TCK")
    return ProcessFigures(
        (int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS])) / ticks,
        int(boot) + int(fields[_START_TICKS]) / ticks,
        int(fields[_VIRTUAL_BYTES]),
        int(fields[_RESIDENT_PAGES]) * os.sysconf("SC_PAGE_SIZE"),
        int(fields[_THREADS]),
    )


def _fields_of_stat(stat: bytes) -> list[bytes]:
    # The name of the program, in parentheses, may contain any character.
    return stat.rpartition(b")")[2].split()


@cache
def _started_seconds() -> float:
    return time.time()


def figures_of_usage() -> ProcessFigures | None:
    """Return the figures of getrusage(2)."""
    if resource is None:
        return None
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return ProcessFigures(
        usage.ru_utime + usage.ru_stime,
        _started_seconds(),
        0,
        usage.ru_maxrss * _RESIDENT_UNIT,
        threading.active_count(),
    )


def open_descriptor_count(names_in: List) -> int:
    """Return how many descriptors the process has open; 0 if that is unknown.

    `names_in` lists a folder, and raises OSError.
    """
    try:
        return len(names_in(_DESCRIPTORS))
    except OSError:
        return 0


def device_bytes(read: Read) -> tuple[int, int] | None:
    """Return the bytes read from devices and written to them for the process; None if unknown."""
    if not IS_LINUX:
        return None
    try:
        rows = dict(line.split(b": ") for line in read(_IO).splitlines())
        return int(rows[b"read_bytes"]), int(rows[b"write_bytes"])
    except (OSError, KeyError, ValueError):
        return None


def limit_this_process(*, cpu_seconds: int, address_bytes: int, file_bytes: int) -> None:
    """Limit processor time, address space and the size of files for good, and write no core file.

    macOS does not limit address space: it accepts the number, or rejects it.
    """
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
    with suppress(*(() if IS_LINUX else (ValueError,))):
        resource.setrlimit(resource.RLIMIT_AS, (address_bytes, address_bytes))
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def command_line_of(process_id: int) -> list[str]:
    """Return the command line of a process as a list; it is empty if the process has ended.

    Without /proc, words that contain blanks are split.
    """
    if not IS_LINUX:
        return _ps(process_id, "command").split()
    try:
        text = Path(f"/proc/{process_id}/cmdline").read_bytes()
    except OSError:
        return []
    return [os.fsdecode(word) for word in text.split(b"\0")[:-1]]


def cpu_seconds_of(process_id: int) -> float:
    """Return the processor time in seconds that a running process has used so far."""
    if not IS_LINUX:
        return seconds_of_ps(_ps(process_id, "time"))
    fields = _fields_of_stat(Path(f"/proc/{process_id}/stat").read_bytes())
    ticks = int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS])
    return ticks / os.sysconf("SC_CLK_TCK")


def _ps(process_id: int, column: str) -> str:
    """Return a column of ps(1); empty if the process has ended."""
    arguments = ["ps", "-ww", "-p", str(process_id), "-o", f"{column}="]
    try:
        result = subprocess.run(  # noqa: S603 - the system's own, with a number
            arguments, capture_output=True, timeout=_SECONDS_MAX, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return result.stdout.decode("utf-8", "replace").strip()


def seconds_of_ps(text: str) -> float:
    """Return the seconds of a time of ps(1): `1:02.50`, `01:02:03` or `4-01:02:03`."""
    days, dash, clock = text.rpartition("-")
    seconds = 0.0
    for part in clock.split(":"):
        seconds = 60 * seconds + float(part or 0)
    return seconds + (86_400 * int(days) if dash else 0)


def await_end(process_id: int, timeout: float) -> bool:
    """Wait until a process has ended with all its threads; return False after `timeout` seconds.

    Linux reports the end; on other systems this function checks 20 times a second.
    """
    if hasattr(os, "pidfd_open"):
        return _await_descriptor(process_id, timeout)
    deadline = time.monotonic() + timeout
    while _runs(process_id):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _await_descriptor(process_id: int, timeout: float) -> bool:
    try:
        descriptor = os.pidfd_open(process_id)
    except ProcessLookupError:
        return True
    try:
        end = select.poll()
        end.register(descriptor, select.POLLIN)
        return bool(end.poll(min(timeout, _WAIT_SECONDS_MAX) * 1000))
    finally:
        os.close(descriptor)


def _runs(process_id: int) -> bool:
    # A zombie has ended, as it has for Linux: Z is its state in ps(1).
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _ps(process_id, "stat").startswith("Z")
