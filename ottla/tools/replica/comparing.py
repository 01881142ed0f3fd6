"""Compares the replicas of one partition batch by batch, up to the leader's high watermark.

The replicas of a topic with cleanup.policy=compact are cleaned at different times. There only
batches are compared that both replicas have, with the same offsets and number of records.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.errors import NotReachable, TimedOut
from ottla.tools.replica.reading import Batch, Replica

_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class Finding:
    """A replica that differs from the leader's, cannot be read or is behind; `offset` is where."""

    broker: int
    offset: int
    problem: str


@dataclass(frozen=True, slots=True)
class ComparisonRules:
    """The rules by which a partition is compared.

    A follower learns the high watermark with its next fetch, so it has `wait_s` seconds for that.
    """

    is_compacted: bool
    wait_s: float


def compare(
    leader: Replica,
    follower: Replica,
    bounds: tuple[int, int],
    rules: ComparisonRules,
    advance: Callable[[int], None],
) -> Finding | None:
    """Compare a follower's replica with the leader's between the offsets `bounds`.

    Returns the first problem, or None if the replicas agree. `advance` is called with the number of
    offsets that have been compared since its last call.
    """
    start, end = bounds
    try:
        start = max(start, _wait_for(follower, end, rules.wait_s))
        ours, theirs = _batches(leader, start, end), _batches(follower, start, end)
        if rules.is_compacted:
            difference = _first_conflict(ours, theirs, start, advance)
        else:
            difference = _first_difference(ours, theirs, start, advance)
    except _Behind as behind:
        problem = f"is behind: it has committed offsets up to {behind.high_watermark}, not {end}"
        return Finding(follower.broker, behind.high_watermark, problem)
    except (ApiError, NotReachable, TimedOut) as error:
        return Finding(follower.broker, start, f"cannot be read: {error}")
    return None if difference is None else Finding(follower.broker, *difference)


class _Behind(Exception):
    """A follower has not reached the high watermark in time."""

    def __init__(self, high_watermark: int) -> None:
        super().__init__(high_watermark)
        self.high_watermark = high_watermark


def _wait_for(follower: Replica, end: int, wait_s: float) -> int:
    """Return the follower's log start offset once its high watermark has reached `end`."""
    deadline = time.monotonic() + wait_s
    while True:
        high_watermark = 0
        try:
            content = follower.read(end)
            if content.high_watermark >= end:
                return content.log_start_offset
            high_watermark = content.high_watermark
        except ApiError as error:
            # The end of its log is below the leader's high watermark.
            if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
        if time.monotonic() > deadline:
            raise _Behind(high_watermark)
        time.sleep(_PAUSE_S)


def _batches(replica: Replica, start: int, end: int) -> Iterator[Batch]:
    """Yield the batches of a replica between two offsets."""
    offset = start
    while offset < end:
        batches = replica.read(offset).batches
        for batch in batches:
            if batch.base_offset >= end:
                return
            yield batch
        if not batches:
            return
        offset = max(offset + 1, batches[-1].last_offset + 1)


Problem = tuple[int, str]


def _first_difference(
    ours: Iterator[Batch], theirs: Iterator[Batch], start: int, advance: Callable[[int], None]
) -> Problem | None:
    position = start
    while True:
        ours_next, theirs_next = next(ours, None), next(theirs, None)
        if ours_next is None and theirs_next is None:
            return None
        if ours_next is None:
            return position, "has records that the leader lacks"
        if theirs_next is None:
            return position, "lacks records that the leader has"
        if ours_next.data != theirs_next.data:
            offset = min(ours_next.base_offset, theirs_next.base_offset)
            return offset, _difference(ours_next, theirs_next)
        advance(ours_next.last_offset + 1 - position)
        position = ours_next.last_offset + 1


def _first_conflict(
    ours: Iterator[Batch], theirs: Iterator[Batch], start: int, advance: Callable[[int], None]
) -> Problem | None:
    """Return the first batch that both have, with the same offsets and records but other bytes."""
    position = start
    ours_next, theirs_next = next(ours, None), next(theirs, None)
    while ours_next is not None and theirs_next is not None:
        if ours_next.extent == theirs_next.extent and ours_next.data != theirs_next.data:
            return ours_next.base_offset, _difference(ours_next, theirs_next)
        advance(max(0, ours_next.last_offset + 1 - position))
        position = max(position, ours_next.last_offset + 1)
        if ours_next.last_offset <= theirs_next.last_offset:
            last_offset, ours_next = ours_next.last_offset, next(ours, None)
            if last_offset == theirs_next.last_offset:
                theirs_next = next(theirs, None)
        else:
            theirs_next = next(theirs, None)
    return None


def _difference(ours: Batch, theirs: Batch) -> str:
    if not theirs.is_intact:
        return "differs from the leader: its batch fails the checksum"
    if not ours.is_intact:
        return "differs from the leader: the leader's batch fails the checksum"
    if ours.base_offset != theirs.base_offset:
        return f"differs from the leader: its next batch begins at offset {theirs.base_offset}"
    return "differs from the leader: the batches have other bytes"


def describe(findings: Sequence[Finding]) -> str:
    """Return the findings of one partition as text."""
    return "; ".join(
        f"replica {item.broker} {item.problem} (offset {item.offset})" for item in findings
    )
