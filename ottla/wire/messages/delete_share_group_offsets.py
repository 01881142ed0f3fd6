"""DeleteShareGroupOffsets (API key 92): delete the state of topics in a share group (KIP-932).

Version 0, flexible.
"""

from ottla.wire.schema import Message, Struct, array, int16, int32, string, uuid


class DeleteShareGroupOffsetsRequestTopic(Struct):
    """An element of `topics`."""

    topic_name: str = string()


class DeleteShareGroupOffsetsRequest(Message, api_key=92, versions=(0, 0), flexible_since=0):
    """Request of DeleteShareGroupOffsets."""

    group_id: str = string()
    topics: list[DeleteShareGroupOffsetsRequestTopic] = array(DeleteShareGroupOffsetsRequestTopic)


class DeleteShareGroupOffsetsResponseTopic(Struct):
    """An element of `responses`."""

    topic_name: str = string()
    topic_id: bytes = uuid()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0, default=None)


class DeleteShareGroupOffsetsResponse(Message, api_key=92, versions=(0, 0), flexible_since=0):
    """Response of DeleteShareGroupOffsets."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0, default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = array(
        DeleteShareGroupOffsetsResponseTopic
    )
