"""Plain values as bytes, for maps that keep bytes: tuples, lists and dictionaries of bytes, text and numbers.

Only what a pipeline itself wrote into its state is ever unpacked.
"""

import pickle
from typing import Any

_PROTOCOL = 5


def pack(value: Any) -> bytes:
    """Return a plain value as bytes."""
    return pickle.dumps(value, _PROTOCOL)


def unpack(data: bytes) -> Any:
    """Return the value that `pack` was given."""
    return pickle.loads(data)  # noqa: S301  written by this pipeline, into its own state
