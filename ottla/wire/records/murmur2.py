"""Kafka's hash of keys (org.apache.kafka.common.utils.Utils.murmur2)."""

SEED = 0x9747B28C
MULTIPLIER = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(key: bytes) -> int:
    """Return Kafka's hash of one key, as an unsigned 32-bit number."""
    words_count = len(key) // 4
    result = SEED ^ len(key)
    for index in range(words_count):
        word = int.from_bytes(key[4 * index : 4 * index + 4], "little")
        result = (result * MULTIPLIER & _MASK) ^ _mix(word)
    rest = key[4 * words_count :]
    if rest:
        result = (result ^ int.from_bytes(rest, "little")) * MULTIPLIER & _MASK
    result ^= result >> 13
    result = result * MULTIPLIER & _MASK
    return result ^ result >> 15


def _mix(word: int) -> int:
    word = word * MULTIPLIER & _MASK
    word ^= word >> 24
    return word * MULTIPLIER & _MASK
