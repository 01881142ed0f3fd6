"""The files of one segment: the `.log` file with its batches, and the index files beside it.

Index files are not synced: a lost or wrong one is detected and rebuilt. Raises OSError.
"""

from ottla.base.files import File, FileSystem, overwrite
from ottla.storage.files.file_names import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SUFFIXES,
    TIME_INDEX_SUFFIX,
    file_name,
)
from ottla.storage.files.formats import TIME_ENTRY
from ottla.storage.files.index import ENTRY_SIZE


class SegmentFiles:
    """The names, sizes and the descriptor of one segment's files.

    `size_bytes` is the length of the `.log` file, of which the first `synced_bytes` are durable
    (-1: not even its length is). `ending` is appended to the names while the segment is not part of
    the log yet.
    """

    __slots__ = (
        "base_offset",
        "directory",
        "ending",
        "file_system",
        "opened",
        "size_bytes",
        "synced_bytes",
    )

    def __init__(self, file_system: FileSystem, directory: str, base_offset: int) -> None:
        self.file_system = file_system
        self.directory = directory
        self.base_offset = base_offset
        self.ending = ""
        # The `.log` file if it is open.
        self.opened: File | None = None
        self.size_bytes = 0
        self.synced_bytes = -1

    def path(self, suffix: str) -> str:
        """Return the path of the segment's file of this kind."""
        return f"{self.directory}/{file_name(self.base_offset, suffix)}{self.ending}"

    @property
    def log(self) -> File:
        """The `.log` file, opened on first use."""
        if self.opened is None:
            # Never created here: a segment that was removed must not come back empty.
            self.opened = self.file_system.open(self.path(LOG_SUFFIX))
        return self.opened

    def create(self) -> None:
        """Create the `.log` file and keep it open."""
        self.opened = self.file_system.open(self.path(LOG_SUFFIX), create=True)

    def adopt(self) -> None:
        """Read the size of the existing `.log` file, all of which counts as durable."""
        self.size_bytes = self.file_system.size(self.path(LOG_SUFFIX))
        self.synced_bytes = self.size_bytes

    def load(self, suffix: str) -> bytes | None:
        """Return the content of an index file; None if it does not exist."""
        path = self.path(suffix)
        return self.file_system.read(path) if self.file_system.exists(path) else None

    def store(self, suffix: str, data: bytes) -> None:
        """Write an index file, neither atomically nor durably."""
        overwrite(self.file_system, self.path(suffix), data)

    def has_index_files(self) -> bool:
        """Return True if both index files exist and neither ends in the middle of an entry."""
        for suffix, entry_size in (
            (INDEX_SUFFIX, ENTRY_SIZE),
            (TIME_INDEX_SUFFIX, TIME_ENTRY.size),
        ):
            path = self.path(suffix)
            if not self.file_system.exists(path) or self.file_system.size(path) % entry_size:
                return False
        return True

    def modified_ms(self) -> int:
        """Return the time at which the `.log` file was written last."""
        return self.file_system.modified_ms(self.path(LOG_SUFFIX))

    def cut(self, position: int) -> None:
        """Cut the file; remove the index files, because they may point to bytes that are gone."""
        self.log.truncate(position)
        self.size_bytes = position
        self.synced_bytes = -1
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            if self.file_system.exists(self.path(suffix)):
                self.file_system.remove(self.path(suffix))

    @property
    def is_synced(self) -> bool:
        """True if a crash cannot lose any byte of the segment."""
        return self.synced_bytes == self.size_bytes

    def sync(self) -> None:
        """Make the whole log file durable."""
        size = self.size_bytes
        self.log.sync()
        self.synced_bytes = size

    def note_sync(self) -> None:
        """Note that the whole file is durable, because its file system has been synced."""
        self.synced_bytes = self.size_bytes

    def mark_deleted(self) -> list[str]:
        """Rename the files so that they no longer belong to the log; return the new names."""
        renamed = []
        for suffix in SUFFIXES:
            path = self.path(suffix)
            if self.file_system.exists(path):
                self.file_system.rename(path, path + DELETED_SUFFIX)
                renamed.append(path + DELETED_SUFFIX)
        return renamed

    def move_to(self, directory: str) -> None:
        """Rename the files into another folder; neither name is durable yet."""
        for suffix in SUFFIXES:
            path = self.path(suffix)
            if self.file_system.exists(path):
                self.file_system.rename(path, f"{directory}/{file_name(self.base_offset, suffix)}")
        self.directory = directory

    def close(self) -> None:
        """Close the descriptor; a later use opens it again."""
        if self.opened is not None:
            self.opened.close()
            self.opened = None
