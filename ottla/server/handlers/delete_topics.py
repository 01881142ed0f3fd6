"""DeleteTopics (key 20), versions 1-6: delete topics by name or, from v6 on, by id.

v3: TOPIC_DELETION_DISABLED if delete.topic.enable is off (INVALID_REQUEST before). v4: flexible.
v5: error message, may be throttled (KIP-599). v6: names or ids, in `topics` (KIP-516).

The response is sent when the topics have been removed from the tree and their logs are deleted. A
timeout of 0 or less deletes nothing.

If a client has exceeded its quota of mutations, it gets THROTTLING_QUOTA_EXCEEDED from v5 on;
before v5 it is throttled.

Not done: nothing.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.uuids import ZERO_UUID
from ottla.cluster.image import ClusterImage
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext
from ottla.server.quotas import mutations
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ottla.wire.schema import first_version

API = ApiKey.DELETE_TOPICS
MIN_VERSION = 1
MAX_VERSION = 6
PROPERTIES = ApiProperties(is_administrative=True)

_FIRST_VERSION_WITH_STATES = first_version(DeleteTopicsRequest, "topics")
_FIRST_VERSION_WITH_DISABLED = 3
_FIRST_STRICT_VERSION = 5


class _Named(NamedTuple):
    """A topic to delete: the client's name or id for it, and the topic found."""

    name: str | None
    topic_id: bytes
    topic: str | None
    error: ApiError | None = None


async def handle(context: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """Have the controller delete the topics that exist and are named once."""
    states = request.topics
    if context.api_version < _FIRST_VERSION_WITH_STATES:
        states = [DeleteTopicState(name=name) for name in request.topic_names]
    if not context.broker.controller.is_active:
        # The metadata of this broker may lag behind: only the controller knows which topics exist.
        refusal = ApiError(ErrorCode.NOT_CONTROLLER)
        named = [_Named(state.name, state.topic_id, None, refusal) for state in states]
        return DeleteTopicsResponse(responses=[_answer(topic, refusal) for topic in named])
    if context.broker.options.boolean("delete.topic.enable"):
        named = _named(states, context.broker.image)
    else:
        refusal = _disabled(context.api_version)
        named = [_Named(state.name, state.topic_id, None, refusal) for state in states]
    if mutations.are_limited(context):
        named = [_within_quota(context, topic) for topic in named]
    topics = [topic.topic for topic in named if topic.error is None and topic.topic is not None]
    errors = await _delete(context, topics, request.timeout_ms) if topics else {}
    return DeleteTopicsResponse(
        responses=[_answer(topic, topic.error or errors.get(topic.topic or "")) for topic in named]
    )


def _disabled(api_version: int) -> ApiError:
    is_known = api_version >= _FIRST_VERSION_WITH_DISABLED
    code = ErrorCode.TOPIC_DELETION_DISABLED if is_known else ErrorCode.INVALID_REQUEST
    return ApiError(code, "Topic deletion is disabled: delete.topic.enable is off.")


def _named(states: Iterable[DeleteTopicState], image: ClusterImage) -> list[_Named]:
    """Look up the topics; a topic that is named twice, by name or by id, is not deleted."""
    topics: list[_Named] = []
    for (name, topic_id), count in Counter(
        (state.name, state.topic_id) for state in states
    ).items():
        if (name is None) == (topic_id == ZERO_UUID):
            refusal = ApiError(
                ErrorCode.INVALID_REQUEST, "Each topic needs either a name or an id."
            )
            topics += [_Named(name, topic_id, None, refusal)] * count
        elif count > 1:
            topics.append(_Named(name, topic_id, None, _twice()))
        else:
            topics.append(_find(name, topic_id, image))
    named: dict[object, _Named] = {}
    for number, topic in enumerate(topics):
        # An entry that matches no topic cannot be a duplicate of another one.
        key = number if topic.topic is None else topic.topic
        named[key] = topic._replace(error=_twice()) if key in named else topic
    return list(named.values())


def _within_quota(context: RequestContext, named: _Named) -> _Named:
    topic = context.broker.image.topic(named.topic or "")
    if named.error is not None or topic is None:
        return named
    partitions = len(topic.partitions)
    return named._replace(
        error=mutations.refusal(context, partitions, strict_since=_FIRST_STRICT_VERSION)
    )


def _twice() -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, "The topic is named more than once.")


def _find(name: str | None, topic_id: bytes, image: ClusterImage) -> _Named:
    if name is None:
        topic = image.topic_by_id(topic_id)
        if topic is None:
            return _Named(None, topic_id, None, ApiError(ErrorCode.UNKNOWN_TOPIC_ID))
        return _Named(topic.name, topic_id, topic.name)
    topic = image.topic(name)
    return _Named(name, ZERO_UUID if topic is None else topic.topic_id, name)


async def _delete(
    context: RequestContext, topics: list[str], timeout_ms: int
) -> dict[str, ApiError | None]:
    try:
        results = await context.broker.controller.delete_topics(topics, timeout_ms=timeout_ms)
    except ApiError as error:
        return dict.fromkeys(topics, error)
    return {result.name: result.error for result in results}


def _answer(named: _Named, error: ApiError | None) -> DeletableTopicResult:
    result = DeletableTopicResult(name=named.name, topic_id=named.topic_id)
    if error is not None:
        result.error_code, result.error_message = int(error.code), error.message
    return result
