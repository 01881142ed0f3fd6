"""The page cache: which bytes of a file it has, and how all of it becomes durable.

Python does not have these calls of Linux: cachestat(2) and syncfs(2).

`is_cached` returns whether a read or `sendfile` would wait for a device. cachestat, from Linux 6.5
on, counts cached pages in about a microsecond. It also counts pages that are still being read, so
the last byte is read as well, without waiting: a device with read-ahead delivers the earlier pages
first. On older kernels the bytes are read without waiting and discarded. `sync_file_system` makes a
whole file system durable. Other systems have neither: there, the module assumes that bytes are
cached, and files are synced one by one.
"""

import ctypes
import errno
import mmap
import os
from collections.abc import Callable

from ottla.base.platform import IS_LINUX

_CACHESTAT = 451
_PAGE_BYTES = mmap.PAGESIZE
_SCRATCH = bytearray(256 * 1024)
_LAST_BYTE = bytearray(1)

if IS_LINUX:
    _libc = ctypes.CDLL(None, use_errno=True)
    _libc.syscall.argtypes = [
        ctypes.c_long,
        ctypes.c_int,
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_uint,
    ]
    _libc.syscall.restype = ctypes.c_long
# struct cachestat_range: offset, length. struct cachestat: cached pages come first.
_range = (ctypes.c_uint64 * 2)()
_counts = (ctypes.c_uint64 * 5)()
_range_address, _counts_address = ctypes.addressof(_range), ctypes.addressof(_counts)
_has_cachestat = True
# Before this version syncfs reports no error of the device.
_SYNCFS_VERSION = (5, 8)
# Others may be on another machine or in another process, which a syncfs need not reach.
_LOCAL_FILE_SYSTEMS = {"btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs"}


def _is_cached_linux(fd: int, position: int, size_bytes: int) -> bool:
    global _has_cachestat
    if size_bytes <= 0:
        return True
    if _has_cachestat:
        _range[0], _range[1] = position, size_bytes
        if _libc.syscall(_CACHESTAT, fd, _range_address, _counts_address, 0) == 0:
            end = position + size_bytes
            pages = -(-end // _PAGE_BYTES) - position // _PAGE_BYTES
            return _counts[0] >= pages and _is_readable(fd, end - 1, 1, _LAST_BYTE)
        # Not supported by this kernel or this file system.
        _has_cachestat = ctypes.get_errno() not in (errno.ENOSYS, errno.EPERM)
    end = position + size_bytes
    while position < end:
        size = min(len(_SCRATCH), end - position)
        if not _is_readable(fd, position, size, _SCRATCH):
            return False
        position += size
    return True


def assume_cached(fd: int, position: int, size_bytes: int) -> bool:
    """Return True, on systems that do not report it."""
    return True


# Returns True if all of these bytes (descriptor, position, size) can be read without waiting for a
# device. Call it from one thread only, the event loop's.
is_cached: Callable[[int, int, int], bool] = _is_cached_linux if IS_LINUX else assume_cached


def _is_readable(fd: int, position: int, size_bytes: int, scratch: bytearray) -> bool:
    try:
        view = memoryview(scratch)[:size_bytes]
        return os.preadv(fd, (view,), position, os.RWF_NOWAIT) == size_bytes
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        # The file system does not support the check; as with `read_at_if_cached`, the read itself
        # may wait.
        return True


def sync_file_system(fd: int) -> bool:
    """Make durable what was written to the file system of this open file, names as well.

    Returns False, with nothing done, if that is not reliable on this system. Raises OSError.
    """
    if not IS_LINUX:
        return False
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
            return write_all(fd, file.read())
    except FileNotFoundError:
        # A container without /proc.
        return False


def write_all(fd: int, mounts: str) -> bool:
    """Make durable what was written to the file system of this open file, names as well.

    `mounts` is the content of /proc/self/mountinfo. Returns False, with nothing done, if the call
    is not reliable on this system. Raises OSError, also for an error of the device since the file
    was opened.
    """
    if not _has_syncfs(fd, mounts):
        return False
    if _libc.syncfs(fd):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return True


def _has_syncfs(fd: int, mounts: str) -> bool:
    if _version(os.uname().release) < _SYNCFS_VERSION:
        return False
    number = os.fstat(fd).st_dev
    device = f"{os.major(number)}:{os.minor(number)}"
    # proc(5): number, parent, device, …, -, type of the file system, …
    return any(
        line.split(" ", 3)[2] == device
        and line.partition(" - ")[2].partition(" ")[0] in _LOCAL_FILE_SYSTEMS
        for line in mounts.splitlines()
    )


def _version(release: str) -> tuple[int, ...]:
    major, _, rest = release.partition(".")
    minor = rest.partition(".")[0].partition("-")[0]
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else ()
