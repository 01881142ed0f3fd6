"""The file system of a simulation: the Disk port over a disk that loses unsynced data and can fail.

A `SimFileSystem` belongs to one life of a process. `power_loss` and `kill` end that life and return
the file system of the next one. The old one rejects all calls, so a `finally` block of the dead
process cannot write. Errors are the same as on Linux.
"""

import asyncio
import errno
import os
import zlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from ottla.base.buffers import Buffer, FileRange, NotSendable
from ottla.base.clock import Clock
from ottla.base.files import NotCached
from ottla.base.rng import Rng, SeededRng
from ottla.testing.sim.disk import Disk, NameChange, Stored, StoredFile, StoredFolder
from ottla.testing.sim.faults import READS, Faults
from ottla.testing.sim.loop import WALL_START_MS
from ottla.testing.sim.trace import Trace

T = TypeVar("T")

UNLIMITED_BYTES = 1 << 40


class SimFile:
    """An open file (implements File and RangeSource) of one life."""

    def __init__(self, files: "SimFileSystem", path: str, stored: StoredFile) -> None:
        self._files = files
        self.path = path
        self._stored = stored

    def append(self, data: Buffer) -> None:
        """Append all of `data`."""
        self._write("append", len(self._stored.content), bytes(data))

    def append_parts(self, parts: Sequence[Buffer]) -> None:
        """Append all `parts` in one write."""
        self._write("append", len(self._stored.content), b"".join(parts))

    def write_at(self, position: int, data: Buffer) -> None:
        """Overwrite at `position`."""
        self._write("write_at", position, bytes(data))

    def _write(self, operation: str, position: int, data: bytes) -> None:
        files = self._files
        growth = max(0, position + len(data) - len(self._stored.content))
        free_bytes = files.disk.room_for(growth)
        try:
            files.enter(operation, self.path, len(data), zlib.crc32(data))
            if free_bytes < growth:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
        except OSError:
            # The system may have taken a part before it failed.
            if files.is_alive:
                self._stored.write(position, data[: min(len(data) // 2, free_bytes)])
            raise
        self._stored.write(position, data)
        self._stored.modified_ms = files.time_ms()

    def read_at(self, position: int, size_bytes: int) -> bytes:
        """Return up to `size_bytes` from `position`."""
        self._files.enter("read_at", self.path)
        return bytes(self._stored.content[position : position + size_bytes])

    def read_at_if_cached(self, position: int, size_bytes: int) -> bytes:
        """Return the bytes; raises NotCached at random, as if the page cache had not all of them."""
        if self._files.is_cold():
            raise NotCached
        return self.read_at(position, size_bytes)

    def read_in_background(self, position: int, size_bytes: int) -> Awaitable[bytes]:
        """Return up to `size_bytes` from `position` after some virtual time."""
        return self._files.in_background(lambda: self.read_at(position, size_bytes))

    def note_failure(self) -> None:
        """Do nothing: reads of simulated files do not fail while they are sent."""

    def is_cached(self, position: int, size_bytes: int) -> bool:
        """Return True, or at random False as if the bytes were not in the page cache."""
        return not self._files.is_cold()

    def range_at(self, position: int, size_bytes: int) -> FileRange:
        """Return a range of the file; raises NotSendable if the file is shorter."""
        if position + size_bytes > len(self._stored.content):
            raise NotSendable
        return FileRange(self, position, size_bytes)

    def size(self) -> int:
        """Return the length in bytes."""
        return len(self._stored.content)

    def truncate(self, size_bytes: int) -> None:
        """Truncate or extend the file."""
        self._files.enter("truncate", self.path, size_bytes)
        self._stored.truncate(size_bytes)
        self._stored.modified_ms = self._files.time_ms()

    def sync(self) -> None:
        """Make content and length durable; if it fails, unsynced data is lost for good."""
        try:
            self._files.enter("sync", self.path)
        except OSError:
            self._stored.fail_sync()
            raise
        self._stored.sync()

    def close(self) -> None:
        """Close the file without flushing it."""


class SimLock:
    """An exclusive lock on a path (implements Lock)."""

    def __init__(self, files: "SimFileSystem", path: str) -> None:
        self._files = files
        self._path = path

    def release(self) -> None:
        """Release the lock; idempotent."""
        if self._files.disk.locks.get(self._path) is self._files:
            del self._files.disk.locks[self._path]

    def sync_file_system(self) -> bool:
        """Make all content and names durable; if it fails, unsynced content is lost for good."""
        disk = self._files.disk
        try:
            self._files.enter("sync_file_system", self._path)
        except OSError:
            for file in disk.root.files():
                file.fail_sync()
            raise
        disk.sync()
        return True


class SimFileSystem:
    """Names and files of a simulated disk (implements FileSystem), for one life of a process.

    `faults` makes its calls fail. `rng` decides how long background work takes and which reads are
    not in the page cache; without it all reads are.
    """

    def __init__(
        self,
        disk: Disk | None = None,
        *,
        clock: Clock | None = None,
        rng: Rng | None = None,
        trace: Trace | None = None,
    ) -> None:
        self.disk = disk or Disk()
        self.is_alive = True
        self.faults = Faults()
        self._clock = clock
        self._rng = rng
        self._trace = trace

    # -- the end of a life ------------------------------------------------------------------------

    def power_loss(self, rng: Rng) -> "SimFileSystem":
        """End this life, lose unsynced data, and return the file system of the next life."""
        self.is_alive = False
        self.disk.lose_power(rng)
        return self._next_life()

    def kill(self) -> "SimFileSystem":
        """End this life like `kill -9`: written data is kept, locks are released."""
        self.is_alive = False
        self.disk.locks = {
            path: holder for path, holder in self.disk.locks.items() if holder is not self
        }
        return self._next_life()

    def _next_life(self) -> "SimFileSystem":
        return SimFileSystem(self.disk, clock=self._clock, rng=self._rng, trace=self._trace)

    def damage(self, path: str, position: int, mask: int = 1) -> None:
        """Flip bits of a byte on the disk."""
        self._file(path).damage(position, mask)

    def enter(self, operation: str, path: str, *details: object) -> None:
        """Begin a call; raises if this life is over or a fault is planned for the call."""
        if not self.is_alive:
            raise OSError(errno.EIO, "the process was killed", path)
        if self._trace is not None and operation not in READS:
            self._trace.record("disk", operation, path, *details)
        self.faults.enter(operation, path)

    def time_ms(self) -> int:
        """Return the wall clock's time for modification times, in milliseconds."""
        return WALL_START_MS if self._clock is None else self._clock.time_ms()

    def is_cold(self) -> bool:
        """Draw whether a read would have to wait for the device."""
        return self._rng is not None and self._rng.below(8) == 0

    # -- FileSystem -----------------------------------------------------------------------------

    def open(self, path: str, *, create: bool = False) -> SimFile:
        """Open for reading and appending; raises FileNotFoundError unless it exists or `create` is
        set.
        """
        folder, name = self._parent(path)
        entry = folder.entries.get(name)
        if entry is None:
            if not create:
                raise _error(errno.ENOENT, path)
            self.enter("open", path)
            entry = StoredFile(self.time_ms())
            self.disk.change_names([(folder, name, entry)])
        if isinstance(entry, StoredFolder):
            raise _error(errno.EISDIR, path)
        return SimFile(self, path, entry)

    def exists(self, path: str) -> bool:
        """Return True if a file or directory has this name."""
        return self._find(path) is not None

    def is_directory(self, path: str) -> bool:
        """Return True if a directory has this name."""
        return isinstance(self._find(path), StoredFolder)

    def size(self, path: str) -> int:
        """Return a file's length in bytes."""
        return len(self._file(path).content)

    def modified_ms(self, path: str) -> int:
        """Return the modification time of the file, in milliseconds."""
        return self._file(path).modified_ms

    def list(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        self.enter("list", path)
        return sorted(self._folder(path).entries)

    def make_directories(self, path: str) -> None:
        """Create a directory and its parents."""
        folder = self.disk.root
        parts = _parts(path)
        for depth, name in enumerate(parts, 1):
            entry = folder.entries.get(name)
            if entry is None:
                self.enter("make_directories", path)
                entry = StoredFolder()
                self.disk.change_names([(folder, name, entry)])
            if isinstance(entry, StoredFile):
                raise _error(errno.EEXIST if depth == len(parts) else errno.ENOTDIR, path)
            folder = entry

    def make_private(self, path: str) -> None:
        """Return at once: a simulated machine has one user."""

    def rename(self, source: str, target: str) -> None:
        """Rename; replaces `target` if it is a file (or an empty directory, by a directory)."""
        self.enter("rename", source, target)
        from_folder, from_name = self._parent(source)
        to_folder, to_name = self._parent(target)
        entry = from_folder.entries.get(from_name)
        if entry is None:
            raise _error(errno.ENOENT, source)
        replaced = to_folder.entries.get(to_name)
        if replaced is entry:
            return
        if isinstance(entry, StoredFolder) and f"{target}/".startswith(f"{source}/"):
            raise _error(errno.EINVAL, target)
        if isinstance(replaced, StoredFolder) and f"{source}/".startswith(f"{target}/"):
            # Linux compares the two paths before the kinds of the entries.
            raise _error(errno.ENOTEMPTY, target)
        _refuse_replacing(entry, replaced, target)
        change: NameChange = [(from_folder, from_name, None), (to_folder, to_name, entry)]
        self.disk.change_names(change)

    def remove(self, path: str) -> None:
        """Remove a file."""
        self.enter("remove", path)
        self._file(path)
        folder, name = self._parent(path)
        self.disk.change_names([(folder, name, None)])

    def remove_tree(self, path: str) -> None:
        """Remove a directory and everything below it, one name after the other."""
        for name in self.list(path):
            child = f"{path}/{name}"
            if self.is_directory(child):
                self.remove_tree(child)
            else:
                self.remove(child)
        self.enter("remove_tree", path)
        folder, name = self._parent(path)
        self.disk.change_names([(folder, name, None)])

    def read(self, path: str) -> bytes:
        """Return the whole content of a small file."""
        self.enter("read", path)
        return bytes(self._file(path).content)

    def replace(self, path: str, data: bytes) -> None:
        """Replace the content of the file; each of its steps may be the last before a power loss."""
        self.enter("replace", path)
        temporary = path + ".tmp"
        file = self.open(temporary, create=True)
        file.truncate(0)
        file.append(data)
        file.sync()
        self.rename(temporary, path)
        self.sync_directory(path.rpartition("/")[0] or ".")

    def sync_directory(self, path: str) -> None:
        """Make the names in the directory durable."""
        self.enter("sync_directory", path)
        self.disk.sync_names(self._folder(path))

    def lock(self, path: str) -> SimLock:
        """Take an exclusive lock; raises BlockingIOError if another life holds it."""
        self.open(path, create=True)
        holder = self.disk.locks.get(path)
        if holder is not None:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), path)
        self.disk.locks[path] = self
        return SimLock(self, path)

    def free_bytes(self, path: str) -> int:
        """Return the free space of the disk."""
        self._folder(path)
        return self.disk.room_for(UNLIMITED_BYTES)

    def total_bytes(self, path: str) -> int:
        """Return the disk's capacity."""
        self._folder(path)
        capacity = self.disk.capacity_bytes
        return UNLIMITED_BYTES if capacity is None else capacity

    def in_background(self, work: Callable[[], T]) -> Awaitable[T]:
        """Do the work at one later moment of virtual time; cancelling the wait does not stop it."""

        async def do() -> T:
            seconds = (1 + (self._rng or _STEADY).below(20)) / 10_000
            await asyncio.sleep(seconds * self.disk.slowness)
            return work()

        task = asyncio.get_running_loop().create_task(do())
        task.add_done_callback(_retrieve_error)
        return asyncio.shield(task)

    def in_own_thread(self, work: Callable[[], T]) -> Awaitable[T]:
        """Do the work as `in_background` does: there are no threads to wait for."""
        return self.in_background(work)

    # -- names ----------------------------------------------------------------------------------

    def _entry_at(self, path: str) -> Stored:
        entry: Stored = self.disk.root
        for name in _parts(path):
            if isinstance(entry, StoredFile):
                raise _error(errno.ENOTDIR, path)
            below = entry.entries.get(name)
            if below is None:
                raise _error(errno.ENOENT, path)
            entry = below
        return entry

    def _find(self, path: str) -> Stored | None:
        try:
            return self._entry_at(path)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _file(self, path: str) -> StoredFile:
        entry = self._entry_at(path)
        if isinstance(entry, StoredFolder):
            raise _error(errno.EISDIR, path)
        return entry

    def _folder(self, path: str) -> StoredFolder:
        entry = self._entry_at(path)
        if isinstance(entry, StoredFile):
            raise _error(errno.ENOTDIR, path)
        return entry

    def _parent(self, path: str) -> tuple[StoredFolder, str]:
        parts = _parts(path)
        assert parts, "the root has no parent"
        return self._folder("/".join(parts[:-1])), parts[-1]


class _Steady(SeededRng):
    """Constant values, used if no random numbers are requested."""

    def below(self, limit: int) -> int:
        return limit // 2


_STEADY = _Steady(0)


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)


def _refuse_replacing(entry: Stored, replaced: Stored | None, target: str) -> None:
    if isinstance(replaced, StoredFolder) and isinstance(entry, StoredFile):
        raise _error(errno.EISDIR, target)
    if isinstance(replaced, StoredFile) and isinstance(entry, StoredFolder):
        raise _error(errno.ENOTDIR, target)
    if isinstance(replaced, StoredFolder) and replaced.entries:
        raise _error(errno.ENOTEMPTY, target)


def _retrieve_error(task: "asyncio.Task[object]") -> None:
    """Retrieve an error that no caller may wait for any more, as a thread pool does."""
    if not task.cancelled():
        task.exception()
