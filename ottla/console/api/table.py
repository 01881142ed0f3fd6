"""The table of all operations."""

from ottla.console.api.calls import (
    access,
    clusters,
    groups,
    history,
    messages,
    moving,
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
    *access.OPERATIONS,
)
