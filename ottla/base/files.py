"""The Disk port: the broker reads and writes all of its files through this module.

`FileSystem` and `File` raise plain `OSError`; `storage` decides on the consequence (StorageError,
log directory offline). The twin is `ottla.testing.sim.files.SimFileSystem`, which loses unsynced
data, tears the last write and fails the n-th call. A name is durable only after `sync_directory` of
its folder; `replace` performs all necessary steps.

Files and folders are created for the user of the process only: they have records, and keys of
passwords.
"""

import asyncio
import errno
import logging
import os
import stat
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable
from weakref import WeakValueDictionary

from ottla.base.buffers import Buffer, FileRange, NotSendable
from ottla.base.loading import deferred_module
from ottla.base.platform import disk
from ottla.base.platform.descriptors import SPARES
from ottla.base.tasks import run_in_own_thread

# ctypes, which the first fetch needs, and the libraries of archives, which shutil loads.
if TYPE_CHECKING:
    import shutil

    from ottla.base.platform import page_cache
else:
    page_cache = deferred_module("ottla.base.platform.page_cache")
    shutil = deferred_module("shutil")

T = TypeVar("T")

_log = logging.getLogger(__name__)

_FILE_MODE, _FOLDER_MODE, _OF_OWNER = 0o600, 0o700, 0o700


class NotCached(Exception):
    """The bytes are not in memory, and the caller does not wait for a device."""


@runtime_checkable
class File(Protocol):
    """An open file. Appends go to its end; reads and writes by position do not move a file pointer."""

    def append(self, data: Buffer) -> None:
        """Write all of `data` at the end."""

    def append_parts(self, parts: Sequence[Buffer]) -> None:
        """Write all `parts` at the end, as one write if the system allows it."""

    def read_at(self, position: int, size_bytes: int) -> bytes:
        """Return up to `size_bytes` from `position`; shorter only at the end of the file."""

    def read_at_if_cached(self, position: int, size_bytes: int) -> Buffer:
        """Return what `read_at` returns; raises NotCached if that would wait for a device."""

    def range_at(self, position: int, size_bytes: int) -> FileRange:
        """Return a part of the file to send later, even if it is closed then; see NotSendable."""

    def write_at(self, position: int, data: Buffer) -> None:
        """Overwrite at `position`."""

    def size(self) -> int:
        """Return the length in bytes."""

    def truncate(self, size_bytes: int) -> None:
        """Cut or extend the file to `size_bytes`."""

    def sync(self) -> None:
        """Make content and length durable."""

    def close(self) -> None:
        """Close the descriptor; idempotent."""


class Lock(Protocol):
    """An exclusive lock of a directory, released by `release` or by the end of the process."""

    def release(self) -> None:
        """Release the lock; idempotent."""

    def sync_file_system(self) -> bool:
        """Make durable what was written to the file system that contains the locked file.

        Takes less time than thousands of single syncs, but also writes the data of other programs.
        Returns False, with nothing done, if the system cannot do that reliably.
        """


class FileSystem(Protocol):
    """The files of a file system and their names. Paths are strings with '/' between the parts."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and appending; FileNotFoundError unless it exists or `create`."""

    def exists(self, path: str) -> bool:
        """Return True if a file or folder has this name."""

    def is_directory(self, path: str) -> bool:
        """Return True if this is the name of a folder."""

    def size(self, path: str) -> int:
        """Return a file's length in bytes."""

    def modified_ms(self, path: str) -> int:
        """Return the time of the last write to a file, in milliseconds since the Unix epoch."""

    def list(self, path: str) -> list[str]:
        """Return the names in a folder, sorted."""

    def make_directories(self, path: str) -> None:
        """Create a folder and its parents; an existing folder is not an error."""

    def make_private(self, path: str) -> None:
        """Keep the other users of the machine out of a file or folder.

        Raises PermissionError if it is another user's, or shared as /tmp is.
        """

    def rename(self, source: str, target: str) -> None:
        """Rename, replacing `target` if it is a file."""

    def remove(self, path: str) -> None:
        """Remove a file."""

    def remove_tree(self, path: str) -> None:
        """Remove a folder with all of its content."""

    def read(self, path: str) -> bytes:
        """Return a whole small file."""

    def replace(self, path: str, data: bytes) -> None:
        """Replace the content of the file atomically; it is durable on return."""

    def sync_directory(self, path: str) -> None:
        """Make the names in the folder durable."""

    def lock(self, path: str) -> Lock:
        """Take an exclusive lock on the file `path` (created if necessary).

        Raises BlockingIOError if it is locked, with the owner if that is known.
        """

    def free_bytes(self, path: str) -> int:
        """Return the free bytes on the device of `path`."""

    def total_bytes(self, path: str) -> int:
        """Return the size of the device of `path`."""

    def in_background(self, work: Callable[[], T]) -> Awaitable[T]:
        """Run blocking file operations off the event loop (a thread; the twin: after virtual time)."""

    def in_own_thread(self, work: Callable[[], T]) -> Awaitable[T]:
        """Run like `in_background`, but never wait for other work that has all threads."""


