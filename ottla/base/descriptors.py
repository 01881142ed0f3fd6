"""File descriptors of the process: their limit, and a few that are reserved for file operations.

A lack of descriptors (EMFILE) or of open files in the system (ENFILE) does not mean that a disk has
failed: the operation fails and may be retried.
"""

import errno
import os
import resource
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# Each is sufficient for one short operation of the event loop or of a thread of its pool.
SPARE_COUNT = 16


def is_exhausted(error: OSError) -> bool:
    """Return True if an operation failed because no descriptor was free."""
    return error.errno in (errno.EMFILE, errno.ENFILE)


def soft_limit() -> int:
    """Return the number of descriptors that the process may have open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def raise_soft_limit() -> int:
    """Raise the soft limit to the hard limit, as the JVM does; return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            return soft
    return hard


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
                self._held.append(os.eventfd(0, os.EFD_CLOEXEC))
            except OSError:
                return


# One for the process, because descriptors belong to the process.
SPARES = SpareDescriptors()
