"""Replication throttles (KIP-73) of all brokers and topics of a cluster."""

from collections.abc import Mapping

from ottla.base.errors import ConfigError
from ottla.client.admin.configs import Resource, ResourceType, describe_config
from ottla.client.brokers import Brokers
from ottla.operations.changes import Change
from ottla.operations.moves.throttles import (
    FOLLOWER_RATE,
    LEADER_RATE,
    RATES,
    REPLICAS,
    change_rates,
    check_rate,
    remove_rates,
)
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.metadata import read_metadata
from ottla.operations.survey.options import read_topic_options


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
    options = read_topic_options(connection, list(metadata.topics), REPLICAS)
    return leader, follower, tuple(sorted(name for name, row in options.items() if _is_set(row)))


def change(connection: ClusterConnection, bytes_per_s: int) -> Change:
    """Change the rate of all brokers that have one; ConfigError if none has."""
    check_rate(bytes_per_s)
    leader, follower, _ = read(connection)
    nodes = sorted({*leader, *follower})
    if not nodes:
        raise ConfigError("no broker has a replication throttle: start a reassignment with one")
    with connection.brokers() as brokers:
        changed = change_rates(brokers, nodes, bytes_per_s, cluster=connection.name)
    connection.forget()
    return changed


def remove(connection: ClusterConnection) -> Change:
    """Remove the rates of all brokers and the throttled replicas of all topics."""
    leader, follower, topics = read(connection)
    with connection.brokers() as brokers:
        changed = remove_rates(brokers, {**leader, **follower}, topics, cluster=connection.name)
    connection.forget()
    return changed


def _rates(brokers: Brokers, node: int) -> dict[str, int]:
    resource = Resource(ResourceType.BROKER, str(node))
    rows = describe_config(brokers, resource, names=RATES)
    # The default is the largest number: no limit.
    return {
        row.name: int(row.value) for row in rows if row.value and int(row.value) < (1 << 63) - 1
    }


def _is_set(options: Mapping[str, str]) -> bool:
    return any(options.get(name) for name in REPLICAS)
