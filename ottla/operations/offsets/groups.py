"""Groups of all types: groups of consumers, and streams groups and share groups of Apache Kafka."""

from typing import TYPE_CHECKING

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.base.loading import deferred_module
from ottla.client.admin import groups, offsets
from ottla.client.brokers import Brokers
from ottla.operations.changes import Change

# Ottla's broker has no streams groups.
if TYPE_CHECKING:
    from ottla.client.admin.apache import streams_groups
else:
    streams_groups = deferred_module("ottla.client.admin.apache.streams_groups")

_STREAMS, _SHARE = "streams", "share"
IDLE_STATES = frozenset({"Empty", "Dead", ""})
"""The states of groups without members; old brokers return no state."""


def describe_group(brokers: Brokers, name: str) -> groups.Group:
    """Return a group that commits offsets; OttlaError if it does not exist or is a share group."""
    try:
        return groups.describe_group(brokers, name)
    except ApiError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        listing = _find(brokers, name)
        if listing is None:
            raise
    if listing.type.lower() == _SHARE:
        raise OttlaError(
            f"Group {name!r} is a share group, which commits no offsets: "
            f"use `kafka-share-groups --group {name}`."
        )
    return _streams_group(brokers, name)


def state_of(brokers: Brokers, name: str) -> str:
    """Return the state of a classic or consumer group: Dead if it does not exist."""
    try:
        return groups.describe_group(brokers, name).state
    except ApiError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return "Dead"


def obstacle_of(brokers: Brokers, name: str) -> str:
    """Return a sentence if a group has members, which a reset of its offsets needs to be without.

    Offsets may be committed for a group before its first consumer starts.
    """
    try:
        group = describe_group(brokers, name)
    except ApiError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return ""
    if group.state in IDLE_STATES:
        return ""
    count = len(group.members)
    return (
        f"Group {name!r} is active, {group.state} with {count} member{'s' if count != 1 else ''}: "
        "stop its consumers first, because they would overwrite the offsets."
    )


def check_exists(brokers: Brokers, name: str) -> None:
    """Raise ApiError GROUP_ID_NOT_FOUND unless there is a group of any type."""
    try:
        groups.describe_group(brokers, name)
    except ApiError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND or _find(brokers, name) is None:
            raise


def _find(brokers: Brokers, name: str) -> groups.GroupListing | None:
    types = (_STREAMS, _SHARE)
    listings = groups.list_groups(brokers, types=types)
    # Brokers before 3.8 cannot select types.
    return next(
        (row for row in listings if row.group_id == name and row.type.lower() in types), None
    )


def _streams_group(brokers: Brokers, name: str) -> groups.Group:
    group = streams_groups.describe_streams_group(brokers, name)
    return groups.Group(
        group_id=name,
        state=group.state,
        protocol_type=_STREAMS,
        assignor="",
        members=tuple(
            groups.Member(
                member_id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                host=member.host,
                assignment=group.source_partitions(member),
            )
            for member in group.members
        ),
    )


def delete_group(brokers: Brokers, name: str, *, cluster: str = "") -> Change:
    """Delete a group; the change has its committed offsets.

    ApiError NON_EMPTY_GROUP if it has members.
    """
    try:
        committed = offsets.committed_offsets(brokers, name, require_stable=False)
    except ApiError:
        # Share groups commit none, and some users may delete a group and not describe it.
        committed = {}
    groups.delete_group(brokers, name)
    before = {f"{topic}-{number}": str(row.offset) for (topic, number), row in committed.items()}
    return Change(cluster, "group.delete", name, before=before)


def remove_members(brokers: Brokers, name: str, *, reason: str = "", cluster: str = "") -> Change:
    """Remove all members of a group; running consumers rejoin."""
    group = groups.describe_group(brokers, name)
    groups.remove_members(brokers, group, reason=reason)
    members = ", ".join(member.member_id for member in group.members)
    return Change(cluster, "group.remove-members", name, before={"members": members})
