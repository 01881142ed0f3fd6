"""The lines of JSON that the verifiable clients print, one an event."""

import sys
import time
from typing import Any

from ottla.tools.scripts.printing import compact, json_line


def event(name: str, **fields: Any) -> None:
    """Print an event, and flush: another program reads it at once."""
    json_line(compact({"timestamp": time.time_ns() // 1_000_000, "name": name, **fields}))
    sys.stdout.flush()


def text(data: bytes | None) -> str | None:
    """Return a key or a value as text."""
    return None if data is None else data.decode(errors="replace")
