"""The order in which Java's HashMap iterates: Apache Kafka's tools print some maps in it."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from ottla.cluster.jvm_order import java_string_hash

T = TypeVar("T")
_LOAD = 0.75
_SMALLEST = 16
_MASK = 0xFFFFFFFF


def partition_hash(key: tuple[str, int]) -> int:
    """Return TopicPartition.hashCode as an unsigned number."""
    topic, partition = key
    return (31 * (31 + partition) + java_string_hash(topic)) & _MASK


def hash_order(keys: Iterable[T], hash_of: Callable[[T], int]) -> list[T]:
    """Return keys in the order of a HashMap that grew while they were put in."""
    keys = list(keys)
    size = _SMALLEST
    while len(keys) > size * _LOAD:
        size *= 2

    def bucket(key: T) -> int:
        value = hash_of(key)
        return (value ^ (value >> 16)) & (size - 1)

    return sorted(keys, key=bucket)


def name_order(names: Iterable[str]) -> list[str]:
    """Return names in the order of a HashMap."""
    return hash_order(names, java_string_hash)
