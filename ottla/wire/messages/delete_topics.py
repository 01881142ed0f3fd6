"""DeleteTopics (API key 20): delete topics.

Versions 1-6; what each one added:

    1     throttle time
    3     TOPIC_DELETION_DISABLED may be returned
    4     flexible
    5     error message; THROTTLING_QUOTA_EXCEEDED (KIP-599)
    6     by topic id or name, in `topics`
"""

from ottla.wire.schema import Message, Struct, array, int16, int32, string, uuid


class DeleteTopicState(Struct):
    """An element of `topics`."""

    name: str | None = string(nullable_since=0, default=None)
    topic_id: bytes = uuid()


class DeleteTopicsRequest(Message, api_key=20, versions=(1, 6), flexible_since=4):
    """Request of DeleteTopics."""

    topics: list[DeleteTopicState] = array(DeleteTopicState, since=6)
    topic_names: list[str] = array(string, until=5, ignorable=True)
    timeout_ms: int = int32()


class DeletableTopicResult(Struct):
    """An element of `responses`."""

    name: str | None = string(nullable_since=6)
    topic_id: bytes = uuid(since=6, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(since=5, nullable_since=0, default=None, ignorable=True)


class DeleteTopicsResponse(Message, api_key=20, versions=(1, 6), flexible_since=4):
    """Response of DeleteTopics."""

    throttle_time_ms: int = int32()
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)
