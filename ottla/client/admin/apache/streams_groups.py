"""Streams groups: their topology and members (StreamsGroupDescribe; KIP-1071).

`admin.groups` lists and deletes them like other groups, and `admin.offsets` has their offsets.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ottla.client.admin.acls import AclOperation, operations_of
from ottla.client.admin.answers import check
from ottla.client.brokers import Brokers
from ottla.wire.messages import streams_group_describe as describing

Task = tuple[str, int]
"""The id of a sub-topology and a partition."""


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """A changelog or repartition topic; 0 partitions or replicas are the broker's choice."""

    name: str
    partitions: int
    replication_factor: int
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SubTopology:
    """A part of the topology, with the names of its topics."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    repartition_sink_topics: tuple[str, ...]
    state_changelog_topics: tuple[InternalTopic, ...]
    repartition_source_topics: tuple[InternalTopic, ...]


@dataclass(frozen=True, slots=True)
class TaskAssignment:
    """The tasks of a member."""

    active: tuple[Task, ...]
    standby: tuple[Task, ...]
    warmup: tuple[Task, ...]


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """A member: one thread of an application; `endpoint` is its application.server."""

    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    client_id: str
    host: str
    topology_epoch: int
    process_id: str
    endpoint: tuple[str, int] | None
    client_tags: Mapping[str, str]
    task_offsets: Mapping[Task, int]
    task_end_offsets: Mapping[Task, int]
    assignment: TaskAssignment
    target_assignment: TaskAssignment
    is_classic: bool


@dataclass(frozen=True, slots=True)
class StreamsGroup:
    """A streams group; `topology_epoch` is -1 while it has no topology."""

    group_id: str
    state: str
    group_epoch: int
    assignment_epoch: int
    topology_epoch: int
    subtopologies: tuple[SubTopology, ...]
    members: tuple[StreamsMember, ...]
    authorized_operations: frozenset[AclOperation] | None = None

    def source_partitions(self, member: StreamsMember) -> tuple[tuple[str, int], ...]:
        """Return the partitions that the active tasks of a member read."""
        topics = {
            part.subtopology_id: (
                *part.source_topics,
                *(topic.name for topic in part.repartition_source_topics),
            )
            for part in self.subtopologies
        }
        return tuple(
            sorted(
                {
                    (topic, partition)
                    for part, partition in member.assignment.active
                    for topic in topics[part]
                }
            )
        )


def describe_streams_group(
    brokers: Brokers, group_id: str, *, include_authorized_operations: bool = False
) -> StreamsGroup:
    """Return a streams group: topology, members, tasks (KIP-1071).

    ApiError GROUP_ID_NOT_FOUND.
    """
    request = describing.StreamsGroupDescribeRequest(
        group_ids=[group_id], include_authorized_operations=include_authorized_operations
    )

    def attempt() -> StreamsGroup:
        response = brokers.ask_coordinator(
            group_id, request, describing.StreamsGroupDescribeResponse
        )
        (group,) = response.groups
        check(group.error_code, group.error_message, subject=f"Group {group_id!r}")
        topology = group.topology or describing.Topology(epoch=-1)
        return StreamsGroup(
            group_id=group_id,
            state=group.group_state,
            group_epoch=group.group_epoch,
            assignment_epoch=group.assignment_epoch,
            topology_epoch=topology.epoch,
            subtopologies=tuple(_subtopology(row) for row in topology.subtopologies or ()),
            members=tuple(_member(row) for row in group.members),
            authorized_operations=operations_of(group.authorized_operations),
        )

    return brokers.retry(attempt)


def _subtopology(row: describing.Subtopology) -> SubTopology:
    return SubTopology(
        subtopology_id=row.subtopology_id,
        source_topics=tuple(row.source_topics),
        repartition_sink_topics=tuple(row.repartition_sink_topics),
        state_changelog_topics=_internal_topics(row.state_changelog_topics),
        repartition_source_topics=_internal_topics(row.repartition_source_topics),
    )


def _internal_topics(rows: Iterable[describing.TopicInfo]) -> tuple[InternalTopic, ...]:
    return tuple(
        InternalTopic(row.name, row.partitions, row.replication_factor, _by_key(row.topic_configs))
        for row in rows
    )


def _member(row: describing.Member) -> StreamsMember:
    endpoint = row.user_endpoint
    return StreamsMember(
        member_id=row.member_id,
        member_epoch=row.member_epoch,
        instance_id=row.instance_id,
        rack_id=row.rack_id,
        client_id=row.client_id,
        host=row.client_host.lstrip("/"),
        topology_epoch=row.topology_epoch,
        process_id=row.process_id,
        endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
        client_tags=_by_key(row.client_tags),
        task_offsets=_offsets(row.task_offsets),
        task_end_offsets=_offsets(row.task_end_offsets),
        assignment=_assignment(row.assignment),
        target_assignment=_assignment(row.target_assignment),
        is_classic=row.is_classic,
    )


def _assignment(row: describing.Assignment) -> TaskAssignment:
    return TaskAssignment(
        active=_tasks(row.active_tasks),
        standby=_tasks(row.standby_tasks),
        warmup=_tasks(row.warmup_tasks),
    )


def _tasks(rows: Iterable[describing.TaskIds]) -> tuple[Task, ...]:
    return tuple(sorted((row.subtopology_id, number) for row in rows for number in row.partitions))


def _by_key(rows: Iterable[describing.KeyValue]) -> dict[str, str]:
    return {row.key: row.value for row in rows}


def _offsets(rows: Iterable[describing.TaskOffset]) -> dict[Task, int]:
    return {(row.subtopology_id, row.partition): row.offset for row in rows}
