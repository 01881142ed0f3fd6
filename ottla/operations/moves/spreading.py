"""A new assignment of whole topics to brokers, as kafka-reassign-partitions --generate proposes it."""

from collections.abc import Mapping

from ottla.base.replicas.placement import place_replicas
from ottla.operations.moves.plans import Assignment, TopicPartition


def spread(
    current: Mapping[TopicPartition, tuple[int, ...]], racks: Mapping[int, str | None]
) -> Assignment:
    """Return an assignment of whole topics to brokers, given with their racks. Pure.

    Each partition keeps its number of replicas. A topic continues at the broker after the last
    leader of the topic before it, so that topics with few partitions do not share their leaders.
    Racks count only if every broker has one. ApiError INVALID_REPLICATION_FACTOR if there are too
    few brokers.
    """
    factors_by_topic: dict[str, dict[int, int]] = {}
    for (topic, number), replicas in current.items():
        factors_by_topic.setdefault(topic, {})[number] = len(replicas)
    targets: Assignment = {}
    start = 0
    for topic, factors in factors_by_topic.items():
        placed = place_replicas(racks, len(factors), max(factors.values()), start=start)
        for number, chosen in zip(sorted(factors), placed.values(), strict=True):
            targets[topic, number] = chosen[: factors[number]]
        start += len(factors)
    return targets
