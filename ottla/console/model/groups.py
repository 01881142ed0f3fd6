"""Consumer groups: state, members, offsets, lag in records and in seconds, forecast."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ottla.base.lag.uncommitted import uncommitted_keys
from ottla.client.admin import groups as admin
from ottla.client.admin.offsets import CommittedOffset
from ottla.operations.changes import Change, require_confirmation
from ottla.operations.lag.ages import UNKNOWN, Age, ages_of
from ottla.operations.offsets import groups as group_changes
from ottla.operations.survey import groups as requests
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.metadata import Key, Metadata, read_metadata
from ottla.operations.survey.offsets import (
    Bounds,
    bounds_of,
    ends_of,
    read_topic_bounds,
    starts_of,
)

_POINTS_MIN = 3
_AGED_PARTITIONS = 32


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group in the list.

    `type` is "classic", "consumer" (KIP-848), "share", "streams" or "". `lag` is the number of
    records between committed and end offsets, None if nothing is committed or offsets are unknown.
    `assignor` is empty except for a classic group, if the list includes members.
    """

    group_id: str
    state: str
    protocol_type: str
    type: str
    members: int | None
    topics: tuple[str, ...]
    coordinator: int | None
    lag: int | None
    error: str = ""
    assignor: str = ""


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A member with its partitions as (topic, partition); `instance_id` is None unless static."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[tuple[str, int], ...]
    lag: int | None


@dataclass(frozen=True, slots=True)
class GroupPartition:
    """A partition that a group has committed, or that a member reads.

    `committed` is the next offset to read, None without a commit: then the lag counts from
    `start_offset`. `lag_s` is the age of the
    first record that is not consumed: 0 without such a record, None if unknown. `lag_s_source` is
    "broker" (exact, by the broker's log) or "record" (the timestamp of the record at `committed`).
    """

    topic: str
    partition: int
    committed: int | None
    start_offset: int | None
    end_offset: int | None
    lag: int | None
    lag_s: float | None
    lag_s_source: str
    metadata: str
    member_id: str
    client_id: str
    host: str


@dataclass(frozen=True, slots=True)
class GroupDetail:
    """A group with members and partitions; lags are sums and, in seconds, the maximum."""

    group_id: str
    state: str
    protocol_type: str
    type: str
    assignor: str
    coordinator: int
    members: tuple[MemberRow, ...]
    partitions: tuple[GroupPartition, ...]
    lag: int | None
    lag_s: float | None


@dataclass(frozen=True, slots=True)
class LagPoint:
    """A measurement of a group's lag in records, with the rate at which records were appended."""

    at_ms: int
    lag: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """The time at which a group will have caught up, by a linear fit of its recent lag.

    `verdict` is "caught-up", "catching-up", "falling-behind", "steady" or "unknown" (fewer than
    three points). `caught_up_at_ms` is None unless it is catching up. `records_per_s` is the
    change of the lag: negative while it shrinks.
    """

    verdict: str
    records_per_s: float | None
    caught_up_at_ms: int | None


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """A group in a sample; `position` is the sum of its committed offsets. None if unknown."""

    group_id: str
    state: str
    lag: int | None
    lag_s: float | None
    position: int | None


def list_groups(
    connection: ClusterConnection,
    *,
    states: Sequence[str] = (),
    types: Sequence[str] = (),
    with_lag: bool = False,
) -> list[GroupRow]:
    """Return the groups by id, optionally only those in some states or of some types.

    With `with_lag` also members, topics, coordinator and lag: three requests to each broker more.
    """
    listings = requests.list_groups(connection, states=states, types=types)
    if not with_lag:
        return [_row(row, None, {}, {}) for row in listings]
    committed = requests.committed_of(connection, {r.group_id: r.coordinator for r in listings})
    memberships = requests.memberships_of(connection, listings)
    positions = _positions(connection, listings, committed, memberships)
    keys = {key for offsets in positions.values() for key in offsets}
    ends = ends_of(connection, read_metadata(connection).leaders_among(keys))
    return [
        _row(row, memberships.get(row.group_id), positions.get(row.group_id, {}), ends)
        for row in listings
    ]


def list_topic_groups(connection: ClusterConnection, topic: str) -> list[GroupRow]:
    """Return the groups that have committed offsets of a topic or that read it; `lag` is of it."""
    listings = requests.list_groups(connection)
    committed = requests.committed_of(connection, {r.group_id: r.coordinator for r in listings})
    memberships = requests.memberships_of(connection, listings)
    ends = read_topic_bounds(connection, topic).ends
    positions = _positions(connection, listings, committed, memberships)
    rows = []
    for row in listings:
        offsets = {
            key: value for key, value in positions.get(row.group_id, {}).items() if key[0] == topic
        }
        membership = memberships.get(row.group_id)
        if offsets or (membership and topic in membership.topics):
            rows.append(_row(row, membership, offsets, ends))
    return rows


