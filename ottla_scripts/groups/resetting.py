"""`kafka-consumer-groups --reset-offsets`."""

import datetime
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from ottla.client.config.durations import parse_duration
from ottla.operations.offsets.groups import IDLE_STATES, state_of
from ottla.operations.offsets.plans import (
    OffsetDifference,
    OffsetPlan,
    ResetRequest,
    Strategy,
    current_offsets,
    offsets_since,
    plan_partitions,
)
from ottla.operations.offsets.resets import execute
from ottla.tools.text_files import is_number, read_text
from ottla_scripts.admin.java_split import java_split
from ottla_scripts.exits import UsageError
from ottla_scripts.flags import Options
from ottla_scripts.groups.plan_file import rows_of
from ottla_scripts.groups.running import all_groups, runtime_exception, takes
from ottla_scripts.java_order import hash_order, partition_hash
from ottla_scripts.printing import as_json, left, out

TopicPartition = tuple[str, int]
TargetOffsets = dict[TopicPartition, int]
Rows = tuple[OffsetDifference, ...]
_CHECKED = ("to-offset", "to-datetime", "by-duration", "to-earliest", "to-latest", "to-current",
            "shift-by", "from-file")  # fmt: skip
# In the order in which the tool's sentence names them.
SCENARIOS = ("to-offset", "to-earliest", "to-current", "to-latest", "by-duration", "to-datetime",
             "from-file", "shift-by")  # fmt: skip
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(?:Z|[+-]\d\d:?\d\d)?")
_ZONE = re.compile(r"[+-]\d\d:?\d\d$")
_WIDTHS = (15, 15, 10, 15)
_NO_TIME = (
    "java.text.ParseException: Error parsing timestamp. It does not contain a 'T' according to "
    "ISO8601 format"
)
_NO_DURATION = "Text cannot be parsed to a Duration"
_NO_SUCH_DATE = "java.text.ParseException: Unparseable date: "


def reset(brokers: Brokers, options: Options) -> None:
    """Plan new offsets for each group, print them, and commit them with --execute."""
    names = all_groups(brokers) if "all-groups" in options else sorted(set(options.all("group")))
    plans: dict[str, TargetOffsets] = {}
    for name in names:
        with runtime_exception():
            state = state_of(brokers, name)
        if state not in IDLE_STATES:
            out(
                f"\nError: Assignments can only be reset if the group '{name}' is inactive, but the "
                f"current state is {state}."
            )
            plans[name] = {}
            continue
        keys = _keys(brokers, options, name)
        check_partitions(brokers, keys)
        rows = prepare(brokers, options, name, keys, current_offsets)
        plans[name] = targets(rows)
        if "execute" in options:
            commit(brokers, name, rows)
    print_plans(options, plans)


