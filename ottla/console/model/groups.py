"""Consumer groups: state, members, offsets, lag in records and in seconds, forecast."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ottla.console.model.changes import Change
from ottla.console.model.connections import ClusterConnection, planned


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group in the list.

    `type` is "classic", "consumer" (KIP-848), "share", "streams" or "". `lag` is the number of
    records between committed and end offsets, None if nothing is committed or offsets are unknown.
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

    `committed` is the next offset to read, None if there is none. `lag_s` is the age of the first
    record that is not consumed: 0 if there is none, None if unknown. `lag_s_source` is "broker"
    (exact, by the broker's log) or "record" (the timestamp of the record at `committed`).
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
    """When a group will have caught up, by a linear fit of its recent lag.

    `verdict` is "caught-up", "catching-up", "falling-behind", "steady" or "unknown" (fewer than
    three points). `caught_up_at_ms` is None unless it is catching up. `records_per_s` is the
    change of the lag: negative while it shrinks.
    """

    verdict: str
    records_per_s: float | None
    caught_up_at_ms: int | None


def list_groups(
    connection: ClusterConnection,
    *,
    states: Sequence[str] = (),
    types: Sequence[str] = (),
    with_lag: bool = False,
) -> list[GroupRow]:
    """Return the groups by id; with `with_lag` also members, topics, coordinator and lag, which
    costs two requests for each group, one for each broker, and is at most two seconds old.
    """
    raise planned()


def list_topic_groups(connection: ClusterConnection, topic: str) -> list[GroupRow]:
    """Return the groups that have committed offsets of a topic or that read it; `lag` is of it."""
    raise planned()


def describe_group(
    connection: ClusterConnection, group_id: str, *, with_seconds: bool = True
) -> GroupDetail:
    """Return a group; ApiError GROUP_ID_NOT_FOUND if there is none."""
    raise planned()


def forecast_catch_up(points: Sequence[LagPoint], *, now_ms: int) -> Forecast:
    """Return the forecast from points of the last minutes, oldest first. Pure."""
    raise planned()


def topology_of(detail: GroupDetail) -> Mapping[str, tuple[tuple[str, int], ...]]:
    """Return the partitions that each member reads by its client and host, for the drawing. Pure."""
    raise planned()


def remove_members(connection: ClusterConnection, group_id: str, *, reason: str = "") -> Change:
    """Remove all members of a group; running consumers rejoin."""
    raise planned()


def delete_group(connection: ClusterConnection, group_id: str, *, confirmation: str) -> Change:
    """Delete a group without members; ConfigError unless `confirmation` is its id."""
    raise planned()
