"""Consumer groups: list, describe, delete (ListGroups, DescribeGroups, DeleteGroups)."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.loading import deferred_module
from ottla.client.admin.answers import check
from ottla.client.brokers import Brokers
from ottla.client.errors import Unsupported
from ottla.wire import consumer_protocol
from ottla.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from ottla.wire.messages.consumer_group_describe import DescribedGroup as ConsumerGroup
from ottla.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ottla.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from ottla.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from ottla.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse

# Few callers ask for authorized operations.
if TYPE_CHECKING:
    from ottla.client.admin import acls
else:
    acls = deferred_module("ottla.client.admin.acls")

_CONSUMER = "consumer"
_DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group in a listing, with the broker that lists it: its coordinator.

    State and type are empty if the broker is old.
    """

    group_id: str
    protocol_type: str
    state: str
    type: str
    coordinator: int = -1


@dataclass(frozen=True, slots=True)
class Member:
    """A member and its partitions; `instance_id` is None unless it is static (KIP-345)."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[tuple[str, int], ...]
    metadata: bytes = b""
    """The metadata of its JoinGroup request, in the classic protocol; a consumer's subscription."""
    assignment_bytes: bytes = b""
    """The assignment from the group's leader, in the classic protocol, in the leader's own format."""

    @property
    def said(self) -> bytes:
        """Return `metadata`; deprecated."""
        _renamed("said", "metadata")
        return self.metadata

    @property
    def told(self) -> bytes:
        """Return `assignment_bytes`; deprecated."""
        _renamed("told", "assignment_bytes")
        return self.assignment_bytes


def _renamed(former: str, name: str) -> None:
    warnings.warn(f"Member.{former} is now Member.{name}", DeprecationWarning, stacklevel=3)


@dataclass(frozen=True, slots=True)
class Group:
    """A group with its members; `assignor` is empty while none is chosen."""

    group_id: str
    state: str
    protocol_type: str
    assignor: str
    members: tuple[Member, ...]
    authorized_operations: "frozenset[acls.AclOperation] | None" = None
    """What the user may do with the group, if it was requested (KIP-430)."""


def list_groups(
    brokers: Brokers,
    *,
    states: Sequence[str] = (),
    types: Sequence[str] = (),
    protocol_types: Sequence[str] = (),
) -> list[GroupListing]:
    """Return the groups by id, optionally only those in some states, or of some types.

    The types are "classic", "consumer", "share" and "streams". The protocol type is "consumer"
    for groups of consumers of either type, and empty for those that only store offsets.
    """
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
    node_ids = brokers.node_ids()

    def attempt() -> list[GroupListing]:
        responses = brokers.ask_nodes(dict.fromkeys(node_ids, request), ListGroupsResponse)
        return [
            row
            for node_id, response in responses.items()
            for row in listings_of(node_id, response)
            if not protocol_types or row.protocol_type in protocol_types
        ]

    return sorted(brokers.retry(attempt), key=lambda listing: listing.group_id)


def listings_of(node_id: int, response: ListGroupsResponse) -> list[GroupListing]:
    """Return the groups that a broker lists; ApiError."""
    check(response.error_code)
    return [
        GroupListing(row.group_id, row.protocol_type, row.group_state, row.group_type, node_id)
        for row in response.groups
    ]


def describe_group(
    brokers: Brokers, group_id: str, *, include_authorized_operations: bool = False
) -> Group:
    """Return a classic or consumer group with its members; ApiError GROUP_ID_NOT_FOUND.

    `describe_share_group` and `describe_streams_group` return groups of the other types.
    """
    request = DescribeGroupsRequest(
        groups=[group_id], include_authorized_operations=include_authorized_operations
    )

    def attempt() -> Group:
        response = brokers.ask_coordinator(group_id, request, DescribeGroupsResponse)
        (group,) = response.groups
        # Before version 6 (KIP-1043) a group that does not exist is described as dead.
        if group.group_state == _DEAD or group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            other = _consumer_group(brokers, group_id, include_authorized_operations)
            if other is not None:
                return other
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"There is no group {group_id!r}.")
        check(group.error_code, group.error_message, subject=f"Group {group_id!r}")
        return classic_group(group, include_authorized_operations)

    return brokers.retry(attempt)


