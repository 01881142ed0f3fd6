"""JSON by msgspec: of its structs, as bytes and as plain values, and of plain values."""

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


def decoder() -> Callable[[bytes], Any]:
    """Return a decoder of plain values.

    Each value that it returns is the one that the standard library returns. It raises ValueError
    for some texts that the standard library accepts, such as lone surrogates.
    """
    return msgspec.json.Decoder().decode


def plain(value: Any) -> Any:
    """Return the plain values of a struct."""
    return msgspec.to_builtins(value)
