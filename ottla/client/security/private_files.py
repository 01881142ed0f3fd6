"""Text files that only their owner can read."""

import os
from pathlib import Path

from ottla.base.files import open_private


def write_private(path: str | Path, text: str) -> None:
    """Replace a text file, which only its owner can read from the first byte on."""
    target = Path(path)
    new = target.with_name(f"{target.name}.{os.getpid()}.new")
    try:
        with open(new, "x", encoding="utf-8", opener=open_private) as stream:
            stream.write(text)
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)
