"""Checks if the page cache contains a part of a file, so that a read or `sendfile` does not wait.

cachestat(2), from Linux 6.5 on, counts cached pages in about a microsecond. It also counts pages
that are still being read, so the last byte is read as well, without waiting: a device with
read-ahead delivers the earlier pages first. On older kernels the bytes are read without waiting and
discarded.
"""

import ctypes
import errno
import mmap
import os

_CACHESTAT = 451
_PAGE_BYTES = mmap.PAGESIZE
_SCRATCH = bytearray(256 * 1024)
_LAST_BYTE = bytearray(1)

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


def is_cached(fd: int, position: int, size_bytes: int) -> bool:
    """Return True if all of these bytes can be read without waiting for a device.

    Call it from one thread only, that of the event loop.
    """
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
