"""The table of all operations."""

from ottla.console.api.calls import (
    access,
    clusters,
    groups,
    history,
    messages,
    moving,
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
    *access.OPERATIONS,
)
