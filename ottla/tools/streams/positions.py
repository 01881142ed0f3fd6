"""The input positions of an application after a reset, computed for each partition.

As with Kafka's tool, input topics are reset to the position of the options (default: the
beginning), and intermediate topics to their end. Topics that are not named keep their offsets. If
no topic is named, the options apply to every topic that the application has read. Without any
option there is no plan: the application starts from the beginning, as its sources define it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin.topics import list_topics
from ottla.client.brokers import Brokers
from ottla.client.resets import Move, Partition, Target, plan_moves
from ottla.tools.group.targets import bounds_of, choose, planned, warnings
from ottla.tools.text_files import is_number, read_text

FROM_FILE = "from_file"


def plan_positions(
    brokers: Brokers, options: Mapping[str, Any], current: Mapping[Partition, int]
) -> tuple[list[Move], list[str]]:
    """Return the moves of partitions, and warnings about them.

    ApiError UNKNOWN_TOPIC_OR_PARTITION if a topic does not exist, UsageError for contradictory
    options.
    """
    chosen = choose(options, also=(FROM_FILE,))
    lines = None if options[FROM_FILE] is None else read_plan(options[FROM_FILE])
    inputs, ends = options["input_topics"], options["intermediate_topics"]
    if set(inputs) & set(ends):
        name = min(set(inputs) & set(ends))
        raise click.UsageError(f"{name} cannot be both an input topic and an intermediate topic.")
    has_target = chosen is not None or lines is not None
    if not (inputs or ends or has_target):
        return [], []
    counts = {topic.name: len(topic.partitions) for topic in list_topics(brokers)}
    if has_target and not inputs:
        inputs = sorted({topic for topic, _ in (lines or current)} & set(counts) - set(ends))
        if not inputs and not ends:
            raise click.UsageError(
                "The application has no committed offsets yet: name its topics with --input-topics."
            )
    _check_known([*inputs, *ends], counts)
    keys = [(topic, n) for topic in inputs for n in range(counts[topic])]
    if lines is not None:
        moves = _of_file(brokers, lines, keys, current)
    else:
        moves = _of_target(brokers, chosen or (Target.EARLIEST, 0), keys, current)
    notes = warnings(moves) + _unfound(chosen, keys, current)
    at_end = [(topic, n) for topic in ends for n in range(counts[topic])]
    moves += planned(brokers, Target.LATEST, 0, at_end, current) if at_end else []
    named = {(move.topic, move.partition) for move in moves}
    unnamed = {key for key in current if key not in named and key[1] < counts.get(key[0], 0)}
    stay = {key: current[key] for key in unnamed}
    return moves + _staying(brokers, stay), notes


def _check_known(names: Sequence[str], counts: Mapping[str, int]) -> None:
    missing = sorted(set(names) - set(counts))
    if missing:
        is_one = len(missing) == 1
        subject = f"topic {missing[0]} is" if is_one else f"topics {', '.join(missing)} are"
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The {subject} unknown; nothing was changed."
        )


def _of_target(
    brokers: Brokers,
    target: tuple[Target, int],
    keys: Sequence[Partition],
    current: Mapping[Partition, int],
) -> list[Move]:
    if target[0] is not Target.SHIFT:
        return planned(brokers, *target, keys, current) if keys else []
    # As in Kafka's tool, whose consumer starts at the end of partitions without a committed offset.
    bounds = bounds_of(brokers, keys)
    known = {key: current.get(key, bounds[key].end) for key in keys}
    return plan_moves(*target, bounds=bounds, current=known, at_time={})


def _of_file(
    brokers: Brokers,
    lines: Mapping[Partition, int],
    keys: Sequence[Partition],
    current: Mapping[Partition, int],
) -> list[Move]:
    for wrong, verb in (
        (set(keys) - set(lines), "does not contain"),
        (set(lines) - set(keys), "contains"),
    ):
        if wrong:
            topic, partition = min(wrong)
            why = "" if verb == "does not contain" else ", which is not of an input topic"
            raise click.UsageError(f"The file of --from-file {verb} {topic}-{partition}{why}.")
    return plan_moves(
        Target.FILE, 0, bounds=bounds_of(brokers, keys), current=current, at_time=lines
    )


def _staying(brokers: Brokers, stay: Mapping[Partition, int]) -> list[Move]:
    if not stay:
        return []
    bounds = bounds_of(brokers, sorted(stay))
    return plan_moves(Target.FILE, 0, bounds=bounds, current=stay, at_time=stay)


def _unfound(
    chosen: tuple[Target, int] | None,
    keys: Sequence[Partition],
    current: Mapping[Partition, int],
) -> list[str]:
    if chosen is None or chosen[0] is not Target.SHIFT:
        return []
    return [
        f"{topic}-{partition}: no committed offset; shifted from the end offset."
        for topic, partition in sorted(set(keys) - set(current))
    ]


def read_plan(file: str) -> dict[Partition, int]:
    """Return the offsets of a file of lines TOPIC,PARTITION,OFFSET; UsageError names an invalid
    line.
    """
    plan: dict[Partition, int] = {}
    for number, line in enumerate(read_text(file).splitlines(), 1):
        if not line.strip():
            continue
        parts = [part.strip() for part in line.split(",")]
        if len(parts) != 3 or not (is_number(parts[1], 32) and is_number(parts[2], 64)):
            raise click.UsageError(
                f"{file}, line {number}: {line!r} is not of the form TOPIC,PARTITION,OFFSET."
            )
        plan[parts[0], int(parts[1])] = int(parts[2])
    if not plan:
        raise click.UsageError(f"{file} contains no line TOPIC,PARTITION,OFFSET.")
    return plan
