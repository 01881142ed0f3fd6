"""Text files that only their owner can read."""

import os
from pathlib import Path

_FILE_MODE = 0o600


def write_private(path: str | Path, text: str) -> None:
    """Replace a text file, which only its owner can read from the first byte on."""
    target = Path(path)
    new = target.with_name(f"{target.name}.{os.getpid()}.new")
    try:
        with open(new, "x", encoding="utf-8", opener=_open_private) as stream:
            stream.write(text)
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)


def _open_private(path: str, flags: int) -> int:
    # Not the Disk port's, which loads asyncio: every command of `ottla profile` writes files.
    # Windows has no such flag; descriptors are not inherited there.
    return os.open(path, flags | getattr(os, "O_CLOEXEC", 0), _FILE_MODE)
