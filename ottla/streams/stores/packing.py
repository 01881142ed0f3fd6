"""Plain values as bytes, for maps that keep bytes: tuples, lists and dictionaries of bytes, text and numbers.

marshal reads and writes them fastest, and makes nothing but plain values of any bytes; its format 4 is that of every
Python since 3.4.
"""

import marshal
from typing import Any

_FORMAT = 4


def pack(value: Any) -> bytes:
    """Return a plain value as bytes; ValueError for what is not plain."""
    return marshal.dumps(value, _FORMAT)


def unpack(data: bytes) -> Any:
    """Return the value that `pack` was given."""
    return marshal.loads(data)  # noqa: S302  written by this pipeline, into its own state
