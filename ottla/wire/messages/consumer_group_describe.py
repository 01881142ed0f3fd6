"""ConsumerGroupDescribe (API key 69): groups of the consumer protocol of KIP-848.

Versions 0-1, flexible; what each one added:

    1     member type (KIP-1099)
"""

from ottla.wire.schema import (
    Message,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    nested,
    string,
    uuid,
)


class ConsumerGroupDescribeRequest(Message, api_key=69, versions=(0, 1), flexible_since=0):
    """Request of ConsumerGroupDescribe."""

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
    instance_id: str | None = string(nullable_since=0, default=None)
    rack_id: str | None = string(nullable_since=0, default=None)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    subscribed_topic_regex: str | None = string(nullable_since=0, default=None)
    assignment: Assignment = nested(Assignment)
    target_assignment: Assignment = nested(Assignment)
    member_type: int = int8(since=1, default=-1, ignorable=True)


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


class ConsumerGroupDescribeResponse(Message, api_key=69, versions=(0, 1), flexible_since=0):
    """Response of ConsumerGroupDescribe."""

    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array(DescribedGroup)