def make_directories_durably(files: FileSystem, path: str) -> None:
    """Create a folder and its parents, durably."""
    missing = []
    while path and not files.exists(path):
        missing.append(path)
        path = path.rpartition("/")[0]
    for folder in reversed(missing):
        files.make_directories(folder)
        parent, slash, _ = folder.rpartition("/")
        files.sync_directory(parent or slash or ".")


def keep_others_out(files: FileSystem, paths: Iterable[str]) -> None:
    """Restrict files and folders of an earlier version to this user; log those that cannot be."""
    for path in paths:
        try:
            files.make_private(path)
        except OSError as error:
            _log.warning("other users may read this path=%s error=%s", path, error.strerror)


def sync_path(files: FileSystem, path: str) -> None:
    """Make a file's content, or the names in a folder, durable."""
    if files.is_directory(path):
        files.sync_directory(path)
        return
    file = files.open(path)
    file.sync()
    file.close()


def remove_files(files: FileSystem, paths: Iterable[str]) -> None:
    """Remove files; missing ones are not an error."""
    for path in paths:
        with suppress(FileNotFoundError):
            files.remove(path)


def overwrite(files: FileSystem, path: str, data: bytes) -> None:
    """Set the content of a file, neither atomically nor durably.

    Only the difference is written: on ext4, closing a file that was truncated to 0 bytes and
    rewritten waits for the device.
    """
    file = files.open(path, create=True)
    try:
        size = file.size()
        former = bytes(file.read_at(0, size)) if 0 < size <= len(data) else b""
        if size > len(former) or not data.startswith(former):
            file.truncate(0)
            former = b""
        if len(former) < len(data):
            file.append(data[len(former) :])
    finally:
        file.close()


