"""ListPartitionReassignments (key 46), version 0: moves that are under way (KIP-455).

Null topics mean all. Partitions that are not being moved, or do not exist, are left out.

Not done: nothing.
"""

from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode
from ottla.base.loading import deferred_module
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

if TYPE_CHECKING:
    from ottla.controller.planning import reassignment
else:
    # The first request needs it.
    reassignment = deferred_module("ottla.controller.planning.reassignment")

API = ApiKey.LIST_PARTITION_REASSIGNMENTS
MIN_VERSION = 0
MAX_VERSION = 0


def handle(
    context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Return the controller's moves, including those that brokers have not been notified of yet."""
    controller = context.broker.controller
    if not controller.is_active:
        code = ErrorCode.NOT_CONTROLLER
        return ListPartitionReassignmentsResponse(error_code=int(code), error_message=code.message)
    requested = None
    if request.topics is not None:
        requested = [
            (topic.name, number) for topic in request.topics for number in topic.partition_indexes
        ]
    moves = reassignment.ongoing(controller.image, requested)
    return ListPartitionReassignmentsResponse(
        error_message=None,
        topics=[
            OngoingTopicReassignment(
                name=name,
                partitions=[
                    OngoingPartitionReassignment(
                        partition_index=partition.partition,
                        replicas=list(partition.replicas),
                        adding_replicas=list(partition.adding_replicas),
                        removing_replicas=list(partition.removing_replicas),
                    )
                    for partition in partitions
                ],
            )
            for name, partitions in moves.items()
        ],
    )
