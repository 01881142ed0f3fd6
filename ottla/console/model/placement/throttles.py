"""Replication throttles (KIP-73): rates of brokers, and the replicas of topics that they limit."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Protocol

from ottla.base.errors import ConfigError
from ottla.client.admin.configs import Resource, ResourceType, alter_config, describe_config
from ottla.client.brokers import Brokers
from ottla.console.model.connections import ClusterConnection
from ottla.console.model.requests.metadata import read_metadata
from ottla.console.model.requests.options import read_topic_options

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"


class Moving(Protocol):
    """A move of a partition."""

    @property
    def topic(self) -> str:
        """The topic."""

    @property
    def partition(self) -> int:
        """The partition."""

    @property
    def before(self) -> tuple[int, ...]:
        """The replicas before the move, which send."""

    @property
    def adding(self) -> tuple[int, ...]:
        """The new replicas, which receive."""


def limit(connection: ClusterConnection, moves: Sequence[Moving], bytes_per_s: int) -> None:
    """Limit the traffic of moves on all brokers concerned, as kafka-reassign-partitions does."""
    _check(bytes_per_s)
    senders: dict[str, list[str]] = defaultdict(list)
    receivers: dict[str, list[str]] = defaultdict(list)
    nodes: set[int] = set()
    for move in moves:
        senders[move.topic] += [f"{move.partition}:{node}" for node in move.before]
        receivers[move.topic] += [f"{move.partition}:{node}" for node in move.adding]
        nodes.update(move.before, move.adding)
    live = nodes & set(read_metadata(connection).nodes)
    with connection.brokers() as brokers:
        for topic in senders:
            options = {
                LEADER_REPLICAS: ",".join(senders[topic]),
                FOLLOWER_REPLICAS: ",".join(receivers[topic]),
            }
            alter_config(brokers, Resource(ResourceType.TOPIC, topic), assign=options)
        _set_rates(brokers, sorted(live), bytes_per_s)


def read(connection: ClusterConnection) -> tuple[dict[int, int], dict[int, int], tuple[str, ...]]:
    """Return the leader rates and the follower rates by broker, and the topics with throttled
    replicas.
    """
    metadata = read_metadata(connection, is_fresh=True)
    leader: dict[int, int] = {}
    follower: dict[int, int] = {}
    with connection.brokers() as brokers:
        for node in metadata.nodes:
            rates = _rates(brokers, node)
            if LEADER_RATE in rates:
                leader[node] = rates[LEADER_RATE]
            if FOLLOWER_RATE in rates:
                follower[node] = rates[FOLLOWER_RATE]
    options = read_topic_options(
        connection, list(metadata.topics), [LEADER_REPLICAS, FOLLOWER_REPLICAS]
    )
    return leader, follower, tuple(sorted(name for name, row in options.items() if _is_set(row)))


def change(connection: ClusterConnection, bytes_per_s: int) -> list[int]:
    """Change the rate of all brokers that have one; return their ids."""
    _check(bytes_per_s)
    leader, follower, _ = read(connection)
    nodes = sorted({*leader, *follower})
    if not nodes:
        raise ConfigError("no broker has a replication throttle: start a reassignment with one")
    with connection.brokers() as brokers:
        _set_rates(brokers, nodes, bytes_per_s)
    connection.forget()
    return nodes


def remove(connection: ClusterConnection) -> None:
    """Remove the rates of all brokers and the throttled replicas of all topics."""
    leader, follower, topics = read(connection)
    with connection.brokers() as brokers:
        for node in sorted({*leader, *follower}):
            resource = Resource(ResourceType.BROKER, str(node))
            alter_config(brokers, resource, delete=[LEADER_RATE, FOLLOWER_RATE])
        for topic in topics:
            resource = Resource(ResourceType.TOPIC, topic)
            alter_config(brokers, resource, delete=[LEADER_REPLICAS, FOLLOWER_REPLICAS])
    connection.forget()


def _set_rates(brokers: Brokers, nodes: Sequence[int], bytes_per_s: int) -> None:
    rate = str(bytes_per_s)
    for node in nodes:
        resource = Resource(ResourceType.BROKER, str(node))
        alter_config(brokers, resource, assign={LEADER_RATE: rate, FOLLOWER_RATE: rate})


def _rates(brokers: Brokers, node: int) -> dict[str, int]:
    resource = Resource(ResourceType.BROKER, str(node))
    rows = describe_config(brokers, resource, names=[LEADER_RATE, FOLLOWER_RATE])
    # The default is the largest number: no limit.
    return {
        row.name: int(row.value) for row in rows if row.value and int(row.value) < (1 << 63) - 1
    }


def _is_set(options: Mapping[str, str]) -> bool:
    return any(options.get(name) for name in (LEADER_REPLICAS, FOLLOWER_REPLICAS))


def _check(bytes_per_s: int) -> None:
    if bytes_per_s < 1:
        raise ConfigError(f"{bytes_per_s} is not a throttle: use at least 1 byte per second")
