"""StreamsGroupDescribe (API key 89): streams groups with topology and members (KIP-1071).

Version 0, flexible.
"""

from ottla.wire.schema import (
    Message,
    Struct,
    array,
    boolean,
    int16,
    int32,
    int64,
    nested,
    string,
    uint16,
)


class StreamsGroupDescribeRequest(Message, api_key=89, versions=(0, 0), flexible_since=0):
    """Request of StreamsGroupDescribe."""

    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()


class KeyValue(Struct):
    """An element of `topic_configs`."""

    key: str = string()
    value: str = string()


class TopicInfo(Struct):
    """An element of `state_changelog_topics`."""

    name: str = string()
    partitions: int = int32()
    replication_factor: int = int16()
    topic_configs: list[KeyValue] = array(KeyValue)


class Subtopology(Struct):
    """An element of `subtopologies`."""

    subtopology_id: str = string()
    source_topics: list[str] = array(string)
    repartition_sink_topics: list[str] = array(string)
    state_changelog_topics: list[TopicInfo] = array(TopicInfo)
    repartition_source_topics: list[TopicInfo] = array(TopicInfo)


class Topology(Struct):
    """The value of `topology`."""

    epoch: int = int32()
    subtopologies: list[Subtopology] | None = array(Subtopology, nullable_since=0, default=None)


class Endpoint(Struct):
    """The value of `user_endpoint`."""

    host: str = string()
    port: int = uint16()


class TaskOffset(Struct):
    """An element of `task_offsets`."""

    subtopology_id: str = string()
    partition: int = int32()
    offset: int = int64()


class TaskIds(Struct):
    """An element of `active_tasks`."""

    subtopology_id: str = string()
    partitions: list[int] = array(int32)


class Assignment(Struct):
    """The value of `assignment`."""

    active_tasks: list[TaskIds] = array(TaskIds)
    standby_tasks: list[TaskIds] = array(TaskIds)
    warmup_tasks: list[TaskIds] = array(TaskIds)


class Member(Struct):
    """An element of `members`."""

    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(nullable_since=0, default=None)
    rack_id: str | None = string(nullable_since=0, default=None)
    client_id: str = string()
    client_host: str = string()
    topology_epoch: int = int32()
    process_id: str = string()
    user_endpoint: Endpoint | None = nested(Endpoint, nullable_since=0, default=None)
    client_tags: list[KeyValue] = array(KeyValue)
    task_offsets: list[TaskOffset] = array(TaskOffset)
    task_end_offsets: list[TaskOffset] = array(TaskOffset)
    assignment: Assignment = nested(Assignment)
    target_assignment: Assignment = nested(Assignment)
    is_classic: bool = boolean()


class DescribedGroup(Struct):
    """An element of `groups`."""

    error_code: int = int16()
    error_message: str | None = string(nullable_since=0, default=None)
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    topology: Topology | None = nested(Topology, nullable_since=0, default=None)
    members: list[Member] = array(Member)
    authorized_operations: int = int32(default=-0x80000000)


class StreamsGroupDescribeResponse(Message, api_key=89, versions=(0, 0), flexible_since=0):
    """Response of StreamsGroupDescribe."""

    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array(DescribedGroup)
