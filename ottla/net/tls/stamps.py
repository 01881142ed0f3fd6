"""Changes of the files of certificates: a file counts as changed with its time or its size."""

from collections.abc import Iterable

from ottla.base.files import FileSystem

CHECK_SECONDS = 5.0
"""The time between two looks at the files."""

Stamps = tuple[tuple[int, int] | None, ...]
"""The time of the last write and the size of each file; None for one that does not exist."""


def stamps_of(files: FileSystem, paths: Iterable[str]) -> Stamps:
    """Return the stamps of files now."""
    return tuple(_stamp(files, path) for path in paths)


def _stamp(files: FileSystem, path: str) -> tuple[int, int] | None:
    try:
        return files.modified_ms(path), files.size(path)
    except OSError:
        return None
