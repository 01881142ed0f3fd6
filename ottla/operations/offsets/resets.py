"""Resets of a group's offsets: the plan, its execution and its undo."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ottla.base.errors import ApiError, ConfigError, ErrorCode, OttlaError
from ottla.base.lag.uncommitted import uncommitted_keys
from ottla.client.admin.offsets import (
    CommittedOffset,
    commit_offsets,
    committed_offsets,
    delete_group_offsets,
)
from ottla.client.brokers import Brokers
from ottla.client.config.durations import parse_duration
from ottla.operations.changes import Change
from ottla.operations.numbers import whole_number
from ottla.operations.offsets.groups import IDLE_STATES, describe_group, obstacle_of, state_of
from ottla.operations.offsets.plans import (
    Key,
    OffsetDifference,
    OffsetPlan,
    ResetRequest,
    Strategy,
    current_offsets,
    plan_differences,
    plan_partitions,
    read_bounds,
)

_NO_COMMIT = "no commit, and not changed: name the topic to reset it, too"
_BY_MEMBERS = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})
_AMOUNTS = {
    Strategy.TO_OFFSET: "offset",
    Strategy.SHIFT_BY: "shift",
    Strategy.TO_DATETIME: "time in ms",
    Strategy.BY_DURATION: "duration",
    Strategy.TAIL: "number of records",
    Strategy.HEAD: "number of records",
}


class NothingSelected(ConfigError):
    """A group has no committed offsets, and the request names no partitions."""


class PlanOutdated(OttlaError, ValueError):
    """The offsets have changed since the plan was made: make it again."""


def request_of(
    group_id: str,
    strategy: Strategy,
    value: str,
    *,
    topics: tuple[str, ...] = (),
    partitions: tuple[Key, ...] = (),
    offsets: Mapping[Key, int] | None = None,
) -> ResetRequest:
    """Return a request whose amount is given as text; ConfigError if it is not of the strategy's
    kind. Pure.
    """
    amount = None
    if strategy is Strategy.BY_DURATION and value:
        try:
            amount = parse_duration(value)
        except ValueError as error:
            raise ConfigError(str(error)) from None
    elif strategy in _AMOUNTS and value:
        amount = whole_number(value)
        if amount is None:
            raise ConfigError(f"{value!r} is not a number, as {_AMOUNTS[strategy]} needs")
    return ResetRequest(group_id, strategy, topics, partitions, amount, offsets or {})


def plan_reset(brokers: Brokers, request: ResetRequest, now_ms: int) -> OffsetPlan:
    """Return what a reset would do; changes nothing.

    ConfigError if the strategy lacks its amount, NothingSelected if there is no partition to reset.
    ApiError UNKNOWN_TOPIC_OR_PARTITION if a selected partition does not exist.
    """
    _require_amount(request)
    current = current_offsets(brokers, request.group_id)
    rows = plan_partitions(
        brokers, request, _select(brokers, request, current), current, now_ms=now_ms
    )
    if not (request.topics or request.partitions or request.offsets):
        rows += _unread(brokers, request.group_id, current)
    obstacle = obstacle_of(brokers, request.group_id)
    return OffsetPlan(request.group_id, request.strategy, rows, obstacle, now_ms)


def _unread(
    brokers: Brokers, group_id: str, current: Mapping[Key, int]
) -> tuple[OffsetDifference, ...]:
    """Return the partitions that the group reads without a commit; the plan leaves them alone.

    As in Apache Kafka, a reset without topics is of the committed partitions.
    """
    try:
        group = describe_group(brokers, group_id)
    except ApiError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return ()
    assigned = {key for member in group.members for key in member.assignment}
    topics = {topic for topic, _ in (*current, *assigned)}
    leaders = brokers.retry(lambda: brokers.known_leaders(topics, skips_unknown=True))
    sizes = Counter(topic for topic, _ in leaders)
    missing = uncommitted_keys(current, assigned, sizes, group.protocol_type)
    bounds = read_bounds(brokers, [key for key in missing if leaders[key] >= 0])
    rows = plan_differences(Strategy.DELETE, bounds=bounds, current={}, offsets={})
    return tuple(replace(row, note=_NO_COMMIT) for row in rows)


def execute(brokers: Brokers, plan: OffsetPlan, *, cluster: str = "") -> Change:
    """Commit the offsets of a plan; those whose `after` is None are deleted.

    `cluster` is its name in the returned change, which has the offsets that differ. Raises
    PlanOutdated if committed offsets differ from the plan's, and ApiError NON_EMPTY_GROUP if the
    group has members.
    """
    if obstacle := obstacle_of(brokers, plan.group_id):
        raise ApiError(ErrorCode.NON_EMPTY_GROUP, obstacle)
    current = current_offsets(brokers, plan.group_id)
    for row in plan.differences:
        if current.get(row.key) != row.before:
            raise PlanOutdated(
                f"The committed offset of {row.topic}-{row.partition} is {current.get(row.key)} "
                f"now, not {row.before} as in the plan. Make the plan again."
            )
    targets = {
        row.key: CommittedOffset(row.after) for row in plan.differences if row.after is not None
    }
    if targets:
        commit_offsets(brokers, plan.group_id, targets)
    changed = [row for row in plan.differences if row.before != row.after]
    deleted = [row.key for row in changed if row.after is None]
    if deleted:
        delete_group_offsets(brokers, plan.group_id, deleted)
    return Change(
        cluster,
        "group.reset-offsets",
        plan.group_id,
        before={_name(row): _text(row.before) for row in changed},
        after={_name(row): _text(row.after) for row in changed},
        notes=(f"strategy {plan.strategy}",),
    )


def plan_undo(brokers: Brokers, executed: OffsetPlan, now_ms: int) -> OffsetPlan:
    """Return the plan that restores the offsets from before an executed plan.

    Offsets that have since been deleted from the log become the log start offset, with a note.
    """
    changed = [row for row in executed.differences if row.before != row.after]
    former = {row.key: row.before for row in changed if row.before is not None}
    bounds = read_bounds(brokers, [row.key for row in changed])
    current = current_offsets(brokers, executed.group_id)
    rows = plan_differences(
        Strategy.FROM_FILE,
        bounds={key: bounds[key] for key in former},
        current=current,
        offsets=former,
    )
    rows += plan_differences(
        Strategy.DELETE,
        bounds={key: bounds[key] for key in bounds if key not in former},
        current=current,
        offsets={},
    )
    obstacle = obstacle_of(brokers, executed.group_id)
    return OffsetPlan(executed.group_id, Strategy.FROM_FILE, rows, obstacle, now_ms)


def advance(
    brokers: Brokers, group_id: str, targets: Mapping[Key, int], *, is_own: bool = False
) -> int | None:
    """Commit the offsets that are after the committed ones; return their number.

    Returns None, and commits nothing, if the group has members: they commit their own offsets.
    `is_own` skips this check.
    """
    if not is_own and state_of(brokers, group_id) not in IDLE_STATES:
        return None
    known = committed_offsets(brokers, group_id)
    later = {
        key: CommittedOffset(offset)
        for key, offset in targets.items()
        if key not in known or known[key].offset < offset
    }
    try:
        if later:
            commit_offsets(brokers, group_id, later)
    except ApiError as error:
        if error.code in _BY_MEMBERS:
            return None
        raise
    return len(later)


def _require_amount(request: ResetRequest) -> None:
    if request.strategy in _AMOUNTS and request.amount is None:
        raise ConfigError(
            f"the strategy {request.strategy} needs a value for {_AMOUNTS[request.strategy]}"
        )
    if request.strategy is Strategy.FROM_FILE and not request.offsets:
        raise ConfigError(f"the strategy {request.strategy} needs a value for offsets")
    if request.strategy is Strategy.TO_OFFSET and (request.amount or 0) < 0:
        raise ConfigError(f"{request.amount} is not an offset: use 0 or more, or to-latest")


def _select(brokers: Brokers, request: ResetRequest, current: Mapping[Key, int]) -> list[Key]:
    """Return the partitions to reset, which exist and have leaders."""
    keys: list[Key] = list(request.partitions)
    if request.strategy is Strategy.FROM_FILE and not keys and not request.topics:
        keys = list(request.offsets)
    named = {*request.topics, *(topic for topic, _ in keys)}
    chosen = brokers.retry(lambda: _existing(brokers, request, keys, current, named))
    if not chosen:
        raise NothingSelected(
            f"group {request.group_id!r} has no committed offsets: select topics or partitions"
        )
    return chosen


def _existing(
    brokers: Brokers,
    request: ResetRequest,
    keys: Sequence[Key],
    current: Mapping[Key, int],
    named: set[str],
) -> list[Key]:
    names = named or {topic for topic, _ in current}
    leaders = brokers.known_leaders(names, skips_unknown=not named)
    chosen = [*keys, *(key for key in leaders if key[0] in request.topics)]
    # A group outlives the topics that it has read.
    chosen = list(dict.fromkeys(chosen)) if named else [key for key in current if key in leaders]
    for topic, number in chosen:
        if (topic, number) not in leaders:
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic {topic!r} has no partition {number}."
            )
        if leaders[topic, number] < 0:
            raise ApiError(
                ErrorCode.LEADER_NOT_AVAILABLE,
                f"{topic}-{number} has no running leader: try again when it has one, or leave it "
                "out.",
            )
    return chosen


def _name(row: OffsetDifference) -> str:
    return f"{row.topic}-{row.partition}"


def _text(offset: int | None) -> str:
    return "none" if offset is None else str(offset)
