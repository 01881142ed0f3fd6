"""The table of all operations."""

from ottla.console.api.calls import (
    access,
    alerts,
    clusters,
    groups,
    history,
    messages,
    moving,
    sql,
    streams,
    timeline,
    topics,
)
from ottla.console.api.operations import Operation

OPERATIONS: tuple[Operation, ...] = (
    *clusters.OPERATIONS,
    *topics.OPERATIONS,
    *messages.OPERATIONS,
    *groups.OPERATIONS,
    *history.OPERATIONS,
    *moving.OPERATIONS,
    *timeline.OPERATIONS,
    *streams.OPERATIONS,
    *sql.OPERATIONS,
    *access.OPERATIONS,
    *alerts.OPERATIONS,
)