def describe_classic_groups(brokers: Brokers, listings: Sequence[GroupListing]) -> list[Group]:
    """Return listed groups of the classic protocol, with one request for each coordinator.

    Groups that fail, or have another coordinator now, are absent.
    """
    names: dict[int, list[str]] = {}
    for row in listings:
        names.setdefault(row.coordinator, []).append(row.group_id)
    requests = {node_id: DescribeGroupsRequest(groups=rows) for node_id, rows in names.items()}
    responses = brokers.retry(lambda: brokers.ask_nodes(requests, DescribeGroupsResponse))
    return [
        classic_group(group)
        for response in responses.values()
        for group in response.groups
        if not group.error_code and group.group_state != _DEAD
    ]


def classic_group(row: DescribedGroup, with_operations: bool = False) -> Group:
    """Return a group of a response of DescribeGroups."""
    return Group(
        group_id=row.group_id,
        state=row.group_state,
        protocol_type=row.protocol_type,
        assignor=row.protocol_data,
        members=tuple(_member(member, row.protocol_type) for member in row.members),
        authorized_operations=acls.operations_of(row.authorized_operations)
        if with_operations
        else None,
    )


def _consumer_group(brokers: Brokers, group_id: str, with_operations: bool) -> Group | None:
    """Return a group of the consumer protocol (KIP-848); None if it or the API does not exist."""
    request = ConsumerGroupDescribeRequest(
        group_ids=[group_id], include_authorized_operations=with_operations
    )
    try:
        response = brokers.ask_coordinator(group_id, request, ConsumerGroupDescribeResponse)
    except Unsupported:
        return None
    (group,) = response.groups
    if group.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
        return None
    check(group.error_code, group.error_message, subject=f"Group {group_id!r}")
    return consumer_group(group, with_operations)


def consumer_group(group: ConsumerGroup, with_operations: bool = False) -> Group:
    """Return a group of a response of ConsumerGroupDescribe."""
    return Group(
        group_id=group.group_id,
        state=group.group_state,
        protocol_type=_CONSUMER,
        assignor=group.assignor_name if group.members else "",
        authorized_operations=acls.operations_of(group.authorized_operations)
        if with_operations
        else None,
        members=tuple(
            Member(
                member_id=row.member_id,
                instance_id=row.instance_id,
                client_id=row.client_id,
                host=row.client_host.lstrip("/"),
                assignment=tuple(
                    (topic.topic_name, partition)
                    for topic in sorted(
                        row.assignment.topic_partitions, key=lambda item: item.topic_name
                    )
                    for partition in sorted(topic.partitions)
                ),
            )
            for row in group.members
        ),
    )


def delete_group(brokers: Brokers, group_id: str) -> None:
    """Delete a group of any type and its offsets; ApiError NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND."""
    request = DeleteGroupsRequest(groups_names=[group_id])

    def attempt() -> None:
        response = brokers.ask_coordinator(group_id, request, DeleteGroupsResponse)
        (done,) = response.results
        check(done.error_code, subject=f"Group {group_id!r}")

    brokers.retry(attempt)


def remove_members(brokers: Brokers, group: Group, *, reason: str = "") -> None:
    """Remove all members of a group, as Admin.removeMembersFromConsumerGroup does (KIP-345,
    KIP-571).

    Members that have already left are skipped; other failures raise ApiError.
    """
    leaving = [
        MemberIdentity(
            member_id=member.member_id, group_instance_id=member.instance_id, reason=reason or None
        )
        for member in group.members
    ]
    request = LeaveGroupRequest(group_id=group.group_id, members=leaving)

    def attempt() -> None:
        response = brokers.ask_coordinator(group.group_id, request, LeaveGroupResponse)
        check(response.error_code, subject=f"Group {group.group_id!r}")
        for member in response.members:
            if member.error_code != ErrorCode.UNKNOWN_MEMBER_ID:
                check(member.error_code, subject=f"Group {group.group_id!r}, {member.member_id}")

    brokers.retry(attempt)


def _member(row: DescribedGroupMember, protocol_type: str) -> Member:
    assignment: list[tuple[str, int]] = []
    # Other protocols, such as Connect's, have their own format.
    if protocol_type == _CONSUMER and row.member_assignment:
        decoded = consumer_protocol.decode_assignment(row.member_assignment)
        for topic in decoded.assigned_partitions:
            assignment += [(topic.topic, partition) for partition in topic.partitions]
    return Member(
        member_id=row.member_id,
        instance_id=row.group_instance_id,
        client_id=row.client_id,
        host=row.client_host.lstrip("/"),
        assignment=tuple(sorted(assignment)),
        metadata=bytes(row.member_metadata),
        assignment_bytes=bytes(row.member_assignment),
    )
