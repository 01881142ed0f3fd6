"""A disk that ignores case, as those of macOS and Windows do, on one that distinguishes it."""

import os

from ottla.base.files import RealFile, RealLock, open_descriptor
from ottla.testing.volatile import VolatileFileSystem


class CaseFoldingFiles(VolatileFileSystem):
    """The files below `root`: a name finds the entry that differs only in case, if there is one."""

    def __init__(self, root: str) -> None:
        self._root = root

    def stored(self, path: str) -> str:
        """Return the path as it is stored."""
        if not path.startswith(self._root + "/"):
            return path
        found = self._root
        for name in path[len(self._root) + 1 :].split("/"):
            found += "/" + next((one for one in _names(found) if one.lower() == name.lower()), name)
        return found

    def open(self, path: str, *, create: bool = False) -> RealFile:  # type: ignore[override]
        """Open in append mode."""
        found = self.stored(path)
        return RealFile(found, open_descriptor(found, create=create))

    def exists(self, path: str) -> bool:
        """Return True if a file or folder has this name."""
        return super().exists(self.stored(path))

    def is_directory(self, path: str) -> bool:
        """Return True if this is the name of a folder."""
        return super().is_directory(self.stored(path))

    def size(self, path: str) -> int:
        """Return a file's length in bytes."""
        return super().size(self.stored(path))

    def read(self, path: str) -> bytes:
        """Return a whole small file."""
        return super().read(self.stored(path))

    def replace(self, path: str, data: bytes) -> None:
        """Replace the content of the file."""
        super().replace(self.stored(path), data)

    def make_directories(self, path: str) -> None:
        """Create a folder and its parents."""
        super().make_directories(self.stored(path))

    def rename(self, source: str, target: str) -> None:
        """Rename, replacing a file."""
        super().rename(self.stored(source), self.stored(target))

    def remove(self, path: str) -> None:
        """Remove a file."""
        super().remove(self.stored(path))

    def remove_tree(self, path: str) -> None:
        """Remove a folder with all of its content."""
        super().remove_tree(self.stored(path))

    def lock(self, path: str) -> RealLock:
        """Take an exclusive lock on a file."""
        return super().lock(self.stored(path))


def _names(folder: str) -> list[str]:
    return os.listdir(folder) if os.path.isdir(folder) else []
