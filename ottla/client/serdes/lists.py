"""Lists in the format of Kafka's ListSerializer (KIP-466).

Entries of a fixed-size type have no length; other entries are preceded by their length.
"""

import struct
from typing import TypeVar

from ottla.client.serdes.serde import Serde, made_of

T = TypeVar("T")

_INT = struct.Struct(">i")
_CONSTANT, _VARIABLE = b"\0", b"\1"
# The names of the serdes whose entries have a fixed size.
_LENGTHS = {"short": 2, "integer": 4, "float": 4, "long": 8, "double": 8, "uuid": 36}


def list_serde(inner: Serde[T]) -> Serde[list[T | None]]:
    """Return the serde of lists; entries may be None."""
    return made_of(_lists, inner)


def _lists(inner: Serde[T]) -> Serde[list[T | None]]:
    length = _LENGTHS.get(inner.name)

    def write(entries: list[T | None]) -> bytes:
        parts = [_CONSTANT if length else _VARIABLE]
        if length:
            missing = [index for index, entry in enumerate(entries) if entry is None]
            parts += map(_INT.pack, (len(missing), *missing))
        parts.append(_INT.pack(len(entries)))
        for entry in entries:
            data = inner.to_bytes(entry)
            if not length:
                parts.append(_INT.pack(-1 if data is None else len(data)))
            parts.append(data or b"")
        return b"".join(parts)

    def read(data: bytes) -> list[T | None]:
        if data[:1] == _CONSTANT:
            return _read_constant(inner, data, length or 0)
        if data[:1] != _VARIABLE:
            raise ValueError("a list must begin with byte 0 or 1")
        (count,) = _INT.unpack_from(data, 1)
        lists: list[T | None] = []
        position = 5
        for _ in range(count):
            (size,) = _INT.unpack_from(data, position)
            end = position + 4 + max(0, size)
            lists.append(None if size < 0 else inner.deserialize(data[position + 4 : end]))
            position = end
        return lists

    return Serde(write, read, f"list_serde({inner!r})")


def _read_constant(inner: Serde[T], data: bytes, length: int) -> list[T | None]:
    (missing_count,) = _INT.unpack_from(data, 1)
    middle = 5 + 4 * missing_count
    missing = {_INT.unpack_from(data, start)[0] for start in range(5, middle, 4)}
    (count,) = _INT.unpack_from(data, middle)
    results: list[T | None] = []
    position = middle + 4
    for number in range(count):
        if number in missing:
            results.append(None)
            continue
        results.append(inner.deserialize(data[position : position + length]))
        position += length
    return results