def describe_group(
    connection: ClusterConnection, group_id: str, *, with_seconds: bool = True
) -> GroupDetail:
    """Return a group; ApiError GROUP_ID_NOT_FOUND if it does not exist."""
    with connection.brokers() as brokers:
        group = admin.describe_group(brokers, group_id)
        coordinator = brokers.find_coordinator(group_id, is_group=True)
    committed = requests.committed_of(connection, {group_id: coordinator}).get(group_id, {})
    owners = {key: member for member in group.members for key in member.assignment}
    metadata = read_metadata(connection)
    missing = uncommitted_keys(committed, owners, _sizes(metadata), group.protocol_type)
    keys = sorted({*committed, *owners, *missing})
    leaders = metadata.leaders_among(keys)
    bounds = bounds_of(connection, leaders)
    unread = {}
    for key in keys:
        start = bounds.starts.get(key, 0)
        position = max(committed[key].offset, start) if key in committed else start
        if position < bounds.ends.get(key, 0):
            unread[key] = position
    ages = ages_of(connection, leaders, unread) if with_seconds else {}
    rows = tuple(
        _partition(key, committed.get(key), bounds, owners.get(key), ages.get(key, UNKNOWN))
        for key in keys
    )
    types = {row.group_id: row.type for row in requests.list_groups(connection)}
    return GroupDetail(
        group_id=group_id,
        state=group.state,
        protocol_type=group.protocol_type,
        type=types.get(group_id) or requests.CLASSIC,
        assignor=group.assignor,
        coordinator=coordinator,
        members=tuple(_member(member, rows) for member in group.members),
        partitions=rows,
        lag=_total(row.lag for row in rows),
        lag_s=max((row.lag_s for row in rows if row.lag_s is not None), default=None),
    )


def summarize_groups(connection: ClusterConnection, ends: Mapping[Key, int]) -> list[GroupSummary]:
    """Return state and lag of all groups for a sample, given the end offsets.

    Seconds are found for the partitions with the largest lags, at most 32 of each group.
    """
    listings = requests.list_groups(connection)
    committed = requests.committed_of(connection, {r.group_id: r.coordinator for r in listings})
    memberships = requests.memberships_of(connection, listings)
    by_group = _positions(connection, listings, committed, memberships)
    oldest: dict[str, list[Key]] = {}
    positions: dict[tuple[str, Key], int] = {}
    for group_id, offsets in by_group.items():
        lags = {key: ends[key] - offset for key, offset in offsets.items() if key in ends}
        behind = sorted((key for key in lags if lags[key] > 0), key=lags.__getitem__, reverse=True)
        if behind or 0 < len(lags) == len(offsets):
            # Otherwise a partition without a leader may be behind: the seconds are unknown.
            oldest[group_id] = behind[:_AGED_PARTITIONS]
        positions.update({(group_id, key): offsets[key] for key in oldest.get(group_id, ())})
    seconds = _ages_by_group(connection, positions)
    return [
        GroupSummary(
            group_id=row.group_id,
            state=row.state,
            lag=_lag(by_group.get(row.group_id, {}), ends),
            lag_s=_largest_age(row.group_id, oldest.get(row.group_id), seconds),
            position=_total(
                offset.offset
                for key, offset in committed.get(row.group_id, {}).items()
                if key in ends
            ),
        )
        for row in listings
    ]


def forecast_catch_up(points: Sequence[LagPoint], *, now_ms: int) -> Forecast:
    """Return the forecast from points of the last minutes, oldest first. Pure."""
    if points and points[-1].lag == 0:
        return Forecast("caught-up", 0.0, None)
    if len(points) < _POINTS_MIN or points[0].at_ms == points[-1].at_ms:
        return Forecast("unknown", None, None)
    mean_s = sum(point.at_ms for point in points) / len(points) / 1000
    mean_lag = sum(point.lag for point in points) / len(points)
    pairs = [(point.at_ms / 1000 - mean_s, point.lag - mean_lag) for point in points]
    slope = sum(x * y for x, y in pairs) / sum(x * x for x, _ in pairs)
    span_s = (points[-1].at_ms - points[0].at_ms) / 1000
    # A change below one percent of the lag is noise.
    if abs(slope) * span_s < max(1.0, 0.01 * mean_lag):
        return Forecast("steady", slope, None)
    if slope > 0:
        return Forecast("falling-behind", slope, None)
    last = points[-1]
    return Forecast("catching-up", slope, max(now_ms, int(last.at_ms - last.lag / slope * 1000)))


def topology_of(detail: GroupDetail) -> Mapping[str, tuple[Key, ...]]:
    """Return the partitions that each member reads, by its client and host, for the drawing. Pure."""
    return {
        f"{member.client_id}@{member.host} {member.member_id[-8:]}": member.partitions
        for member in detail.members
    }


def remove_members(connection: ClusterConnection, group_id: str, *, reason: str = "") -> Change:
    """Remove all members of a group; running consumers rejoin."""
    with connection.brokers() as brokers:
        change = group_changes.remove_members(
            brokers, group_id, reason=reason, cluster=connection.name
        )
    connection.forget()
    return change


