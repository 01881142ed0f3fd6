"""The partition of a group and the ids of new members."""

from ottla.base.rng import Rng


def partition_of(group_id: str, partition_count: int) -> int:
    """Return the partition of __consumer_offsets for a group; it is the same on every broker."""
    return _absolute(java_hash(group_id)) % partition_count


def java_hash(text: str) -> int:
    """Return java.lang.String.hashCode: signed 32 bits over the UTF-16 code units."""
    encoded = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for position in range(0, len(encoded), 2):
        unit = encoded[position] << 8 | encoded[position + 1]
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value


def _absolute(value: int) -> int:
    # Kafka's Utils.abs: the one negative number without a positive counterpart becomes 0.
    return 0 if value == -(2**31) else abs(value)


def fresh_text(rng: Rng) -> str:
    """Return a random UUID in its usual spelling, as the unique part of a member id."""
    raw = bytearray(rng.random_bytes(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
