"""ElectLeaders (key 43), versions 0-2: elect leaders on request (KIP-183).

v1: type of election and error of the whole request (KIP-460): 0 elects the preferred replica, 1
elects any live replica if there is no leader. v2: flexible.

Null means every partition; the response contains every topic, with the partitions that needed an
election. The response is sent when the brokers know the new leaders.

Not done: nothing.
"""

from collections.abc import Iterable

from ottla.base.errors import ApiError, ErrorCode
from ottla.controller.planning.elections import ElectionType
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from ottla.wire.schema import first_version

API = ApiKey.ELECT_LEADERS
MIN_VERSION = 0
MAX_VERSION = 2
PROPERTIES = ApiProperties(is_administrative=True)

_FIRST_VERSION_WITH_ERROR = first_version(ElectLeadersResponse, "error_code")


async def handle(context: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Have the controller elect leaders; a request-level error is set on every partition too."""
    requested, topics = None, list(context.broker.image.topics)
    if request.topic_partitions is not None:
        requested = [
            (topic.topic, number)
            for topic in request.topic_partitions
            for number in topic.partitions
        ]
        topics = [topic.topic for topic in request.topic_partitions]
    try:
        results = await context.broker.controller.elect_leaders(
            _election_type(request), requested, timeout_ms=request.timeout_ms
        )
    except ApiError as error:
        refused = [(topic, number, error) for topic, number in requested or ()]
        has_error = context.api_version >= _FIRST_VERSION_WITH_ERROR
        return ElectLeadersResponse(
            error_code=int(error.code) if has_error else 0,
            replica_election_results=_by_topic(refused),
        )
    return ElectLeadersResponse(replica_election_results=_by_topic(results, topics))


def _election_type(request: ElectLeadersRequest) -> ElectionType:
    try:
        return ElectionType(request.election_type)
    except ValueError as error:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}"
        ) from error


def _by_topic(
    results: Iterable[tuple[str, int, ApiError | None]], answered: Iterable[str] = ()
) -> list[ReplicaElectionResult]:
    """Return the results by topic; topics of `answered` without results are included."""
    topics = {name: ReplicaElectionResult(topic=name) for name in answered}
    for topic, number, error in results:
        response = topics.setdefault(topic, ReplicaElectionResult(topic=topic))
        result = PartitionResult(partition_id=number, error_message=None)
        if error is not None:
            result.error_code, result.error_message = int(error.code), error.message
        response.partition_result.append(result)
    return list(topics.values())
