"""The checks of APIs of groups, and of FindCoordinator."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ottla.base.errors import ApiError, ErrorCode
from ottla.security.acls import AclOperation, ResourceType
from ottla.server.authorization.access import Access
from ottla.server.authorization.by_topic import ByTopic
from ottla.server.authorization.guarding import Check, Verdict
from ottla.wire.messages import (
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    describe_groups,
    find_coordinator,
    join_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
)
from ottla.wire.schema import first_version, first_version_with_null

R = TypeVar("R")

_GROUP = ResourceType.GROUP
_FAILED = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
_FIRST_VERSION_WITH_ERROR = first_version(offset_fetch.OffsetFetchResponse, "error_code")
_FIRST_VERSION_WITH_GROUPS = first_version(offset_fetch.OffsetFetchRequest, "groups")
_FIRST_VERSION_WITH_KEYS = first_version(
    find_coordinator.FindCoordinatorRequest, "coordinator_keys"
)
_FIRST_VERSION_WITH_NULL = first_version_with_null(join_group.JoinGroupResponse, "protocol_name")
# The type of coordinator, and the resource that its keys name.
_KEYS = {
    0: (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    1: (ResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
}
_HIDDEN = "The group has described topic(s) that the client is not authorized to describe."

COMMIT = ByTopic(
    operation=AclOperation.READ,
    response=offset_commit.OffsetCommitResponse,
    topic=offset_commit.OffsetCommitResponseTopic,
    partition=offset_commit.OffsetCommitResponsePartition,
)
_DELETE = ByTopic(
    operation=AclOperation.READ,
    response=offset_delete.OffsetDeleteResponse,
    topic=offset_delete.OffsetDeleteResponseTopic,
    partition=offset_delete.OffsetDeleteResponsePartition,
)
_UNKNOWN_OFFSET = {"committed_offset": -1, "metadata": ""}
_FETCH_ONE = ByTopic(
    operation=AclOperation.DESCRIBE,
    response=offset_fetch.OffsetFetchResponse,
    topic=offset_fetch.OffsetFetchResponseTopic,
    partition=offset_fetch.OffsetFetchResponsePartition,
    partitions=("partition_indexes", "partitions"),
    number=(None, "partition_index"),
    values=_UNKNOWN_OFFSET,
)
_FETCH_MANY = ByTopic(
    operation=AclOperation.DESCRIBE,
    response=offset_fetch.OffsetFetchResponse,
    topic=offset_fetch.OffsetFetchResponseTopics,
    partition=offset_fetch.OffsetFetchResponsePartitions,
    partitions=("partition_indexes", "partitions"),
    number=(None, "partition_index"),
    values=_UNKNOWN_OFFSET,
)


def group(operation: AclOperation) -> Check:
    """Return the check of an API whose request names one group."""

    def check(access: Access, request: Any) -> Verdict:
        access.require(operation, _GROUP, request.group_id)
        return None

    return check


def check_join(access: Access, request: join_group.JoinGroupRequest) -> Verdict:
    """READ of the group."""
    if access.may(AclOperation.READ, _GROUP, request.group_id):
        return None
    has_null = access.version >= _FIRST_VERSION_WITH_NULL
    return join_group.JoinGroupResponse(error_code=_FAILED, protocol_name=None if has_null else "")


def check_offset_commit(access: Access, request: offset_commit.OffsetCommitRequest) -> Verdict:
    """READ of the group and of each topic."""
    if not access.may(AclOperation.READ, _GROUP, request.group_id):
        return COMMIT.all_refused(request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return COMMIT(access, request)


def check_offset_delete(access: Access, request: offset_delete.OffsetDeleteRequest) -> Verdict:
    """DELETE of the group and READ of each topic."""
    access.require(AclOperation.DELETE, _GROUP, request.group_id)
    allowed, refused = _DELETE.split(access, request.topics)
    if not refused:
        return None
    request.topics = allowed

    def complete(
        response: offset_delete.OffsetDeleteResponse,
    ) -> offset_delete.OffsetDeleteResponse:
        if not response.error_code:
            response.topics += refused
        return response

    return complete


def check_offset_fetch(access: Access, request: offset_fetch.OffsetFetchRequest) -> Verdict:
    """DESCRIBE of each group and topic; a request for all topics hides the others."""
    if access.version < _FIRST_VERSION_WITH_GROUPS:
        return _check_one_group(access, request)
    refused = []
    allowed = []
    # The refused topics of each allowed group; None if the request is for all.
    topics: list[list[Any] | None] = []
    for one in request.groups:
        if not access.may(AclOperation.DESCRIBE, _GROUP, one.group_id):
            refused.append(
                offset_fetch.OffsetFetchResponseGroup(group_id=one.group_id, error_code=_FAILED)
            )
            continue
        allowed.append(one)
        hidden = None
        if one.topics is not None:
            one.topics, hidden = _FETCH_MANY.split(access, one.topics)
        topics.append(hidden)
    request.groups = allowed

    def complete(response: offset_fetch.OffsetFetchResponse) -> offset_fetch.OffsetFetchResponse:
        for one, hidden in zip(response.groups, topics, strict=True):
            if hidden is None:
                one.topics = [topic for topic in one.topics if _may_see(access, topic)]
            elif not one.error_code:
                one.topics += hidden
        response.groups += refused
        return response

    return complete if allowed else offset_fetch.OffsetFetchResponse(groups=refused)


def _may_see(access: Access, topic: Any) -> bool:
    name = getattr(topic, "name", "") or access.image.topic_names.get(topic.topic_id, "")
    return access.shows(ResourceType.TOPIC, name)


def _check_one_group(access: Access, request: offset_fetch.OffsetFetchRequest) -> Verdict:
    if not access.may(AclOperation.DESCRIBE, _GROUP, request.group_id):
        if access.version >= _FIRST_VERSION_WITH_ERROR:
            return offset_fetch.OffsetFetchResponse(error_code=_FAILED)
        return _FETCH_ONE.all_refused(request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if request.topics is None:

        def hide(response: offset_fetch.OffsetFetchResponse) -> offset_fetch.OffsetFetchResponse:
            response.topics = [topic for topic in response.topics if _may_see(access, topic)]
            return response

        return hide
    request.topics, refused = _FETCH_ONE.split(access, request.topics)

    def complete(response: offset_fetch.OffsetFetchResponse) -> offset_fetch.OffsetFetchResponse:
        if not response.error_code:
            response.topics += refused
        return response

    return complete if refused else None


def check_find_coordinator(
    access: Access, request: find_coordinator.FindCoordinatorRequest
) -> Verdict:
    """DESCRIBE of the group or the transactional id."""
    if request.key_type not in _KEYS:
        return None
    kind, code = _KEYS[request.key_type]
    if access.version < _FIRST_VERSION_WITH_KEYS:
        if access.may(AclOperation.DESCRIBE, kind, request.key):
            return None
        return find_coordinator.FindCoordinatorResponse(
            error_code=int(code), error_message=ApiError(code).message, node_id=-1, port=-1
        )
    keys = [key for key in request.coordinator_keys if access.may(AclOperation.DESCRIBE, kind, key)]
    refused = [
        find_coordinator.Coordinator(
            key=key, node_id=-1, port=-1, error_code=int(code), error_message=ApiError(code).message
        )
        for key in request.coordinator_keys
        if not access.may(AclOperation.DESCRIBE, kind, key)
    ]
    request.coordinator_keys = keys

    def complete(
        response: find_coordinator.FindCoordinatorResponse,
    ) -> find_coordinator.FindCoordinatorResponse:
        response.coordinators += refused
        return response

    if not refused:
        return None
    return complete if keys else find_coordinator.FindCoordinatorResponse(coordinators=refused)


def _split(
    access: Access, operation: AclOperation, names: Iterable[str], row: Callable[[str], R]
) -> tuple[list[str], list[R]]:
    """Return the groups that the sender may use, and the parts of the response for the others."""
    may = {name: access.may(operation, _GROUP, name) for name in names}
    return [name for name in names if may[name]], [row(name) for name in names if not may[name]]


def check_describe_groups(
    access: Access, request: describe_groups.DescribeGroupsRequest
) -> Verdict:
    """DESCRIBE of each group."""
    request.groups, refused = _split(
        access,
        AclOperation.DESCRIBE,
        request.groups,
        lambda name: describe_groups.DescribedGroup(group_id=name, error_code=_FAILED),
    )

    def complete(
        response: describe_groups.DescribeGroupsResponse,
    ) -> describe_groups.DescribeGroupsResponse:
        response.groups = [*refused, *response.groups]
        return response

    return complete if refused else None


def check_list_groups(access: Access, request: list_groups.ListGroupsRequest) -> Verdict:
    """Hide groups: DESCRIBE of the cluster, or of the group."""
    if access.has_cluster_right(AclOperation.DESCRIBE):
        return None

    def complete(response: list_groups.ListGroupsResponse) -> list_groups.ListGroupsResponse:
        response.groups = [row for row in response.groups if access.shows(_GROUP, row.group_id)]
        return response

    return complete


def check_delete_groups(access: Access, request: delete_groups.DeleteGroupsRequest) -> Verdict:
    """DELETE of each group."""
    names, refused = _split(
        access,
        AclOperation.DELETE,
        dict.fromkeys(request.groups_names),
        lambda name: delete_groups.DeletableGroupResult(group_id=name, error_code=_FAILED),
    )
    if not refused:
        return None
    request.groups_names = names

    def complete(
        response: delete_groups.DeleteGroupsResponse,
    ) -> delete_groups.DeleteGroupsResponse:
        response.results += refused
        return response

    return complete if request.groups_names else delete_groups.DeleteGroupsResponse(results=refused)


def check_consumer_heartbeat(
    access: Access, request: consumer_group_heartbeat.ConsumerGroupHeartbeatRequest
) -> Verdict:
    """READ of the group, and DESCRIBE of each topic that the subscription names.

    A regular expression is resolved with the rights of one member, by the coordinator. Its topics
    are assigned to each member with this expression, as in Kafka: by their ids, without names.
    """
    access.require(AclOperation.READ, _GROUP, request.group_id)
    for name in request.subscribed_topic_names or ():
        access.require(AclOperation.DESCRIBE, ResourceType.TOPIC, name)
    return None


def _hidden(
    group: consumer_group_describe.DescribedGroup,
) -> consumer_group_describe.DescribedGroup:
    """Return a group without anything but its id, because its members have hidden topics."""
    return consumer_group_describe.DescribedGroup(
        group_id=group.group_id,
        error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        error_message=_HIDDEN,
    )


def check_consumer_describe(
    access: Access, request: consumer_group_describe.ConsumerGroupDescribeRequest
) -> Verdict:
    """DESCRIBE of each group, and of the topics of its members."""
    request.group_ids, refused = _split(
        access,
        AclOperation.DESCRIBE,
        request.group_ids,
        lambda name: consumer_group_describe.DescribedGroup(group_id=name, error_code=_FAILED),
    )

    def complete(
        response: consumer_group_describe.ConsumerGroupDescribeResponse,
    ) -> consumer_group_describe.ConsumerGroupDescribeResponse:
        shown = [
            one
            if all(access.shows(ResourceType.TOPIC, name) for name in _topics(one))
            else _hidden(one)
            for one in response.groups
        ]
        response.groups = [*refused, *shown]
        return response

    return complete


def _topics(described: consumer_group_describe.DescribedGroup) -> set[str]:
    """Return the topics that the description of a group contains."""
    return {
        topic.topic_name
        for member in described.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    } | {name for member in described.members for name in member.subscribed_topic_names}
