"""Groups: the number in each state, and for each group its committed offsets and its lag."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from ottla.coordinators.groups.service import GroupCoordinator
from ottla.metrics.exposition import Family, Sample, gauge, labels
from ottla.server.monitoring.sources import Pace
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.list_groups import ListedGroup, ListGroupsRequest

_COUNTS = "kafka_coordinator_group_groupmetadatamanager_"
_STATES = (
    "Stable",
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "Empty",
    "Dead",
)
_DESCRIBE_VERSION = 5
# Groups of KIP-848 are described by a separate API.
_CONSUMER = "consumer"
_UNKNOWN_LAG = -1

# The high watermark of a partition; None if this broker does not lead it.
EndOf = Callable[[str, int], int | None]


class _Committed(NamedTuple):
    labels: str
    offset: int
    lag: int


class _Sum(NamedTuple):
    labels: str
    offset: int
    lag: int


async def every_group(groups: GroupCoordinator, end_of: EndOf, pace: Pace) -> list[Family]:
    """Return the metric families of the groups."""
    listed = groups.list_groups(ListGroupsRequest()).groups
    states = {group.group_id: group.group_state for group in listed}
    rows: list[_Committed] = []
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    for group_id, offsets in groups.committed_offsets():
        for (topic, partition), committed in list(offsets.items()):
            await pace.rest()
            end = end_of(topic, partition)
            lag = _UNKNOWN_LAG if end is None else max(end - committed.offset, 0)
            written = labels(consumergroup=group_id, topic=topic, partition=partition)
            rows.append(_Committed(written, committed.offset, lag))
            offset_sum, lag_sum = sums.get((group_id, topic), (0, 0))
            sums[group_id, topic] = offset_sum + committed.offset, lag_sum + max(lag, 0)
    totals = [
        _Sum(labels(consumergroup=group_id, topic=topic), *total)
        for (group_id, topic), total in sums.items()
    ]
    members = await _members(groups, listed, pace)
    prefix = "kafka_consumergroup_"
    return [
        *_counts(states, len(rows)),
        gauge(f"{prefix}members", "Members.", members),
        gauge(f"{prefix}current_offset", "Committed offset.", _offsets(rows)),
        gauge(
            f"{prefix}lag",
            "Records between the committed offset and the high watermark.",
            _lags(rows),
        ),
        gauge(
            f"{prefix}current_offset_sum",
            "Committed offsets of a topic.",
            ((total.labels, total.offset) for total in totals),
        ),
        gauge(
            f"{prefix}lag_sum", "Lag in a topic.", ((total.labels, total.lag) for total in totals)
        ),
    ]


def _offsets(rows: list[_Committed]) -> Iterator[Sample]:
    return ((row.labels, row.offset) for row in rows)


def _lags(rows: list[_Committed]) -> Iterator[Sample]:
    return ((row.labels, row.lag) for row in rows)


def _counts(states: Mapping[str, str], offsets_count: int) -> Iterator[Family]:
    yield gauge(f"{_COUNTS}numgroups", "Groups of this coordinator.", len(states))
    for state in _STATES:
        count = sum(group_state == state for group_state in states.values())
        yield gauge(f"{_COUNTS}numgroups{state.lower()}", f"Groups in state {state}.", count)
    yield gauge(f"{_COUNTS}numoffsets", "Committed offsets.", offsets_count)


async def _members(groups: GroupCoordinator, listed: list[ListedGroup], pace: Pace) -> list[Sample]:
    samples: list[Sample] = []
    for group in listed:
        await pace.rest_if_due()
        count = _members_count(groups, group)
        if count is not None:
            samples.append((labels(consumergroup=group.group_id), count))
    return samples


def _members_count(groups: GroupCoordinator, group: ListedGroup) -> int | None:
    """Return the number of members of a group; None while a change of it is being committed."""
    if group.group_type == _CONSUMER:
        description = groups.describe_consumer_group(group.group_id)
        return None if isinstance(description, asyncio.Future) else len(description.members)
    request = DescribeGroupsRequest(groups=[group.group_id])
    (described,) = groups.describe_groups(request, api_version=_DESCRIBE_VERSION).groups
    return len(described.members)
