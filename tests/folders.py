"""Folders that tests compare before and after an operation."""

from pathlib import Path


def contents(parent: Path) -> dict[str, bytes | None]:
    """Return the content of each file below a folder, and None for each folder."""
    return {
        str(path.relative_to(parent)): path.read_bytes() if path.is_file() else None
        for path in sorted(parent.rglob("*"))
    }
