"""Offsets of a group: every strategy of kafka-consumer-groups as a plan, its execution, its undo."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ottla.base.errors import ApiError, ConfigError, ErrorCode, OttlaError
from ottla.client.admin.groups import describe_group
from ottla.client.admin.offsets import (
    CommittedOffset,
    commit_offsets,
    committed_offsets,
    delete_group_offsets,
)
from ottla.client.config.durations import parse_duration
from ottla.client.resets import Bounds as PartitionBounds
from ottla.client.resets import Move, Target, plan_moves
from ottla.console.model.connections import ClusterConnection
from ottla.console.model.requests.metadata import Key as Key
from ottla.console.model.requests.metadata import read_metadata
from ottla.console.model.requests.offsets import Bounds, bounds_of, find_offsets
from ottla.console.numbers import INT_MAX, natural_number, whole_number
from ottla.operations.changes import Change


class Strategy(StrEnum):
    """The target of a reset, named as the options of kafka-consumer-groups."""

    TO_EARLIEST = "to-earliest"
    TO_LATEST = "to-latest"
    TO_CURRENT = "to-current"
    TO_OFFSET = "to-offset"
    SHIFT_BY = "shift-by"
    TO_DATETIME = "to-datetime"
    BY_DURATION = "by-duration"
    FROM_FILE = "from-file"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class ResetRequest:
    """A reset of a group.

    `partitions` selects them; `topics` selects all partitions of topics; without both, all
    committed partitions are meant. `offset` is for TO_OFFSET, `shift` for SHIFT_BY (negative:
    back), `timestamp_ms` for TO_DATETIME, `duration` for BY_DURATION ("PT1H30M", "90m"),
    `offsets` for FROM_FILE, which is also the way to set each partition separately.
    """

    group_id: str
    strategy: Strategy
    topics: tuple[str, ...] = ()
    partitions: tuple[Key, ...] = ()
    offset: int | None = None
    shift: int | None = None
    timestamp_ms: int | None = None
    duration: str | None = None
    offsets: Mapping[Key, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OffsetDifference:
    """A partition before and after the reset; None is no committed offset.

    `note` is empty, or says why the target differs from the request ("moved to the log start
    offset 120").
    """

    topic: str
    partition: int
    before: int | None
    after: int | None
    start_offset: int
    end_offset: int
    lag_before: int | None
    lag_after: int | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class OffsetPlan:
    """A dry run: all differences, also of unchanged partitions; `obstacle` is empty if it can run."""

    group_id: str
    strategy: Strategy
    differences: tuple[OffsetDifference, ...]
    obstacle: str
    planned_at_ms: int


class PlanOutdated(OttlaError, ValueError):
    """The offsets have changed since the plan was made: make it again."""


def plan_reset(connection: ClusterConnection, request: ResetRequest) -> OffsetPlan:
    """Return what a reset would do; changes nothing.

    ConfigError if the strategy lacks its argument, or if there is no partition to reset. ApiError
    UNKNOWN_TOPIC_OR_PARTITION if a selected partition does not exist.
    """
    _require_argument(request)
    with connection.brokers() as brokers:
        committed = {
            key: row.offset
            for key, row in committed_offsets(
                brokers, request.group_id, require_stable=False
            ).items()
            if row.offset >= 0
        }
    leaders = _select(connection, request, committed)
    bounds = bounds_of(connection, leaders)
    missing = sorted(key for key in leaders if key not in bounds.ends or key not in bounds.starts)
    if missing:
        raise ApiError(
            ErrorCode.LEADER_NOT_AVAILABLE,
            f"{missing[0][0]}-{missing[0][1]} has no running leader: try again when it has one, or "
            "leave it out.",
        )
    moves = _moves(connection, request, leaders, bounds, committed)
    return OffsetPlan(
        group_id=request.group_id,
        strategy=request.strategy,
        differences=tuple(
            _difference(key, committed.get(key), moves.get(key), bounds) for key in sorted(leaders)
        ),
        obstacle=_obstacle(connection, request.group_id),
        planned_at_ms=connection.now_ms(),
    )


def execute(connection: ClusterConnection, plan: OffsetPlan) -> Change:
    """Commit the offsets of a plan; those whose `after` is None are deleted.

    Raises PlanOutdated if committed offsets differ from the plan's, and ApiError NON_EMPTY_GROUP if
    the group has members.
    """
    obstacle = _obstacle(connection, plan.group_id)
    if obstacle:
        raise ApiError(ErrorCode.NON_EMPTY_GROUP, obstacle)
    changed = [row for row in plan.differences if row.before != row.after]
    with connection.brokers() as brokers:
        current = committed_offsets(brokers, plan.group_id, require_stable=False)
        for row in changed:
            known = current.get((row.topic, row.partition))
            offset = None if known is None or known.offset < 0 else known.offset
            if offset != row.before:
                raise PlanOutdated(
                    f"The committed offset of {row.topic}-{row.partition} is {offset} now, not "
                    f"{row.before} as in the plan. Make the plan again."
                )
        committed = {
            (row.topic, row.partition): CommittedOffset(row.after)
            for row in changed
            if row.after is not None
        }
        if committed:
            commit_offsets(brokers, plan.group_id, committed)
        deleted = [(row.topic, row.partition) for row in changed if row.after is None]
        if deleted:
            delete_group_offsets(brokers, plan.group_id, deleted)
    connection.forget()
    return Change(
        connection.name,
        "group.reset-offsets",
        plan.group_id,
        before={_name(row): _text(row.before) for row in changed},
        after={_name(row): _text(row.after) for row in changed},
        notes=(f"strategy {plan.strategy}",),
    )


def plan_undo(connection: ClusterConnection, executed: OffsetPlan) -> OffsetPlan:
    """Return the plan that restores the offsets from before an executed plan.

    Offsets that have been deleted from the log meanwhile become the log start offset, with a note.
    """
    keys = [(row.topic, row.partition) for row in executed.differences]
    with connection.brokers() as brokers:
        committed = committed_offsets(brokers, executed.group_id, require_stable=False)
    bounds = bounds_of(connection, _leaders_of_keys(connection, keys))
    current = {key: row.offset for key, row in committed.items() if row.offset >= 0}
    former = {
        (row.topic, row.partition): row.before
        for row in executed.differences
        if row.before != row.after
    }
    undone = [key for key in former if key in bounds.ends and key in bounds.starts]
    moves = _moves_to({key: former[key] for key in undone}, bounds, current)
    rows = [_difference(key, current.get(key), moves.get(key), bounds) for key in undone]
    return OffsetPlan(
        group_id=executed.group_id,
        strategy=Strategy.FROM_FILE,
        differences=tuple(rows),
        obstacle=_obstacle(connection, executed.group_id),
        planned_at_ms=connection.now_ms(),
    )


def parse_csv(text: str) -> dict[Key, int]:
    """Return the offsets of lines `topic,partition,offset` (kafka-consumer-groups --from-file).

    ConfigError names the malformed line. Pure.
    """
    offsets: dict[Key, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        parts = [part.strip().strip('"') for part in line.split(",")]
        partition = natural_number(parts[1], INT_MAX) if len(parts) == 3 else None
        offset = natural_number(parts[-1])
        if partition is None or offset is None:
            raise ConfigError(
                f"line {number} is {line.strip()!r}: write topic,partition,offset, as in orders,0,42"
            )
        offsets[parts[0], partition] = offset
    return offsets


def to_csv(differences: Sequence[OffsetDifference]) -> str:
    """Return the planned offsets as lines `topic,partition,offset` (--export). Pure."""
    return "".join(
        f"{row.topic},{row.partition},{row.after}\n" for row in differences if row.after is not None
    )


_ARGUMENTS = {
    Strategy.TO_OFFSET: "offset",
    Strategy.SHIFT_BY: "shift",
    Strategy.TO_DATETIME: "timestamp_ms",
    Strategy.BY_DURATION: "duration",
    Strategy.FROM_FILE: "offsets",
}
_IDLE_STATES = frozenset({"Empty", "Dead", ""})


def request_of(
    group_id: str,
    strategy: Strategy,
    value: str,
    *,
    topics: tuple[str, ...] = (),
    partitions: tuple[Key, ...] = (),
    offsets: Mapping[Key, int] | None = None,
) -> ResetRequest:
    """Return a request whose offset, shift, time (ms) or duration is given as text; ConfigError
    if it is not of that kind. Pure.
    """
    name = _ARGUMENTS.get(strategy)
    if name in (None, "offsets") or not value:
        argument: dict[Any, Any] = {}
    elif name == "duration":
        argument = {name: value}
    else:
        number = whole_number(value)
        if number is None:
            raise ConfigError(f"{value!r} is not a number, as {name} needs")
        argument = {name: number}
    return ResetRequest(
        group_id,
        strategy,
        topics=topics,
        partitions=partitions,
        offsets=offsets or {},
        **argument,
    )


def _require_argument(request: ResetRequest) -> None:
    name = _ARGUMENTS.get(request.strategy)
    if name is not None and getattr(request, name) in (None, {}):
        raise ConfigError(f"the strategy {request.strategy} needs a value for {name}")
    if request.offset is not None and request.offset < 0:
        raise ConfigError(f"{request.offset} is not an offset: use 0 or more, or to-latest")


def _select(
    connection: ClusterConnection, request: ResetRequest, committed: Mapping[Key, int]
) -> dict[Key, int]:
    """Return the leaders of the partitions to reset."""
    keys: list[Key] = list(request.partitions)
    if request.strategy is Strategy.FROM_FILE and not keys and not request.topics:
        keys = list(request.offsets)
    metadata = read_metadata(connection, is_fresh=True)
    for name in request.topics:
        keys += [(name, row.partition) for row in metadata.topic(name).partitions]
    if not keys and not request.topics:
        keys = [key for key in committed if key[0] in metadata.topics]
    if not keys:
        raise ConfigError(
            f"group {request.group_id!r} has no committed offsets: select topics or partitions"
        )
    return _leaders_of_keys(connection, keys)


def _leaders_of_keys(connection: ClusterConnection, keys: Sequence[Key]) -> dict[Key, int]:
    metadata = read_metadata(connection, is_fresh=True)
    leaders = {}
    for topic, number in keys:
        partitions = {row.partition: row.leader for row in metadata.topic(topic).partitions}
        if number not in partitions:
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic {topic!r} has no partition {number}."
            )
        leaders[topic, number] = partitions[number]
    return leaders


def _moves(
    connection: ClusterConnection,
    request: ResetRequest,
    leaders: Mapping[Key, int],
    bounds: Bounds,
    committed: Mapping[Key, int],
) -> dict[Key, Move]:
    """Return the move of each partition, except of those that get no committed offset."""
    at_time: Mapping[Key, int] = {}
    match request.strategy:
        case Strategy.DELETE:
            return {}
        case Strategy.FROM_FILE:
            offsets = {key: request.offsets.get(key, committed.get(key)) for key in leaders}
            return _moves_to(offsets, bounds, committed)
        case Strategy.TO_CURRENT:
            target, amount, at_time = Target.FILE, 0, committed
        case Strategy.TO_OFFSET:
            target, amount = Target.OFFSET, request.offset or 0
        case Strategy.SHIFT_BY:
            target, amount = Target.SHIFT, request.shift or 0
        case Strategy.TO_DATETIME | Strategy.BY_DURATION:
            target, amount = Target.TIME, request.timestamp_ms or 0
            if request.strategy is Strategy.BY_DURATION:
                amount = connection.now_ms() - _duration_ms(request.duration or "")
            results = find_offsets(connection, leaders, max(0, amount))
            # No record is as young: the group continues at the end.
            at_time = {key: row.offset for key, row in results.items() if row.offset >= 0}
        case _:
            is_start = request.strategy is Strategy.TO_EARLIEST
            target, amount = Target.EARLIEST if is_start else Target.LATEST, 0
    try:
        return _planned(target, amount, leaders, bounds, committed, at_time)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _duration_ms(text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _moves_to(
    offsets: Mapping[Key, int | None], bounds: Bounds, committed: Mapping[Key, int]
) -> dict[Key, Move]:
    """Return the moves to given offsets."""
    known = {key: offset for key, offset in offsets.items() if offset is not None}
    return _planned(Target.FILE, 0, known, bounds, committed, known)


def _planned(
    target: Target,
    amount: int,
    keys: Iterable[Key],
    bounds: Bounds,
    committed: Mapping[Key, int],
    at_time: Mapping[Key, int],
) -> dict[Key, Move]:
    within = {key: PartitionBounds(bounds.starts[key], bounds.ends[key]) for key in keys}
    moves = plan_moves(target, amount, bounds=within, current=committed, at_time=at_time)
    return {(move.topic, move.partition): move for move in moves}


def _difference(
    key: Key, before: int | None, move: Move | None, bounds: Bounds
) -> OffsetDifference:
    start, end = bounds.starts[key], bounds.ends[key]
    after, note = None, ""
    if move is not None:
        after = move.target
        if move.requested is not None and move.requested < after:
            note = f"{move.requested} is deleted: moved to the log start offset {start}"
        elif move.requested is not None and move.requested > after:
            note = f"{move.requested} is past the end: moved to the end {end}"
    return OffsetDifference(
        topic=key[0],
        partition=key[1],
        before=before,
        after=after,
        start_offset=start,
        end_offset=end,
        lag_before=None if before is None else max(0, end - before),
        lag_after=None if after is None else end - after,
        note=note,
    )


def _obstacle(connection: ClusterConnection, group_id: str) -> str:
    try:
        with connection.brokers() as brokers:
            group = describe_group(brokers, group_id)
    except ApiError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return ""
        raise
    if group.state in _IDLE_STATES:
        return ""
    count = len(group.members)
    return (
        f"Group {group_id!r} is {group.state} with {count} member{'s' if count != 1 else ''}: stop its "
        "consumers first, because they would overwrite the offsets."
    )


def _name(row: OffsetDifference) -> str:
    return f"{row.topic}-{row.partition}"


def _text(offset: int | None) -> str:
    return "none" if offset is None else str(offset)
