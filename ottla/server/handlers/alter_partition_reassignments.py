"""AlterPartitionReassignments (key 45), versions 0-1: move partitions to other brokers (KIP-455).

v1: a change of the replication factor can be forbidden (KIP-860). Null replicas cancel a move.

Every partition has its own result. The response is sent when the brokers have been notified of the
moves, not when the moves are complete.

Not done: nothing.
"""

from collections.abc import Iterable

from ottla.base.errors import ApiError
from ottla.controller.planning.requests import PartitionChangeResult, Reassignment
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

API = ApiKey.ALTER_PARTITION_REASSIGNMENTS
MIN_VERSION = 0
MAX_VERSION = 1
PROPERTIES = ApiProperties(is_administrative=True)


async def handle(
    context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Have the controller start the moves; a request-level error is set on every partition too."""
    requested = [
        Reassignment(
            topic.name,
            partition.partition_index,
            None if partition.replicas is None else tuple(partition.replicas),
        )
        for topic in request.topics
        for partition in topic.partitions
    ]
    may_change_factor = request.allow_replication_factor_change
    response = AlterPartitionReassignmentsResponse(
        error_message=None, allow_replication_factor_change=may_change_factor
    )
    try:
        results = await context.broker.controller.reassign(
            requested, may_change_factor=may_change_factor, timeout_ms=request.timeout_ms
        )
    except ApiError as error:
        response.error_code, response.error_message = int(error.code), error.message
        results = [
            PartitionChangeResult(reassignment.topic, reassignment.partition, error)
            for reassignment in requested
        ]
    response.responses = _by_topic(results, [topic.name for topic in request.topics])
    return response


def _by_topic(
    results: Iterable[PartitionChangeResult], requested: Iterable[str]
) -> list[ReassignableTopicResponse]:
    """Return the results by topic; a topic without requested partitions is included."""
    topics = {name: ReassignableTopicResponse(name=name) for name in requested}
    for topic, number, error in results:
        response = topics.setdefault(topic, ReassignableTopicResponse(name=topic))
        result = ReassignablePartitionResponse(partition_index=number, error_message=None)
        if error is not None:
            result.error_code, result.error_message = int(error.code), error.message
        response.partitions.append(result)
    return list(topics.values())
