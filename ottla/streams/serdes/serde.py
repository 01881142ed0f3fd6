"""The serde of a table's changes, and the serdes of the client under their names in Kafka Streams."""

import struct
from typing import TypeVar

from ottla.client.serdes.serde import (
    BOOLEAN,
    BYTES,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    UUIDS,
    VOID,
    Serde,
    check_serdes,
    made_of,
    over_default,
    read_long,
    resolve,
)
from ottla.streams.model.records import Change

__all__ = [
    "BOOLEAN",
    "BYTES",
    "DOUBLE",
    "FLOAT",
    "INTEGER",
    "LONG",
    "SHORT",
    "STRING",
    "UUIDS",
    "VOID",
    "Serde",
    "changes",
    "check_serdes",
    "made_of",
    "over_default",
    "read_long",
    "resolve",
]

T = TypeVar("T")

_CHANGE = struct.Struct(">ii?")


def changes(value: Serde[T]) -> Serde[Change[T]]:
    """Return the serde of a table's changes, for internal topics."""
    return made_of(_changes, value)


def _changes(value: Serde[T]) -> Serde[Change[T]]:
    def write(change: Change[T]) -> bytes:
        new, old = value.to_bytes(change.new_value), value.to_bytes(change.old_value)
        lengths = (-1 if encoded is None else len(encoded) for encoded in (new, old))
        return _CHANGE.pack(*lengths, change.is_latest) + (new or b"") + (old or b"")

    def read(data: bytes) -> Change[T]:
        new_length, old_length, is_latest = _CHANGE.unpack_from(data)
        middle = _CHANGE.size + max(0, new_length)
        new = data[_CHANGE.size : middle] if new_length >= 0 else None
        old = data[middle:] if old_length >= 0 else None
        return Change(value.from_bytes(new), value.from_bytes(old), is_latest)

    return Serde(write, read, f"changes({value!r})")