def delete_group(connection: ClusterConnection, group_id: str, *, confirmation: str) -> Change:
    """Delete a group without members; ConfigError unless `confirmation` is its id.

    ApiError NON_EMPTY_GROUP if it has members. The change contains the deleted offsets.
    """
    require_confirmation(group_id, confirmation, verb="delete the group", kind="its id")
    with connection.brokers() as brokers:
        change = group_changes.delete_group(brokers, group_id, cluster=connection.name)
    connection.forget()
    return change


def _sizes(metadata: Metadata) -> dict[str, int]:
    return {name: len(topic.partitions) for name, topic in metadata.topics.items()}


def _positions(
    connection: ClusterConnection,
    listings: Iterable[admin.GroupListing],
    committed: Mapping[str, Mapping[Key, CommittedOffset]],
    memberships: Mapping[str, requests.Membership],
) -> dict[str, dict[Key, int]]:
    """Return the next offset of each partition that a group reads: the committed one, or the
    beginning.
    """
    metadata = read_metadata(connection)
    sizes = _sizes(metadata)
    missing: dict[str, set[Key]] = {}
    for row in listings:
        membership = memberships.get(row.group_id)
        assigned = membership.assigned if membership else frozenset()
        known = committed.get(row.group_id, {})
        missing[row.group_id] = uncommitted_keys(known, assigned, sizes, row.protocol_type)
    keys = {key for keys in missing.values() for key in keys}
    starts = starts_of(connection, metadata.leaders_among(keys)) if keys else {}
    return {
        group_id: {
            **{key: row.offset for key, row in committed.get(group_id, {}).items()},
            **{key: starts[key] for key in keys_of_group if key in starts},
        }
        for group_id, keys_of_group in missing.items()
        if group_id in committed or keys_of_group
    }


def _row(
    listing: admin.GroupListing,
    membership: requests.Membership | None,
    positions: Mapping[Key, int],
    ends: Mapping[Key, int],
) -> GroupRow:
    read = membership.topics if membership else frozenset()
    return GroupRow(
        group_id=listing.group_id,
        state=listing.state,
        protocol_type=listing.protocol_type,
        type=listing.type,
        members=None if membership is None else membership.members,
        topics=tuple(sorted({*read, *(topic for topic, _ in positions)})),
        coordinator=listing.coordinator,
        lag=_lag(positions, ends),
        assignor=membership.assignor if membership else "",
    )


def _lag(positions: Mapping[Key, int], ends: Mapping[Key, int]) -> int | None:
    return _total(
        max(0, ends[key] - offset) if key in ends else None for key, offset in positions.items()
    )


def _total(lags: Iterable[int | None]) -> int | None:
    """Return the sum of the known lags; None if none is known."""
    known = [lag for lag in lags if lag is not None]
    return sum(known) if known else None


def _partition(
    key: Key,
    committed: CommittedOffset | None,
    bounds: Bounds,
    owner: admin.Member | None,
    age: Age,
) -> GroupPartition:
    end = bounds.ends.get(key)
    position = bounds.starts.get(key) if committed is None else committed.offset
    lag = None if position is None or end is None else max(0, end - position)
    return GroupPartition(
        topic=key[0],
        partition=key[1],
        committed=None if committed is None else committed.offset,
        start_offset=bounds.starts.get(key),
        end_offset=end,
        lag=lag,
        lag_s=0.0 if lag == 0 else age.seconds,
        lag_s_source=age.source,
        metadata="" if committed is None else committed.metadata,
        member_id="" if owner is None else owner.member_id,
        client_id="" if owner is None else owner.client_id,
        host="" if owner is None else owner.host,
    )


def _member(member: admin.Member, rows: Sequence[GroupPartition]) -> MemberRow:
    return MemberRow(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        host=member.host,
        partitions=tuple(sorted(member.assignment)),
        lag=_total(row.lag for row in rows if row.member_id == member.member_id),
    )


def _ages_by_group(
    connection: ClusterConnection, positions: Mapping[tuple[str, Key], int]
) -> dict[tuple[str, Key], float]:
    """Return ages by group and partition; groups at the same partition take turns."""
    ages: dict[tuple[str, Key], float] = {}
    remaining = dict(positions)
    while remaining:
        batch: dict[Key, tuple[str, int]] = {}
        for (group_id, key), offset in list(remaining.items()):
            if key not in batch:
                batch[key] = group_id, offset
                del remaining[group_id, key]
        offsets = {key: offset for key, (_, offset) in batch.items()}
        leaders = read_metadata(connection).leaders_among(offsets)
        for key, age in ages_of(connection, leaders, offsets).items():
            if age.seconds is not None:
                ages[batch[key][0], key] = age.seconds
    return ages


def _largest_age(
    group_id: str, keys: Sequence[Key] | None, seconds: Mapping[tuple[str, Key], float]
) -> float | None:
    if keys is None:
        return None
    if not keys:
        return 0.0
    return max((seconds[group_id, key] for key in keys if (group_id, key) in seconds), default=None)
