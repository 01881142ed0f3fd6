"""The order in which the JVM iterates three kinds of map, so that our JSON equals Apache Kafka's
JSON.

Kafka builds its znodes from hash maps and writes them in iteration order. No reader depends on the
order, but with it the same state is the same bytes, whichever program wrote it. Used by `znodes`
only.
"""

from collections.abc import Callable, Iterable


def java_string_hash(text: str) -> int:
    """Return String.hashCode as an unsigned 32-bit number."""
    value = 0
    if text.isascii():
        for unit in text.encode():
            value = (value * 31 + unit) & 0xFFFFFFFF
        return value
    # The hash is computed over UTF-16 units, so a character beyond the basic plane counts twice.
    units = text.encode("utf-16-be")
    for position in range(0, len(units), 2):
        value = (value * 31 + (units[position] << 8 | units[position + 1])) & 0xFFFFFFFF
    return value


def _spread(text: str) -> int:
    value = java_string_hash(text)
    return value ^ value >> 16


def _ordered(keys: Iterable[str], within_bucket: Callable[[int], int] | None) -> list[str]:
    """Return the keys by bucket, and within a bucket by a function of their hash, or in given
    order.
    """
    keys = list(keys)
    size = 16
    # Both maps double when an insertion fills three quarters of the table.
    while len(keys) >= size * 3 // 4:
        size *= 2
    if within_bucket is None:
        return sorted(keys, key=lambda key: _spread(key) & size - 1)
    spread = {key: _spread(key) for key in keys}
    return sorted(keys, key=lambda key: (spread[key] & size - 1, within_bucket(spread[key])))


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


def scala_map_order(keys: Iterable[str]) -> list[str]:
    """Return the keys as scala.collection.mutable.HashMap (2.13) iterates them."""
    return _ordered(keys, _signed)


def scala_immutable_map_order(keys: Iterable[str]) -> list[str]:
    """Return the keys as scala.collection.immutable.Map (2.13) iterates them.

    Up to four keys keep their order. More are a trie of five bits per level, in which a level's own
    keys precede the keys of the levels below.
    """
    keys = list(keys)
    return keys if len(keys) <= 4 else _trie_order(keys, 0)


def _trie_order(keys: list[str], shift: int) -> list[str]:
    slots: dict[int, list[str]] = {}
    for key in keys:
        slots.setdefault(_improve(key) >> shift & 31, []).append(key)
    filled = [slots[slot] for slot in sorted(slots)]
    own = [members[0] for members in filled if len(members) == 1]
    for members in filled:
        if len(members) > 1:
            # Keys that differ in no bit of their hashes are on the level below the last bit.
            own += _trie_order(members, shift + 5) if shift < 30 else members
    return own


def _improve(text: str) -> int:
    value = java_string_hash(text)
    value = value + (~(value << 9) & 0xFFFFFFFF) & 0xFFFFFFFF
    value ^= value >> 14
    value = value + (value << 4) & 0xFFFFFFFF
    return value ^ value >> 10


def properties_order(keys: Iterable[str]) -> list[str]:
    """Return the keys as java.util.Properties iterates them; keys of one bucket in given order."""
    return _ordered(keys, None)
