"""Slow paths and checks of the codec: varints, tagged fields, errors.

The compiled decoders (`ottla.wire.decoding`) handle the common one-byte case inline and call these
functions for the rest. Positions are byte positions in the buffer; all hostile input raises
ProtocolError.
"""

from typing import NoReturn

from ottla.base.buffers import Buffer
from ottla.base.errors import ProtocolError

# Objects that one request may allocate: array elements with their contents, tagged fields. Enough
# for a fetch of 110 000 partitions; decoding a message that uses all of it takes about 50 ms.
OBJECT_BUDGET = 120_000
# Tagged fields that one struct may carry; Kafka's largest has four.
TAGS_MAX = 64
STRING_BYTES_MAX = 32_767

_INT32_MAX = 0x7FFFFFFF
# Varints below 128, precomputed.
ONE_BYTE = tuple(bytes((value,)) for value in range(128))


def uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 31 bits; return it and the position after it."""
    value = 0
    for shift in (0, 7, 14, 21, 28):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > _INT32_MAX:
                break
            return value, position
    raise ProtocolError(f"varint of more than 31 bits before byte {position}")


def string_size(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read the size-plus-one of a compact string; strings end at 32767 bytes as in Kafka."""
    value, position = uvarint(buffer, position)
    if value > STRING_BYTES_MAX + 1:
        raise ProtocolError(f"string of {value - 1} bytes before byte {position}")
    return value, position


def encode_uvarint(value: int) -> bytes:
    """Encode an unsigned varint."""
    if value < 0x80:
        return ONE_BYTE[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 0x200000:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def encode_string_size(value: int) -> bytes:
    """Encode the size-plus-one of a compact string, which ends at 32767 bytes."""
    if value > STRING_BYTES_MAX + 1:
        raise ValueError(f"a string has {value - 1} bytes, {STRING_BYTES_MAX} are allowed")
    return encode_uvarint(value)


def skip_tags(buffer: Buffer, position: int, budget: int) -> tuple[int, int]:
    """Skip all tagged fields of a struct (KIP-482); return position and remaining budget.

    `position` is the position of the field count. The caller checks that the result does not exceed
    the end.
    """
    count, position = uvarint(buffer, position)
    budget = charge_tags(count, budget)
    for _ in range(count):
        _, position = uvarint(buffer, position)
        size_bytes, position = uvarint(buffer, position)
        position += size_bytes
    return position, budget


def charge_tags(count: int, budget: int) -> int:
    """Reject too many tagged fields; return the remaining object budget."""
    if count > TAGS_MAX:
        raise ProtocolError(f"struct with {count} tagged fields, at most {TAGS_MAX} are read")
    if count > budget:
        raise ProtocolError("message with more objects than its budget allows")
    return budget - count


def refuse_null(name: str) -> NoReturn:
    """Raise: null, but the schema does not allow it."""
    raise ProtocolError(f"{name} is null")


def refuse_count(name: str, count: int, remaining: int, budget: int) -> NoReturn:
    """Raise: an array longer than the remaining bytes, or too large for the budget."""
    raise ProtocolError(
        f"{name} claims {count} elements in {remaining} bytes and {budget} objects left"
    )


def refuse_tag_size(name: str, size_bytes: int, used_bytes: int) -> NoReturn:
    """Raise: the size of a tagged field differs from its content's size."""
    raise ProtocolError(f"{name} is announced with {size_bytes} bytes and has {used_bytes}")


def refuse_end(position: int, limit: int) -> NoReturn:
    """Raise: a length points behind the end of the message."""
    raise ProtocolError(f"content ends at byte {limit}, {position - limit} bytes too early")
