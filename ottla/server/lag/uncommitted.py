"""The members of groups with their partitions, and the partitions without a commit."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from ottla.base.errors import ProtocolError
from ottla.base.lag.uncommitted import uncommitted_keys
from ottla.cluster.image import ClusterImage
from ottla.coordinators.groups.service import GroupCoordinator
from ottla.server.lag.questions import PartitionKey
from ottla.wire.consumer_protocol import PROTOCOL_TYPE, decode_assignment
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.list_groups import ListedGroup

# Groups of KIP-848 are described by a separate API.
_KIP_848 = "consumer"
_DESCRIBE_VERSION = 5


class Owner(NamedTuple):
    """The member that consumes a partition."""

    host: str = ""
    consumer_id: str = ""
    client_id: str = ""


def members_of(
    groups: GroupCoordinator, group: ListedGroup
) -> list[tuple[Owner, list[PartitionKey]]] | None:
    """Return the members of a group, and their partitions; None while it is being changed."""
    if group.group_type == _KIP_848:
        description = groups.describe_consumer_group(group.group_id)
        if isinstance(description, asyncio.Future):
            return None
        return [
            (
                Owner(member.client_host, member.member_id, member.client_id),
                [
                    (topic.topic_name, partition)
                    for topic in member.assignment.topic_partitions
                    for partition in topic.partitions
                ],
            )
            for member in description.members
        ]
    request = DescribeGroupsRequest(groups=[group.group_id])
    (described,) = groups.describe_groups(request, api_version=_DESCRIBE_VERSION).groups
    is_consumer = described.protocol_type == PROTOCOL_TYPE
    return [
        (
            Owner(member.client_host, member.member_id, member.client_id),
            _assigned(member.member_assignment) if is_consumer else [],
        )
        for member in described.members
    ]


def _assigned(assignment: bytes) -> list[PartitionKey]:
    try:
        assigned = decode_assignment(assignment).assigned_partitions if assignment else []
    except ProtocolError:
        # A consumer with an assignor of its own may send anything.
        return []
    return [(topic.topic, partition) for topic in assigned for partition in topic.partitions]


async def uncommitted_of(
    image: ClusterImage,
    listed: Iterable[ListedGroup],
    known: Mapping[str, Collection[PartitionKey]],
    owners: Iterable[tuple[str, str, int]],
    rest: Callable[[], Awaitable[None]],
) -> list[tuple[str, PartitionKey]]:
    """Return the partitions that groups read without a commit; `known` are those with one.

    `owners` are the partitions of members by group; `rest` is called between two groups.
    """
    assigned: defaultdict[str, set[PartitionKey]] = defaultdict(set)
    for group_id, topic, number in owners:
        assigned[group_id].add((topic, number))
    missing: list[tuple[str, PartitionKey]] = []
    for group in listed:
        await rest()
        committed, own = known.get(group.group_id, ()), assigned[group.group_id]
        images = (image.topic(topic) for topic in {topic for topic, _ in (*committed, *own)})
        sizes = {topic.name: len(topic.partitions) for topic in images if topic is not None}
        keys = uncommitted_keys(committed, own, sizes, group.protocol_type)
        missing += ((group.group_id, key) for key in sorted(keys))
    return missing
