"""Groups of the whole cluster: listings, descriptions and committed offsets in few requests."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin.groups import (
    Group,
    GroupListing,
    classic_group,
    consumer_group,
    listings_of,
)
from ottla.client.admin.offsets import CommittedOffset, committed_offsets
from ottla.client.brokers import Brokers
from ottla.client.errors import Unsupported
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.metadata import Key, read_metadata
from ottla.operations.survey.nodes import ask_nodes
from ottla.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from ottla.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ottla.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)

T = TypeVar("T")

CLASSIC = "classic"
CONSUMER = "consumer"
# Later versions of OffsetFetch use topic ids.
_NAMES_VERSION = 9


def list_groups(
    connection: ClusterConnection, *, states: Sequence[str] = (), types: Sequence[str] = ()
) -> list[GroupListing]:
    """Return the groups of all brokers that respond, by id, with their type in small letters."""
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))

    def ask(brokers: Brokers, node: int) -> list[GroupListing]:
        response = brokers.ask_node(node, request, ListGroupsResponse)
        if response.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return []
        return [replace(row, type=row.type.lower()) for row in listings_of(node, response)]

    results = ask_nodes(connection, read_metadata(connection).nodes, ask)
    # While a coordinator moves, two brokers may list a group.
    listings = {row.group_id: row for rows in results.values() for row in rows}
    return sorted(listings.values(), key=lambda row: row.group_id)


@dataclass(frozen=True, slots=True)
class Membership:
    """The number of members of a group, the topics that they read, and the assignor.

    `assignor` is empty for groups of the consumer protocol.
    """

    members: int
    topics: frozenset[str]
    assignor: str = ""
    assigned: frozenset[Key] = frozenset()


def memberships_of(
    connection: ClusterConnection, listings: Iterable[GroupListing]
) -> dict[str, Membership]:
    """Return the memberships of classic and consumer groups; groups that fail are absent.

    Sends one request of each kind to each coordinator.
    """
    rows = list(listings)
    classic = {row.group_id: row.coordinator for row in rows if row.type in ("", CLASSIC)}
    modern = {row.group_id: row.coordinator for row in rows if row.type == CONSUMER}
    return {
        **_by_coordinator(connection, classic, _ask_classic),
        **_by_coordinator(connection, modern, _ask_consumer),
    }


def committed_of(
    connection: ClusterConnection, groups: Mapping[str, int]
) -> dict[str, dict[Key, CommittedOffset]]:
    """Return committed offsets by group, given each group's coordinator.

    Sends one request to each coordinator. Groups that fail are absent. Offsets of open transactions
    are not waited for.
    """

    def ask(names: list[str], brokers: Brokers, node: int) -> dict[str, dict[Key, CommittedOffset]]:
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=name, topics=None) for name in names]
        )
        response = brokers.ask_node(node, request, OffsetFetchResponse, max_version=_NAMES_VERSION)
        return {row.group_id: _offsets(row) for row in response.groups if not row.error_code}

    try:
        return _by_coordinator(connection, groups, ask)
    except (Unsupported, ApiError):
        # Brokers before 3.0 accept one group per request.
        return _one_by_one(connection, groups)


def _one_by_one(
    connection: ClusterConnection, groups: Iterable[str]
) -> dict[str, dict[Key, CommittedOffset]]:
    by_group = {}
    with connection.brokers() as brokers:
        for name in groups:
            try:
                by_group[name] = committed_offsets(brokers, name, require_stable=False)
            except ApiError:
                continue
    return by_group


def _ask_classic(names: list[str], brokers: Brokers, node: int) -> dict[str, Membership]:
    request = DescribeGroupsRequest(groups=names)
    response = brokers.ask_node(node, request, DescribeGroupsResponse)
    groups = [classic_group(row) for row in response.groups if not row.error_code]
    return {group.group_id: _membership(group, group.assignor) for group in groups}


def _ask_consumer(names: list[str], brokers: Brokers, node: int) -> dict[str, Membership]:
    request = ConsumerGroupDescribeRequest(group_ids=names)
    response = brokers.ask_node(node, request, ConsumerGroupDescribeResponse)
    groups = [consumer_group(row) for row in response.groups if not row.error_code]
    return {group.group_id: _membership(group) for group in groups}


def _membership(group: Group, assignor: str = "") -> Membership:
    assigned = frozenset(key for member in group.members for key in member.assignment)
    topics = frozenset(topic for topic, _ in assigned)
    return Membership(len(group.members), topics, assignor, assigned)


def _by_coordinator(
    connection: ClusterConnection,
    groups: Mapping[str, int],
    ask: Callable[[list[str], Brokers, int], dict[str, T]],
) -> dict[str, T]:
    names: dict[int, list[str]] = {}
    for name, node in groups.items():
        names.setdefault(node, []).append(name)
    results = ask_nodes(connection, names, lambda brokers, node: ask(names[node], brokers, node))
    return {name: value for rows in results.values() for name, value in rows.items()}


def _offsets(group: OffsetFetchResponseGroup) -> dict[Key, CommittedOffset]:
    return {
        (topic.name, row.partition_index): CommittedOffset(
            row.committed_offset, row.committed_leader_epoch, row.metadata or ""
        )
        for topic in group.topics
        for row in topic.partitions
        if not row.error_code and row.committed_offset >= 0
    }