def check_execution(options: Options) -> None:
    """Raise UsageError unless either --dry-run or --execute is given."""
    if "dry-run" in options and "execute" in options:
        raise UsageError("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if "dry-run" not in options and "execute" not in options:
        raise takes("reset-offsets", "the option: [execute] or [dry-run]")


def check_scenarios(options: Options) -> None:
    """Raise UsageError if the options request two kinds of new offsets."""
    for name in _CHECKED:
        options.forbid(name, *(other for other in SCENARIOS if other != name))


def commit(brokers: Brokers, group: str, rows: Rows) -> None:
    """Commit the new offsets of a group without members."""
    with altering(targets(rows)):
        execute(brokers, OffsetPlan(group, Strategy.FROM_FILE, rows, "", 0))


def targets(rows: Rows) -> TargetOffsets:
    """Return the new offsets."""
    return {row.key: row.after for row in rows if row.after is not None}


@contextmanager
def altering(plan: TargetOffsets) -> Iterator[None]:
    """Name the partitions in an error of this block, which changes their offsets."""
    try:
        yield
    except ApiError as error:
        names = ", ".join(f"{topic}-{partition}" for topic, partition in in_java_order(plan))
        sentence = f"Failed altering group offsets for the following partitions: [{names}]"
        raise ApiError(error.code, sentence) from error


def in_java_order(keys: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Return partitions in the order of a HashMap."""
    return hash_order(keys, partition_hash)


def print_plans(
    options: Options, plans: Mapping[str, TargetOffsets], widths: Sequence[int] | None = None
) -> None:
    """Print the new offsets of groups; by default the columns are as wide as their cells."""
    rows = [
        (group, *key, plan[key]) for group, plan in plans.items() for key in in_java_order(plan)
    ]
    if options.is_json:
        names = ("group", "topic", "partition", "new_offset")
        as_json([dict(zip(names, row, strict=True)) for row in rows])
    elif "export" in options:
        has_group = len(options.all("group")) != 1
        for row in rows:
            out(",".join(map(str, row if has_group else row[1:])))
        # As Apache Kafka's tool, which ignores the empty line when it reads the file.
        out()
    else:
        widths = widths or _widths(rows)
        out()
        if plans:
            out(left(["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"], widths))
        for row in rows:
            out(left(row, widths))


def _widths(rows: Sequence[tuple[str, str, int, int]]) -> list[int]:
    widths = [
        max([least, *(len(str(row[at])) for row in rows)]) for at, least in enumerate(_WIDTHS)
    ]
    return [*widths[:3], 0]


def prepare(
    brokers: Brokers,
    options: Options,
    group: str,
    keys: Sequence[TopicPartition],
    read_current: Callable[[Brokers, str], Mapping[TopicPartition, int]] | None,
) -> Rows:
    """Return the new offsets of partitions, as the options request them.

    `read_current` returns the present offsets, from which some options count; None for a group
    whose offsets are not committed.
    """
    scenario = next((name for name in SCENARIOS if name in options), None)
    if scenario is None:
        listed = ", ".join(f"[{name}]" for name in SCENARIOS)
        raise UsageError(
            f"Option '[reset-offsets]' requires one of the following scenarios: [{listed}]"
        )
    strategy, amount = Strategy(scenario), 0
    given: TargetOffsets = {}
    if scenario in ("to-offset", "shift-by"):
        amount = options[scenario]
    elif scenario == "from-file":
        given = _from_file(options, group)
        keys = list(given)
        check_partitions(brokers, keys)
    elif scenario in ("to-datetime", "by-duration"):
        strategy, amount = Strategy.TO_DATETIME, _moment(options)
    current: Mapping[TopicPartition, int] = {}
    if read_current is not None:
        is_relative = scenario in ("shift-by", "to-current")
        current = (read_current if is_relative else current_offsets)(brokers, group)
    if scenario == "shift-by":
        for topic, partition in keys:
            if (topic, partition) not in current:
                raise UsageError(
                    f"Cannot shift offset for partition {topic}-{partition} since there is no "
                    "current committed offset"
                )
    request = ResetRequest(group, strategy, amount=amount, offsets=given)
    with runtime_exception():
        rows = plan_partitions(brokers, request, keys, current)
    if strategy is Strategy.TO_DATETIME:
        _warn_of_empty(brokers, keys, amount)
    return rows


def _warn_of_empty(brokers: Brokers, keys: Sequence[TopicPartition], moment_ms: int) -> None:
    with runtime_exception():
        known = offsets_since(brokers, keys, moment_ms)
    for topic, partition in in_java_order(key for key in keys if key not in known):
        out(
            f"\nWarn: Partition {partition} from topic {topic} is empty. "
            "Falling back to latest known offset."
        )


def _keys(brokers: Brokers, options: Options, group: str) -> list[TopicPartition]:
    if "all-topics" in options:
        return list(current_offsets(brokers, group))
    if "topic" in options:
        return parse_topics(brokers, options.all("topic"))
    require_file(options)
    return []


def require_file(options: Options) -> None:
    """Raise UsageError if no partitions are named, and no file has them."""
    if "from-file" not in options:
        raise UsageError("One of the reset scopes should be defined: --all-topics, --topic.")


def parse_topics(brokers: Brokers, arguments: Sequence[str]) -> list[TopicPartition]:
    """Return the partitions of `topic` and `topic:0,1` arguments."""
    keys: list[TopicPartition] = []
    for argument in arguments:
        name, *numbers = java_split(":", argument)
        if ":" not in argument:
            keys += _leaders(brokers, name)
            continue
        if len(numbers) != 1:
            raise UsageError(f"Invalid topic arg '{argument}', expected topic name and partitions")
        for number in java_split(",", numbers[0]):
            if not is_number(number, 32):
                raise UsageError(
                    f"Invalid partition '{number}' specified in topic arg '{argument}''"
                )
            keys.append((name, int(number)))
    return keys


def check_partitions(brokers: Brokers, keys: Sequence[TopicPartition]) -> None:
    """Raise OttlaError unless the partitions exist and have leaders."""
    leaders: dict[TopicPartition, int] = {}
    with runtime_exception():
        # The first partition of each topic, which an error names.
        for name, partition in {key[0]: key for key in reversed(keys)}.values():
            try:
                leaders |= _leaders(brokers, name)
            except ApiError as error:
                if error.code is not ErrorCode.INVALID_TOPIC_EXCEPTION:
                    raise
                sentence = (
                    f"Failed to fetch metadata for partition {name}-{partition} due to invalid "
                    f"topic `{name}`"
                )
                raise ApiError(error.code, sentence) from error
    _refuse([key for key in keys if key not in leaders], "do not exist")
    _refuse([key for key in keys if leaders[key] < 0], "have no leader")


def _leaders(brokers: Brokers, name: str) -> dict[TopicPartition, int]:
    try:
        described = topics.describe_topic(brokers, name)
    except ApiError as error:
        # The tool has the broker's words, not ours.
        raise ApiError(error.code) from error
    return {(name, row.partition): row.leader for row in described.partitions}


def _refuse(keys: Sequence[TopicPartition], reason: str) -> None:
    if keys:
        names = ",".join(f"{name}-{number}" for name, number in keys)
        raise OttlaError(f'The partitions "{names}" {reason}')


def _moment(options: Options) -> int:
    text = options["by-duration"]
    return parse_date_time(options["to-datetime"]) if text is None else parse_age(text)


def parse_age(text: str) -> int:
    """Return the time, in ms, that is a duration ago; a negative duration is in the future."""
    sign = -1 if text.startswith("-") else 1
    # Java has no short form, as in 1h.
    if text.removeprefix("-")[:1] not in ("P", "p"):
        raise OttlaError(_NO_DURATION)
    try:
        return time.time_ns() // 1_000_000 - sign * parse_duration(text.removeprefix("-"))
    except ValueError:
        raise OttlaError(_NO_DURATION) from None


def parse_date_time(text: str) -> int:
    """Return the milliseconds of `YYYY-MM-DDTHH:mm:ss.sss`, in UTC unless it names a zone."""
    if "T" not in text:
        raise OttlaError(_NO_TIME)
    try:
        if _MOMENT.fullmatch(text) is None:
            raise ValueError(text)
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        has_zone = text.endswith("Z") or _ZONE.search(text) is not None
        raise OttlaError(f'{_NO_SUCH_DATE}"{text}{"" if has_zone else "Z"}"') from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return int(moment.timestamp() * 1000)


def _from_file(options: Options, group: str) -> TargetOffsets:
    plan: TargetOffsets = {}
    try:
        text = read_text(options["from-file"])
    except OSError as error:
        sentence = f"java.io.IOException: Unable to read file {options['from-file']}"
        raise OttlaError(sentence) from error
    for owner, key, offset in rows_of(text, options.all("group")):
        if offset < 0:
            raise UsageError("Invalid negative offset")
        if owner == group:
            plan[key] = offset
    if not plan:
        out(f"\nError: No reset plan for group {group} found")
    return plan
