"""Durability, reads that do not wait for a device, and locks.

Durability: `sync_data` and `sync_all` return when the device has the data. On Linux and the BSDs,
fdatasync and fsync do that. On macOS, fsync only passes the data to the device, whose cache a power
loss empties (fsync(2)), so F_FULLFSYNC is used there. File systems without it (network, some
external disks) get fsync.

Not done: on systems other than Linux no call reports whether the page cache has a page, so a read
of a file that is not cached blocks the event loop until the device responds.
"""

import errno
import os
import struct
from collections.abc import Callable, Sequence
from typing import Any

from ottla.base.platform import IS_LINUX

try:
    import fcntl
except ModuleNotFoundError:
    # Windows.
    fcntl = None  # type: ignore[assignment]

_UNSUPPORTED = (errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOTSUP)
# struct flock of Linux: exclusive, from the start to the end of the file; a lock of the open file
# has no process id.
_FLOCK = "hhqqi4x"


def sync_device(fd: int) -> None:
    """Sync as macOS offers it: with the cache of the device."""
    try:
        fcntl.fcntl(fd, _FULL_SYNC)
    except OSError as error:
        if error.errno not in (*_UNSUPPORTED, errno.EINVAL, errno.ENOTTY):
            raise
        os.fsync(fd)


_FULL_SYNC: int = getattr(fcntl, "F_FULLFSYNC", -1)
# Both take a descriptor, and raise OSError.
sync_all: Callable[[int], None] = sync_device if _FULL_SYNC >= 0 else os.fsync
sync_data: Callable[[int], None] = (
    os.fdatasync if hasattr(os, "fdatasync") and _FULL_SYNC < 0 else sync_all
)


def read_and_wait(fd: int, buffers: Sequence[bytearray], position: int, flags: int) -> int:
    """Read as preadv does, into one buffer; may wait for the device."""
    (buffer,) = buffers
    data = os.pread(fd, len(buffer), position)
    buffer[: len(data)] = data
    return len(data)


# `read_vector(fd, (buffer,), position, NO_WAIT)` reads without waiting for a device. It returns the
# number of bytes, and raises BlockingIOError if the page cache does not have the first of them,
# or OSError with EOPNOTSUPP or ENOSYS if the file system does not support the check.
NO_WAIT: int = getattr(os, "RWF_NOWAIT", 0)
read_vector: Callable[[int, Any, int, int], int] = os.preadv if NO_WAIT else read_and_wait


def _lock_open_file(fd: int) -> None:
    lock = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    fcntl.fcntl(fd, fcntl.F_OFD_SETLK, lock)


def lock_with_flock(fd: int) -> None:
    """Lock the whole file of a descriptor with flock(2); BlockingIOError if it is locked."""
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


# Lock the whole file of a descriptor; BlockingIOError if it is locked. It is a lock of the open
# file, not of the process: it excludes another node in this process, and also the POSIX locks that
# Java takes. On Linux flock and those do not see each other; on macOS and the BSDs they do
# (fcntl(2)).
lock_whole_file: Callable[[int], None] = _lock_open_file if IS_LINUX else lock_with_flock


def _is_locked_open_file(fd: int) -> bool:
    query = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    result = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, query)
    return bool(struct.unpack(_FLOCK, result)[0] != fcntl.F_UNLCK)


def is_locked_with_flock(fd: int) -> bool:
    """Return True if another open file has the lock of flock(2)."""
    # flock has no query: a shared lock, for a moment, excludes no other query.
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(fd, fcntl.LOCK_UN)
    return False


# Return True if another open file has locked the whole file of a descriptor that is opened for
# writing.
is_locked: Callable[[int], bool] = _is_locked_open_file if IS_LINUX else is_locked_with_flock
