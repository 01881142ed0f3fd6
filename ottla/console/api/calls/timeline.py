"""Operations on the timeline: leaders, ISR, controllers and brokers over time."""

from ottla.console.accounts.roles import Role
from ottla.console.api.operations import CLUSTER_PATH, Operation
from ottla.console.timeline.spans import NodeSpan, PartitionSpan, Period
from ottla.console.timeline.store import TimelineStore
from ottla.operations.survey.connections import ClusterConnection


def list_leader_history(
    connection: ClusterConnection,
    timeline: TimelineStore,
    *,
    topic: str = "",
    partition: int | None = None,
    since_ms: int = 0,
) -> list[PartitionSpan]:
    """Return who led partitions, with which ISR and epoch, since a time in ms; of the last week.
    At most the newest 10 000 spans are returned.
    """
    return timeline.partitions(connection.name, topic=topic, partition=partition, since_ms=since_ms)


def list_controller_history(
    connection: ClusterConnection, timeline: TimelineStore, *, since_ms: int = 0
) -> list[NodeSpan]:
    """Return which broker was the controller, with its epoch, since a time in ms."""
    return timeline.controllers(connection.name, since_ms=since_ms)


def list_broker_history(
    connection: ClusterConnection, timeline: TimelineStore, *, since_ms: int = 0
) -> list[NodeSpan]:
    """Return the periods in which brokers were registered, since a time in ms."""
    return timeline.brokers(connection.name, since_ms=since_ms)


def list_sampled_periods(
    connection: ClusterConnection, timeline: TimelineStore, *, since_ms: int = 0
) -> list[Period]:
    """Return the periods in which the console sampled the cluster; between them nothing is known."""
    return timeline.periods(connection.name, since_ms=since_ms)


_BASE = f"{CLUSTER_PATH}/timeline"
_TAG = "timeline"

OPERATIONS = (
    Operation("GET", f"{_BASE}/leaders", Role.VIEWER, list_leader_history, _TAG),
    Operation("GET", f"{_BASE}/controllers", Role.VIEWER, list_controller_history, _TAG),
    Operation("GET", f"{_BASE}/brokers", Role.VIEWER, list_broker_history, _TAG),
    Operation("GET", f"{_BASE}/periods", Role.VIEWER, list_sampled_periods, _TAG),
)
