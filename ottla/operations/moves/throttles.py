"""Limits of replication traffic (KIP-73): rates of brokers, and the replicas that they limit."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from ottla.base.errors import ConfigError
from ottla.client.admin import configs
from ottla.client.admin.replicas import Reassignment
from ottla.client.brokers import Brokers
from ottla.operations.changes import Change
from ottla.operations.moves.plans import TopicPartition as Key

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
RATES = (LEADER_RATE, FOLLOWER_RATE)
"""The options of brokers for moves between them."""
REPLICAS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
"""The options of topics."""
_DIRECTORIES_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


def throttle(
    brokers: Brokers,
    targets: Mapping[Key, Sequence[int]],
    current: Mapping[Key, Sequence[int]],
    moves: Mapping[Key, Reassignment],
    bytes_per_second: int,
    *,
    live: Collection[int] | None = None,
) -> None:
    """Limit the traffic of new replicas, on the brokers that send and on those that receive.

    `moves` are the moves under way, whose new replicas are still copied. If `live` is given, only
    brokers in it get a limit.
    """
    throttled = throttled_replicas(targets, current, moves)
    # Brokers first: one that knows no such limit refuses before anything has changed.
    chosen = throttled.brokers if live is None else throttled.brokers & set(live)
    set_rates(brokers, chosen, bytes_per_second)
    for topic, values in throttled.replicas.items():
        _set(brokers, configs.ResourceType.TOPIC, topic, dict(zip(REPLICAS, values, strict=True)))


class ThrottledReplicas(NamedTuple):
    """The brokers that a limit needs, and the values of the topics' options: who sends and who
    receives.
    """

    brokers: set[int]
    replicas: dict[str, tuple[str, str]]


def throttled_replicas(
    targets: Mapping[Key, Sequence[int]],
    current: Mapping[Key, Sequence[int]],
    moves: Mapping[Key, Reassignment],
) -> ThrottledReplicas:
    """Return the brokers and replicas that a limit of new replicas concerns. Pure."""
    topics: dict[str, tuple[set[str], set[str]]] = {}
    involved: set[int] = set()
    for key, replicas in targets.items():
        topic, partition = key
        sources = sources_of(current[key], moves.get(key))
        leaders, followers = topics.setdefault(topic, (set(), set()))
        leaders |= {f"{partition}:{broker}" for broker in sources}
        followers |= {f"{partition}:{broker}" for broker in {*replicas} - {*sources}}
        involved |= {*sources, *replicas}
    return ThrottledReplicas(
        involved,
        {
            topic: (",".join(sorted(leaders)), ",".join(sorted(followers)))
            for topic, (leaders, followers) in topics.items()
        },
    )


def check_rate(bytes_per_second: int) -> None:
    """Raise ConfigError unless a limit is a positive number."""
    if bytes_per_second < 1:
        raise ConfigError(f"{bytes_per_second} is not a throttle: use at least 1 byte per second")


def set_rates(brokers: Brokers, node_ids: Iterable[int], bytes_per_second: int) -> None:
    """Limit the traffic of throttled replicas of brokers, in both directions."""
    for broker in sorted(node_ids):
        limits = dict.fromkeys(RATES, str(bytes_per_second))
        _set(brokers, configs.ResourceType.BROKER, str(broker), limits)


def change_rates(
    brokers: Brokers, node_ids: Iterable[int], bytes_per_second: int, *, cluster: str = ""
) -> Change:
    """Change the limit of brokers that have one."""
    nodes = sorted(node_ids)
    set_rates(brokers, nodes, bytes_per_second)
    return Change(
        cluster,
        "partition.change-throttle",
        f"{len(nodes)} brokers",
        after=_limits(dict.fromkeys(nodes, bytes_per_second)),
    )


def remove_rates(
    brokers: Brokers, rates: Mapping[int, int], topics: Iterable[str], *, cluster: str = ""
) -> Change:
    """Remove the limits of brokers, and the throttled replicas of topics."""
    clear(brokers, sorted(rates), topics, rates=RATES)
    return Change(
        cluster, "partition.remove-throttle", f"{len(rates)} brokers", before=_limits(rates)
    )


def _limits(rates: Mapping[int, int]) -> dict[str, str]:
    return {f"broker {node}": f"{rate} bytes/s" for node, rate in sorted(rates.items())}


def throttle_moves(brokers: Brokers, node_ids: Iterable[int], bytes_per_second: int) -> None:
    """Limit the moves between the log directories of brokers."""
    for broker in sorted(set(node_ids)):
        limits = {_DIRECTORIES_RATE: str(bytes_per_second)}
        _set(brokers, configs.ResourceType.BROKER, str(broker), limits)


def clear(
    brokers: Brokers,
    node_ids: Iterable[int],
    topics: Iterable[str],
    *,
    rates: Sequence[str] = (*RATES, _DIRECTORIES_RATE),
) -> None:
    """Remove the limits of brokers and topics, including the brokers' limits of moves between
    directories, unless `rates` names others.
    """
    for broker in node_ids:
        resource = configs.Resource(configs.ResourceType.BROKER, str(broker))
        configs.alter_config(brokers, resource, delete=rates)
    for topic in topics:
        resource = configs.Resource(configs.ResourceType.TOPIC, topic)
        configs.alter_config(brokers, resource, delete=REPLICAS)


def sources_of(current: Sequence[int], move: Reassignment | None) -> tuple[int, ...]:
    """Return the replicas that a partition moves from, also while it is being moved."""
    if move is None:
        return tuple(current)
    return tuple(broker for broker in move.replicas if broker not in move.adding)


def _set(
    brokers: Brokers, kind: configs.ResourceType, name: str, values: Mapping[str, str]
) -> None:
    configs.alter_config(brokers, configs.Resource(kind, name), assign=values)
