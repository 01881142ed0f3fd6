"""The limits of replication traffic that `kafka-reassign-partitions` sets and clears (KIP-73)."""

from collections.abc import Iterable, Mapping, Sequence

from ottla.client.admin import configs
from ottla.client.admin.replicas import Reassignment
from ottla.client.brokers import Brokers
from ottla.tools.scripts.reassignments import TopicPartition

_MOVES = "replica.alter.log.dirs.io.max.bytes.per.second"
_BROKER = ("leader.replication.throttled.rate", "follower.replication.throttled.rate",
           _MOVES)  # fmt: skip
_TOPIC = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


def throttle(
    brokers: Brokers,
    moves: Mapping[TopicPartition, tuple[Sequence[int], Sequence[int]]],
    bytes_per_second: int,
) -> None:
    """Limit the traffic of moves, given as old and new replicas by partition."""
    topics: dict[str, tuple[set[str], set[str]]] = {}
    involved: set[int] = set()
    for (topic, partition), (sources, targets) in moves.items():
        leaders, followers = topics.setdefault(topic, (set(), set()))
        leaders |= {f"{partition}:{broker}" for broker in sources}
        followers |= {f"{partition}:{broker}" for broker in {*targets} - {*sources}}
        involved |= {*sources, *targets}
    # Brokers first: one that knows no such limit refuses before anything has changed.
    for broker in sorted(involved):
        limits = dict.fromkeys(_BROKER[:2], str(bytes_per_second))
        _set(brokers, configs.ResourceType.BROKER, str(broker), limits)
    for topic, (leaders, followers) in topics.items():
        values = [",".join(sorted(leaders)), ",".join(sorted(followers))]
        _set(brokers, configs.ResourceType.TOPIC, topic, dict(zip(_TOPIC, values, strict=True)))


def throttle_moves(brokers: Brokers, node_ids: Iterable[int], bytes_per_second: int) -> None:
    """Limit the moves between the log directories of brokers."""
    for broker in sorted(set(node_ids)):
        _set(brokers, configs.ResourceType.BROKER, str(broker), {_MOVES: str(bytes_per_second)})


def clear(brokers: Brokers, node_ids: Sequence[int], topics: Sequence[str]) -> None:
    """Remove the limits of brokers and topics."""
    for broker in node_ids:
        resource = configs.Resource(configs.ResourceType.BROKER, str(broker))
        configs.alter_config(brokers, resource, delete=_BROKER)
    for topic in topics:
        resource = configs.Resource(configs.ResourceType.TOPIC, topic)
        configs.alter_config(brokers, resource, delete=_TOPIC)


def sources_of(current: Sequence[int], move: Reassignment | None) -> tuple[int, ...]:
    """Return the replicas that a partition moves from, also while it is being moved."""
    if move is None:
        return tuple(current)
    return tuple(broker for broker in move.replicas if broker not in move.adding)


def _set(
    brokers: Brokers, kind: configs.ResourceType, name: str, values: Mapping[str, str]
) -> None:
    configs.alter_config(brokers, configs.Resource(kind, name), assign=values)
