"""The targets of partitions in a reset of offsets, by any strategy of kafka-consumer-groups."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ottla.base.errors import ConfigError
from ottla.client.admin.offsets import EARLIEST, LATEST, committed_offsets, list_offsets
from ottla.client.brokers import Brokers

Key = tuple[str, int]


class Strategy(StrEnum):
    """The target of a reset, named as the options of kafka-consumer-groups.

    TAIL and HEAD are a number of records before the end, and after the beginning.
    """

    TO_EARLIEST = "to-earliest"
    TO_LATEST = "to-latest"
    TO_CURRENT = "to-current"
    TO_OFFSET = "to-offset"
    SHIFT_BY = "shift-by"
    TO_DATETIME = "to-datetime"
    BY_DURATION = "by-duration"
    FROM_FILE = "from-file"
    TAIL = "tail"
    HEAD = "head"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class ResetRequest:
    """A reset of a group.

    `partitions` selects them; `topics` selects all partitions of topics; without both, all
    committed partitions are meant, or the partitions in `offsets`. `amount` is an offset, a shift
    (negative: back), a time or a duration in ms, or a number of records, as the strategy needs it.
    `offsets` is for FROM_FILE, which is also the way to set each partition separately.
    """

    group_id: str
    strategy: Strategy
    topics: tuple[str, ...] = ()
    partitions: tuple[Key, ...] = ()
    amount: int | None = None
    offsets: Mapping[Key, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The log start offset and the high watermark of a partition."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class OffsetDifference:
    """A partition before and after the reset; None is no committed offset: then the lag counts from
    the beginning, where a group without a commit may start.

    `note` is empty, or says why the target differs from the request ("offset 7 is before its first
    record; using 120").
    """

    topic: str
    partition: int
    before: int | None
    after: int | None
    start_offset: int
    end_offset: int
    lag_before: int
    lag_after: int
    note: str = ""

    @property
    def key(self) -> Key:
        """The partition."""
        return self.topic, self.partition


@dataclass(frozen=True, slots=True)
class OffsetPlan:
    """A dry run: all differences, also of unchanged partitions, and of those without a commit that
    a reset leaves alone. `obstacle` is empty if it can run.
    """

    group_id: str
    strategy: Strategy
    differences: tuple[OffsetDifference, ...]
    obstacle: str
    planned_at_ms: int


def current_offsets(brokers: Brokers, group_id: str) -> dict[Key, int]:
    """Return the committed offsets of a group, without waiting for open transactions."""
    committed = committed_offsets(brokers, group_id, require_stable=False)
    return {key: row.offset for key, row in committed.items() if row.offset >= 0}


def plan_partitions(
    brokers: Brokers,
    request: ResetRequest,
    keys: Sequence[Key],
    current: Mapping[Key, int],
    *,
    now_ms: int = 0,
) -> tuple[OffsetDifference, ...]:
    """Return the differences of these partitions, whatever the request selects.

    `current` are the committed offsets. ConfigError if one of them is to be shifted and is missing.
    """
    bounds = read_bounds(brokers, keys)
    strategy, amount = request.strategy, request.amount or 0
    offsets = request.offsets
    if strategy in (Strategy.TO_DATETIME, Strategy.BY_DURATION):
        at_ms = now_ms - amount if strategy is Strategy.BY_DURATION else amount
        offsets = offsets_since(brokers, keys, at_ms)
    return plan_differences(strategy, amount, bounds=bounds, current=current, offsets=offsets)


def read_bounds(brokers: Brokers, keys: Sequence[Key]) -> dict[Key, Bounds]:
    """Return the bounds of partitions."""
    starts = list_offsets(brokers, dict.fromkeys(keys, EARLIEST)) if keys else {}
    ends = list_offsets(brokers, dict.fromkeys(keys, LATEST)) if keys else {}
    return {key: Bounds(starts[key].offset, ends[key].offset) for key in keys}


def offsets_since(brokers: Brokers, keys: Sequence[Key], at_ms: int) -> dict[Key, int]:
    """Return the first offset at or after a time in each partition that has such a record."""
    rows = list_offsets(brokers, dict.fromkeys(keys, max(0, at_ms))) if keys else {}
    return {key: row.offset for key, row in rows.items() if row.offset >= 0}


def plan_differences(
    strategy: Strategy,
    amount: int = 0,
    *,
    bounds: Mapping[Key, Bounds],
    current: Mapping[Key, int],
    offsets: Mapping[Key, int],
) -> tuple[OffsetDifference, ...]:
    """Return the difference of each partition in `bounds`; the target is always within them. Pure.

    `offsets` belong to the requested time, or come from a file. ConfigError if a partition without
    a committed offset is to be shifted.
    """
    if strategy is Strategy.SHIFT_BY and (lost := sorted(set(bounds) - set(current))):
        topic, partition = lost[0]
        raise ConfigError(
            f"{topic}-{partition} has no committed offset to shift: choose another target"
        )
    rows = []
    for key in sorted(bounds):
        bound, before = bounds[key], current.get(key)
        requested = {
            Strategy.TO_EARLIEST: bound.start,
            Strategy.TO_LATEST: bound.end,
            Strategy.TO_CURRENT: bound.end if before is None else before,
            Strategy.TO_OFFSET: amount,
            Strategy.TAIL: bound.end - amount,
            Strategy.HEAD: bound.start + amount,
            Strategy.TO_DATETIME: offsets.get(key, bound.end),
            Strategy.BY_DURATION: offsets.get(key, bound.end),
            Strategy.FROM_FILE: offsets.get(key, before),
            Strategy.SHIFT_BY: (before or 0) + amount,
            Strategy.DELETE: None,
        }[strategy]
        rows.append(_difference(key, before, requested, bound))
    return tuple(rows)


def _difference(
    key: Key, before: int | None, requested: int | None, bound: Bounds
) -> OffsetDifference:
    after, note = None, ""
    if requested is not None:
        after = min(max(requested, bound.start), bound.end)
        if requested != after:
            side = "before its first record" if requested < after else "past its end"
            note = f"offset {requested} is {side}; using {after}"
    return OffsetDifference(
        topic=key[0],
        partition=key[1],
        before=before,
        after=after,
        start_offset=bound.start,
        end_offset=bound.end,
        lag_before=_lag(before, bound),
        lag_after=_lag(after, bound),
        note=note,
    )


def _lag(offset: int | None, bound: Bounds) -> int:
    return max(0, bound.end - (bound.start if offset is None else offset))


def notes_of(differences: Iterable[OffsetDifference]) -> list[str]:
    """Return a sentence for each partition that does not contain the requested offset. Pure."""
    return [
        f"{row.topic}-{row.partition}: {row.note}."
        for row in differences
        if row.note and row.after is not None
    ]
