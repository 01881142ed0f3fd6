"""The schema registry's wire format: a zero byte, the schema id in four bytes, then the data.

For Protobuf, the message indexes within the schema come in between: the index of the message and of
the messages around it, as zigzag varints after their count; a single zero byte denotes the first
message.
"""

import struct
from collections.abc import Sequence

from ottla.client.errors import SerializationError

_HEADER = struct.Struct(">bI")
HEADER_BYTES = _HEADER.size
_MAGIC = 0


def header(schema_id: int) -> bytes:
    """Return the header of data that was written with a schema."""
    return _HEADER.pack(_MAGIC, schema_id)


def schema_id_of(data: bytes) -> int:
    """Return the id of the schema that data was written with."""
    if len(data) < HEADER_BYTES:
        raise SerializationError(
            f"{len(data)} bytes are too few for the schema registry's wire format; "
            "was it written without a registry? use a serde without a registry"
        )
    magic, result = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise SerializationError(
            f"the first byte is {magic}, not the {_MAGIC} of the schema registry's wire format; "
            "was it written without a registry? use a serde without a registry"
        )
    return int(result)


def _varint(number: int) -> bytes:
    # Indexes are never negative: zigzag only doubles them.
    remaining = number << 1
    result = bytearray()
    while remaining > 0x7F:
        result.append(remaining & 0x7F | 0x80)
        remaining >>= 7
    result.append(remaining)
    return bytes(result)


def write_indexes(indexes: Sequence[int]) -> bytes:
    """Return the encoded message indexes, the outermost message first."""
    if list(indexes) == [0]:
        return b"\0"
    return b"".join(map(_varint, (len(indexes), *indexes)))


def read_indexes(data: bytes, position: int) -> tuple[list[int], int]:
    """Return the message indexes and the offset of the data; SerializationError if invalid."""
    count, position = _read_varint(data, position)
    if count == 0:
        return [0], position
    if count < 0:
        raise SerializationError(f"the number of message indexes is {count}")
    results = []
    for _ in range(count):
        index, position = _read_varint(data, position)
        results.append(index)
    return results, position


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while position < len(data) and shift < 35:
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (result >> 1) ^ -(result & 1), position
        shift += 7
    raise SerializationError("the message indexes are truncated or too long")
