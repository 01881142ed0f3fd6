"""The door to msgspec: JSON of its structs, in bytes and in plain values."""

from collections.abc import Callable
from typing import Any

import msgspec


def bytes_of(kind: Any) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    """Return what writes and what reads the JSON of a struct; ValueError where it does not fit."""
    # Functions, not msgspec's encoders: what a topology holds travels to other processes.
    return msgspec.json.encode, lambda data: msgspec.json.decode(data, type=kind)


def of_plain(kind: Any) -> Callable[[Any], Any]:
    """Return what makes a struct of plain values."""
    return lambda value: msgspec.convert(value, kind)


def plain(value: Any) -> Any:
    """Return plain values of a struct."""
    return msgspec.to_builtins(value)
