"""Groups of all types: groups of consumers, and streams groups and share groups of Apache Kafka."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.base.loading import deferred_module
from ottla.client.admin import groups, offsets
from ottla.client.brokers import Brokers
from ottla.operations.changes import Change

# Ottla's broker has no streams groups.
if TYPE_CHECKING:
    from ottla.client.admin.apache import share_groups, streams_groups
else:
    share_groups = deferred_module("ottla.client.admin.apache.share_groups")
    streams_groups = deferred_module("ottla.client.admin.apache.streams_groups")

Key = tuple[str, int]
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
    except ApiError as error:
        # Share groups commit none, and some users may delete a group and not describe it.
        if error.code.is_retriable:
            raise
        committed = {}
    groups.delete_group(brokers, name)
    before = {f"{topic}-{number}": str(row.offset) for (topic, number), row in committed.items()}
    return Change(cluster, "group.delete", name, before=before)


def remove_members(
    brokers: Brokers, group: groups.Group | str, *, reason: str = "", cluster: str = ""
) -> Change:
    """Remove all members of a group, which is described first if its name is given.

    Running consumers rejoin.
    """
    if isinstance(group, str):
        group = groups.describe_group(brokers, group)
    groups.remove_members(brokers, group, reason=reason)
    members = ", ".join(member.member_id for member in group.members)
    return Change(cluster, "group.remove-members", group.group_id, before={"members": members})


class OffsetDeletion(NamedTuple):
    """The change, which has the partitions that succeeded, and the error of each partition."""

    change: Change
    errors: Mapping[Key, ApiError | None]


def delete_offsets(
    brokers: Brokers, name: str, keys: Iterable[Key], *, cluster: str = ""
) -> OffsetDeletion:
    """Delete committed offsets of a group; ApiError if the whole request is refused."""
    errors = offsets.try_offset_deletions(brokers, name, keys)
    done = {f"{topic}-{number}": "none" for (topic, number), row in errors.items() if row is None}
    return OffsetDeletion(Change(cluster, "group.delete-offsets", name, after=done), errors)


class ShareOffsetDeletion(NamedTuple):
    """The change, which has the topics that succeeded, and the error of each topic."""

    change: Change
    errors: Mapping[str, ApiError | None]


def delete_share_offsets(
    brokers: Brokers, name: str, topics: Iterable[str], *, cluster: str = ""
) -> ShareOffsetDeletion:
    """Delete the start offsets of topics of a share group without members."""
    errors = share_groups.share_offset_deletions(brokers, name, topics)
    done = {topic: "none" for topic, error in errors.items() if error is None}
    return ShareOffsetDeletion(Change(cluster, "group.delete-offsets", name, after=done), errors)


def alter_share_offsets(
    brokers: Brokers, name: str, targets: Mapping[Key, int], *, cluster: str = ""
) -> Change:
    """Set start offsets of a share group without members; ApiError NON_EMPTY_GROUP."""
    share_groups.alter_share_group_offsets(brokers, name, targets)
    after = {f"{topic}-{number}": str(offset) for (topic, number), offset in targets.items()}
    return Change(cluster, "group.reset-offsets", name, after=after)
