"""JSON of msgspec structs, as bytes and as plain values; needs msgspec."""

from collections.abc import Callable
from typing import Any

import msgspec


def bytes_of(kind: Any) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    """Return an encoder and a decoder of a struct's JSON; the decoder raises ValueError on a
    mismatch.
    """
    # Functions instead of msgspec's encoders: the objects of a topology are sent to other
    # processes.
    return msgspec.json.encode, lambda data: msgspec.json.decode(data, type=kind)


def of_plain(kind: Any) -> Callable[[Any], Any]:
    """Return a function that creates a struct from plain values."""
    return lambda value: msgspec.convert(value, kind)


def plain(value: Any) -> Any:
    """Return the plain values of a struct."""
    return msgspec.to_builtins(value)
