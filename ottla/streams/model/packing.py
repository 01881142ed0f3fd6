"""Plain values as bytes: tuples, lists and dictionaries of bytes, strings and numbers.

marshal is the fastest serializer of such values, and creates only plain values from any input. Its
format 4 can be read by every Python since 3.4.
"""

import marshal
from typing import Any

_FORMAT = 4


def pack(value: Any) -> bytes:
    """Return a plain value as bytes; ValueError if the value is not plain."""
    return marshal.dumps(value, _FORMAT)


def unpack(data: bytes) -> Any:
    """Return the value that was passed to `pack`."""
    return marshal.loads(data)  # noqa: S302  written by this pipeline, into its own state
