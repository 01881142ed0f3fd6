"""ShareGroupDescribe (API key 77): share groups with their members (KIP-932).

Version 1, flexible; version 0 was an early access of Apache Kafka 4.0.
"""

from ottla.wire.schema import Message, Struct, array, boolean, int16, int32, nested, string, uuid


class ShareGroupDescribeRequest(Message, api_key=77, versions=(1, 1), flexible_since=0):
    """Request of ShareGroupDescribe."""

    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()


class TopicPartitions(Struct):
    """An element of `topic_partitions`."""

    topic_id: bytes = uuid()
    topic_name: str = string()
    partitions: list[int] = array(int32)


class Assignment(Struct):
    """The value of `assignment`."""

    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


class Member(Struct):
    """An element of `members`."""

    member_id: str = string()
    rack_id: str | None = string(nullable_since=0, default=None)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    assignment: Assignment = nested(Assignment)


class DescribedGroup(Struct):
    """An element of `groups`."""

    error_code: int = int16()
    error_message: str | None = string(nullable_since=0, default=None)
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: list[Member] = array(Member)
    authorized_operations: int = int32(default=-0x80000000)


class ShareGroupDescribeResponse(Message, api_key=77, versions=(1, 1), flexible_since=0):
    """Response of ShareGroupDescribe."""

    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array(DescribedGroup)
