"""ConsumerGroupHeartbeat (API key 68): membership and assignment in the consumer protocol of
KIP-848.

Versions 0-1, flexible; what each one added:

    1     subscription by regular expression; the member makes its own id (KIP-1082)
"""

from ottla.wire.schema import Message, Struct, array, int16, int32, nested, string, uuid


class TopicPartitions(Struct):
    """An element of `topic_partitions`."""

    topic_id: bytes = uuid()
    partitions: list[int] = array(int32)


class ConsumerGroupHeartbeatRequest(Message, api_key=68, versions=(0, 1), flexible_since=0):
    """Request of ConsumerGroupHeartbeat."""

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(nullable_since=0, default=None)
    rack_id: str | None = string(nullable_since=0, default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    subscribed_topic_names: list[str] | None = array(string, nullable_since=0, default=None)
    subscribed_topic_regex: str | None = string(since=1, nullable_since=0, default=None)
    server_assignor: str | None = string(nullable_since=0, default=None)
    topic_partitions: list[TopicPartitions] | None = array(
        TopicPartitions, nullable_since=0, default=None
    )


class Assignment(Struct):
    """The value of `assignment`."""

    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


class ConsumerGroupHeartbeatResponse(Message, api_key=68, versions=(0, 1), flexible_since=0):
    """Response of ConsumerGroupHeartbeat."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0, default=None)
    member_id: str | None = string(nullable_since=0, default=None)
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: Assignment | None = nested(Assignment, nullable_since=0, default=None)
