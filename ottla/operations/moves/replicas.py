"""The replicas of the partitions of a plan, and the brokers that its limits concern."""

from collections.abc import Iterable, Mapping

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin import topics
from ottla.client.admin.cluster import describe_cluster
from ottla.client.admin.replicas import Reassignment
from ottla.client.brokers import Brokers
from ottla.operations.moves.plans import Assignment, TopicPartition, listed


def replicas_of_topics(brokers: Brokers, names: Iterable[str]) -> Assignment:
    """Return the replicas of all partitions of topics; ApiError if a topic does not exist."""
    current: Assignment = {}
    for name in dict.fromkeys(names):
        try:
            topic = topics.describe_topic(brokers, name)
        except ApiError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            raise ApiError(error.code, f"Topic {name} not found.") from error
        current |= {(name, row.partition): row.replicas for row in topic.partitions}
    return current


def replicas_of(brokers: Brokers, plan: Assignment) -> Assignment:
    """Return the replicas of the partitions of a plan; ApiError if one does not exist."""
    everything = replicas_of_topics(brokers, [topic for topic, _ in plan])
    missing = [key for key in plan if key not in everything]
    if missing:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"Unable to find partition: {listed(missing, ', ')}",
        )
    return {key: everything[key] for key in plan}


def states(
    brokers: Brokers, plan: Assignment, moves: Mapping[TopicPartition, Reassignment]
) -> dict[TopicPartition, tuple[int, ...] | None]:
    """Return the replicas of the partitions of a plan, None for those that are being moved.

    A partition that does not exist has no replicas.
    """
    return {key: None if key in moves else _replicas(brokers, key) for key in sorted(plan)}


def _replicas(brokers: Brokers, key: TopicPartition) -> tuple[int, ...]:
    try:
        partitions = topics.describe_topic(brokers, key[0]).partitions
    except ApiError as error:
        if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return ()
        raise
    return next((row.replicas for row in partitions if row.partition == key[1]), ())


def limited(brokers: Brokers, plan: Assignment) -> tuple[list[int], list[int], list[str]]:
    """Return the brokers that may have limits for a plan, the running ones among them, and its
    topics.
    """
    live = {broker.node_id for broker in describe_cluster(brokers).brokers}
    node_ids = sorted(live.union(*plan.values()))
    names = sorted({topic for topic, _ in plan})
    return node_ids, [number for number in node_ids if number in live], names
