"""Partitions that a group reads without a committed offset. Pure.

Their lag counts from the beginning: brokers do not know auto.offset.reset, and a lag that is too
small hides a group that does not move.
"""

from collections.abc import Collection, Mapping

Key = tuple[str, int]
_SUBSCRIBES = "consumer"


def uncommitted_keys(
    committed: Collection[Key],
    assigned: Collection[Key],
    partitions: Mapping[str, int],
    protocol_type: str,
) -> set[Key]:
    """Return the assigned partitions without a commit, and partitions of topics with other commits.

    `partitions` has the number of partitions of each topic. A group whose offsets a program commits
    for partitions that it has chosen itself (without a protocol type) reads no others.
    """
    topics = {topic for topic, _ in committed} if protocol_type == _SUBSCRIBES else set()
    siblings = {(topic, number) for topic in topics for number in range(partitions.get(topic, 0))}
    existing = {key for key in assigned if key[1] < partitions.get(key[0], 0)}
    return (siblings | existing) - set(committed)
