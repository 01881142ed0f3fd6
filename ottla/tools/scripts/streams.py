"""Standard output and standard error whose reader may have gone, as in `kafka-topics … | head -1`.

Java's System.out ignores that: a tool of Apache Kafka does its work and ends with its usual exit
code, without a message. Tools that report until they are stopped would never end, so ours do.
"""

import io
import sys
from typing import Any

from ottla.tools.scripts.exits import Exit


class _Stream(io.FileIO):
    """A file descriptor that accepts everything once its reader has gone."""

    has_reader = True

    def write(self, data: Any, /) -> int:
        """Write bytes, or discard them if there is no reader."""
        try:
            return super().write(data)
        except BrokenPipeError:
            self.has_reader = False
            return memoryview(data).nbytes


def ignore_closed_pipes() -> None:
    """Replace standard output and standard error, unless a test has replaced them."""
    for name in ("stdout", "stderr"):
        former = getattr(sys, name)
        if former is None or former is not getattr(sys, f"__{name}__"):
            continue
        former.flush()
        raw = _Stream(former.fileno(), "w", closefd=False)
        stream = io.TextIOWrapper(
            io.BufferedWriter(raw),
            former.encoding,
            former.errors,
            line_buffering=former.line_buffering,
            write_through=former.write_through,
        )
        setattr(sys, name, stream)


def has_reader() -> bool:
    """Flush standard output, and return False if nothing reads it any more."""
    sys.stdout.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return not isinstance(raw, _Stream) or raw.has_reader


def flush_or_end() -> None:
    """Flush standard output; end the script with exit code 0 if nothing reads it any more."""
    if not has_reader():
        raise Exit(0)
