"""CreatePartitions (key 37), versions 0-3: add partitions to topics.

v2: flexible. v3: may be throttled (KIP-599).

The response is sent when the new leaders have been elected. A timeout of 0 or less creates nothing.

If a client has exceeded its quota of mutations, it gets THROTTLING_QUOTA_EXCEEDED from v3 on;
before v3 it is throttled.

Not done: nothing.
"""

from collections import Counter

from ottla.base.errors import ApiError, ErrorCode
from ottla.controller.planning.creation import PARTITIONS_MAX
from ottla.controller.planning.requests import PartitionsRequest
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext
from ottla.server.quotas import mutations
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

API = ApiKey.CREATE_PARTITIONS
MIN_VERSION = 0
MAX_VERSION = 3
PROPERTIES = ApiProperties(is_administrative=True)

_FIRST_STRICT_VERSION = 3


def refuse_too_many(
    request: CreatePartitionsRequest, context: RequestContext
) -> CreatePartitionsResponse | None:
    """Refuse all topics if they get too many partitions together, as in KRaft; otherwise None."""
    image = context.broker.image
    count = 0
    for topic in request.topics:
        known = image.topic(topic.name)
        count += 0 if known is None else max(0, topic.count - len(known.partitions))
    if count <= PARTITIONS_MAX:
        return None
    error = ApiError(
        ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
    )
    names = dict.fromkeys(topic.name for topic in request.topics)
    return CreatePartitionsResponse(results=[_result(name, error) for name in names])


async def handle(
    context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    """Have the controller extend the topics that are named once; a duplicate name is refused."""
    refusal = refuse_too_many(request, context)
    if refusal is not None:
        return refusal
    occurrences = Counter(topic.name for topic in request.topics)
    requested = [topic for topic in request.topics if occurrences[topic.name] == 1]
    twice = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    errors: dict[str, ApiError | None] = {
        name: twice for name, count in occurrences.items() if count > 1
    }
    if requested:
        errors |= await _create(context, request, requested)
    return CreatePartitionsResponse(results=[_result(name, errors[name]) for name in occurrences])


async def _create(
    context: RequestContext,
    request: CreatePartitionsRequest,
    requested: list[CreatePartitionsTopic],
) -> dict[str, ApiError | None]:
    try:
        results = await context.broker.controller.create_partitions(
            [_partitions_request(topic) for topic in requested],
            validate_only=request.validate_only,
            timeout_ms=request.timeout_ms,
            admit=mutations.admission(context, strict_since=_FIRST_STRICT_VERSION),
        )
    except ApiError as error:
        return {topic.name: error for topic in requested}
    return {result.name: result.error for result in results}


def _partitions_request(topic: CreatePartitionsTopic) -> PartitionsRequest:
    assignments = topic.assignments
    return PartitionsRequest(
        name=topic.name,
        count=topic.count,
        assignments=None
        if assignments is None
        else tuple(tuple(assignment.broker_ids) for assignment in assignments),
    )


def _result(name: str, error: ApiError | None) -> CreatePartitionsTopicResult:
    result = CreatePartitionsTopicResult(name=name)
    if error is not None:
        result.error_code, result.error_message = int(error.code), error.message
    return result
