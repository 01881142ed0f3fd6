"""File descriptors of the process: their limit, and a few that are reserved for file operations.

A lack of descriptors (EMFILE) or of open files in the system (ENFILE) does not mean that a disk has
failed: the operation fails and may be retried.
"""

import errno
import os
from collections.abc import Callable
from typing import TypeVar

try:
    import resource
except ModuleNotFoundError:
    # Windows.
    resource = None  # type: ignore[assignment]

# Windows has no limit for handles that a process could query. Its C library opens so many files.
_WITHOUT_LIMIT = 8192
# macOS rejects an unlimited number, and every number above OPEN_MAX (setrlimit(2)).
_OPEN_MAX = 10_240

T = TypeVar("T")

# Each is sufficient for one short operation of the event loop or of a thread of its pool.
SPARE_COUNT = 16


def is_exhausted(error: OSError) -> bool:
    """Return True if an operation failed because no descriptor was free."""
    return error.errno in (errno.EMFILE, errno.ENFILE)


def open_file_limits() -> tuple[int, int]:
    """Return the soft and the hard limit of descriptors that the process may have open."""
    if resource is None:
        return _WITHOUT_LIMIT, _WITHOUT_LIMIT
    return resource.getrlimit(resource.RLIMIT_NOFILE)


def soft_limit() -> int:
    """Return the number of descriptors that the process may have open."""
    return open_file_limits()[0]


def raise_soft_limit() -> int:
    """Raise the soft limit to the hard limit or as near as possible, like the JVM; return it."""
    soft, hard = open_file_limits()
    for wanted in (hard, _OPEN_MAX):
        if resource is None or soft == wanted:
            return soft
        if wanted == _OPEN_MAX and soft >= 0 and not soft < wanted:
            return soft
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            continue
        return wanted
    return soft


def open_null_device() -> int:
    """Open a descriptor of the null device, on systems without eventfd."""
    return os.open(os.devnull, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))


def _open_event() -> int:
    return os.eventfd(0, os.EFD_CLOEXEC)


# Opens a descriptor that has no other purpose; raises OSError. An eventfd needs no file system.
open_reserved: Callable[[], int] = _open_event if hasattr(os, "eventfd") else open_null_device


class SpareDescriptors:
    """Reserved descriptors, which are closed if a file operation finds no other, and reopened after
    it.
    """

    def __init__(self) -> None:
        self._wanted_count = 0
        self._held: list[int] = []

    def hold(self, count: int) -> None:
        """Reserve up to `count` descriptors; 0 closes all of them."""
        self._wanted_count = count
        while len(self._held) > count:
            os.close(self._held.pop())
        self._refill()

    def run(self, work: Callable[[], T]) -> T:
        """Return the result of `work`; if no descriptor is free, free one and retry.

        Raises the OSError of `work` if no reserved descriptor is left.
        """
        while True:
            try:
                result = work()
            except OSError as error:
                if not is_exhausted(error):
                    raise
                try:
                    os.close(self._held.pop())
                except IndexError:
                    raise error from None
            else:
                if len(self._held) < self._wanted_count:
                    self._refill()
                return result

    def _refill(self) -> None:
        while len(self._held) < self._wanted_count:
            try:
                self._held.append(open_reserved())
            except OSError:
                return


# One for the process, because descriptors belong to the process.
SPARES = SpareDescriptors()