async def run_whole(files: FileSystem, work: Callable[[], T]) -> T:
    """Run blocking work off the event loop; a cancellation takes effect when the work has ended.

    For work on files that other code uses afterwards: a thread does not stop with its task. An
    error of the work after the cancellation is logged.
    """
    running = asyncio.ensure_future(files.in_background(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        if not running.cancelled() and (error := running.exception()) is not None:
            _log.warning("work on files failed after it was cancelled error=%s", error)
        raise


class Descriptor:
    """A descriptor shared by its file and the ranges of that file; the last owner closes it.

    A file that is opened again while ranges use its descriptor gets the same one. Implements
    RangeSource.
    """

    __slots__ = ("__weakref__", "_fd", "has_failed")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.has_failed = False

    def fileno(self) -> int:
        """Return the descriptor, for sendfile."""
        return self._fd

    def read_at(self, position: int, size_bytes: int) -> bytes:
        """Return up to `size_bytes` from `position`."""
        return read_at(self._fd, position, size_bytes)

    def read_in_background(self, position: int, size_bytes: int) -> Awaitable[bytes]:
        """Read in the loop's thread pool; the result is the same as of `read_at`."""
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(None, self.read_at, position, size_bytes)

    def note_failure(self) -> None:
        """Send no more of the file: the next read reports the error."""
        self.has_failed = True

    def is_cached(self, position: int, size_bytes: int) -> bool:
        """Return True if the page cache contains the bytes."""
        return page_cache.is_cached(self._fd, position, size_bytes)

    def __del__(self) -> None:
        os.close(self._fd)


# The descriptors of closed files that ranges still use, by device and inode.
_lent: WeakValueDictionary[tuple[int, int], Descriptor] = WeakValueDictionary()


def lent_count() -> int:
    """Return the number of descriptors that are open for ranges of closed files."""
    return len(_lent)


def open_private(path: str, flags: int) -> int:
    """Open a file, as the opener of `open`; a new one is for the user of this process only."""
    return os.open(path, flags | os.O_CLOEXEC, _FILE_MODE)


def open_descriptor(path: str, *, create: bool = False) -> Descriptor:
    """Open a file in append mode, so that every write goes to the end."""
    if _lent:
        with suppress(FileNotFoundError):
            status = os.stat(path)
            descriptor = _lent.get((status.st_dev, status.st_ino))
            if descriptor is not None:
                return descriptor
    flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | (os.O_CREAT if create else 0)
    return Descriptor(SPARES.run(lambda: os.open(path, flags, _FILE_MODE)))


def read_at(fd: int, position: int, size_bytes: int) -> bytes:
    """Return up to `size_bytes` from `position`; shorter only at the end of the file."""
    data = os.pread(fd, size_bytes, position)
    while len(data) < size_bytes:
        more = os.pread(fd, size_bytes - len(data), position + len(data))
        if not more:
            break
        data += more
    return data


class RealFile:
    """A file of the operating system, by descriptor."""

    __slots__ = ("_descriptor", "_fd", "_size", "path")

    def __init__(self, path: str, descriptor: Descriptor) -> None:
        self.path = path
        self._descriptor: Descriptor | None = descriptor
        self._fd = descriptor.fileno()
        self._size = os.fstat(self._fd).st_size

    def append(self, data: Buffer) -> None:
        """Write all of `data` at the end."""
        size_bytes = len(data)
        written = os.write(self._fd, data)
        if written != size_bytes:
            self._append_rest(memoryview(data)[written:])
        self._size += size_bytes

    def _append_rest(self, rest: memoryview) -> None:
        # A short write means a full disk or a signal: the next call reports which.
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def append_parts(self, parts: Sequence[Buffer]) -> None:
        """Write all `parts` at the end."""
        size = sum(len(part) for part in parts)
        written = os.writev(self._fd, parts) if len(parts) <= 1024 else 0
        if written != size:
            self._append_rest(memoryview(b"".join(parts))[written:])
        self._size += size

    def read_at(self, position: int, size_bytes: int) -> bytes:
        """Return up to `size_bytes` from `position`."""
        return read_at(self._fd, position, size_bytes)

    def read_at_if_cached(self, position: int, size_bytes: int) -> Buffer:
        """Return the bytes if the page cache contains all of them (RWF_NOWAIT)."""
        buffer = bytearray(size_bytes)
        try:
            count = disk.read_vector(self._fd, (buffer,), position, disk.NO_WAIT)
        except BlockingIOError:
            raise NotCached from None
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.ENOSYS):
                raise
            return self.read_at(position, size_bytes)
        if count == size_bytes:
            return buffer
        if position + count < self._size:
            raise NotCached
        del buffer[count:]
        return buffer

    def range_at(self, position: int, size_bytes: int) -> FileRange:
        """Return a part of the file that keeps the descriptor open."""
        assert self._descriptor is not None, "the file is closed"
        if self._descriptor.has_failed or os.fstat(self._fd).st_size < position + size_bytes:
            raise NotSendable
        return FileRange(self._descriptor, position, size_bytes)

    def write_at(self, position: int, data: Buffer) -> None:
        """Overwrite at `position`."""
        # The descriptor is in append mode, where Linux ignores pwrite's position.
        fd = SPARES.run(lambda: os.open(self.path, os.O_WRONLY | os.O_CLOEXEC))
        try:
            view = memoryview(data)
            while view:
                count = os.pwrite(fd, view, position)
                view, position = view[count:], position + count
        finally:
            os.close(fd)
        self._size = os.fstat(self._fd).st_size

    def size(self) -> int:
        """Return the length in bytes, as a result of this descriptor's own writes."""
        return self._size

    def truncate(self, size_bytes: int) -> None:
        """Cut or extend the file."""
        os.ftruncate(self._fd, size_bytes)
        self._size = size_bytes

    def sync(self) -> None:
        """Flush content and length to the device."""
        if self._fd < 0:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self.path)
        disk.sync_data(self._fd)

    def fileno(self) -> int:
        """Return the descriptor; simulated files have no descriptor."""
        return self._fd

    def close(self) -> None:
        """Close the descriptor, once no range of the file exists; idempotent."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            status = os.fstat(self._fd)
            self._fd = -1
            # The entry disappears on return if no range uses the descriptor.
            _lent[status.st_dev, status.st_ino] = descriptor


class RealLock:
    """A locked file; the kernel releases the lock when the process ends."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def release(self) -> None:
        """Release the lock; idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def sync_file_system(self) -> bool:
        """Write everything to the device that the kernel has not written yet (syncfs)."""
        if self._fd < 0:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return page_cache.sync_file_system(self._fd)


class RealFileSystem:
    """The operating system's files."""

    _lock_type: type[RealLock] = RealLock

    def open(self, path: str, *, create: bool = False) -> RealFile:
        """Open in append mode, so that every write goes to the end."""
        return RealFile(path, open_descriptor(path, create=create))

    def exists(self, path: str) -> bool:
        """Return True if a file or folder has this name."""
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        """Return True if this is the name of a folder."""
        return os.path.isdir(path)

    def size(self, path: str) -> int:
        """Return a file's length in bytes."""
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        """Return the time of the file's last modification, in milliseconds since the Unix epoch."""
        return os.stat(path).st_mtime_ns // 1_000_000

    def list(self, path: str) -> list[str]:
        """Return the names in a folder, sorted."""
        return SPARES.run(lambda: sorted(os.listdir(path)))

    def make_directories(self, path: str) -> None:
        """Create a folder and its parents."""
        parent = os.path.dirname(path.rstrip("/"))
        if parent and not os.path.exists(parent):
            self.make_directories(parent)
        try:
            os.mkdir(path, _FOLDER_MODE)
        except FileExistsError:
            if not os.path.isdir(path):
                raise

    def make_private(self, path: str) -> None:
        """Remove the permissions of the group and of others."""
        mode = stat.S_IMODE(os.stat(path).st_mode)
        if mode & stat.S_ISVTX:
            raise PermissionError(errno.EPERM, "a folder that is shared by all users", path)
        if mode & ~_OF_OWNER:
            os.chmod(path, mode & _OF_OWNER)

    def rename(self, source: str, target: str) -> None:
        """Rename, replacing a file."""
        os.replace(source, target)

    def remove(self, path: str) -> None:
        """Remove a file."""
        os.remove(path)

    def remove_tree(self, path: str) -> None:
        """Remove a folder with all of its content."""
        SPARES.run(lambda: shutil.rmtree(path))

    def read(self, path: str) -> bytes:
        """Return a whole small file."""
        with SPARES.run(lambda: open(path, "rb")) as file:
            return file.read()

    def replace(self, path: str, data: bytes) -> None:
        """Write a new file, sync it, rename it, sync the folder: this order makes it atomic."""
        temporary = path + ".tmp"
        with SPARES.run(lambda: open(temporary, "wb", opener=open_private)) as file:
            file.write(data)
            file.flush()
            disk.sync_all(file.fileno())
        os.replace(temporary, path)
        self.sync_directory(os.path.dirname(path) or ".")

    def sync_directory(self, path: str) -> None:
        """Flush a folder's names to the device."""
        fd = SPARES.run(lambda: os.open(path, os.O_RDONLY | os.O_DIRECTORY))
        try:
            disk.sync_all(fd)
        finally:
            os.close(fd)

    def lock(self, path: str) -> RealLock:
        """Lock the file, and write the process that owns the lock into it."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        fd = SPARES.run(lambda: os.open(path, flags, _FILE_MODE))
        try:
            disk.lock_whole_file(fd)
        except BlockingIOError as error:
            holder = os.read(fd, 32).decode("ascii", "replace").strip()
            os.close(fd)
            raise BlockingIOError(
                error.errno, f"process {holder}" if holder else "its process is not known", path
            ) from error
        except OSError:
            os.close(fd)
            raise
        os.ftruncate(fd, 0)
        os.pwrite(fd, b"%d\n" % os.getpid(), 0)
        return self._lock_type(fd)

    def free_bytes(self, path: str) -> int:
        """Return the free bytes for unprivileged users."""
        found = os.statvfs(path)
        return found.f_bavail * found.f_frsize

    def total_bytes(self, path: str) -> int:
        """Return the size of the file system."""
        found = os.statvfs(path)
        return found.f_blocks * found.f_frsize

    def in_background(self, work: Callable[[], T]) -> Awaitable[T]:
        """Run in the loop's thread pool."""
        return asyncio.get_running_loop().run_in_executor(None, work)

    in_own_thread = staticmethod(run_in_own_thread)
