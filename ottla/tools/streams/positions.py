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
from ottla.operations.offsets.plans import (
    Key,
    OffsetDifference,
    ResetRequest,
    Strategy,
    notes_of,
    plan_partitions,
    read_bounds,
)
from ottla.tools.group.targets import FROM_FILE, choose, read_offsets


def plan_positions(
    brokers: Brokers, options: Mapping[str, Any], current: Mapping[Key, int]
) -> tuple[list[OffsetDifference], list[str]]:
    """Return the differences of partitions, and warnings about them.

    ApiError UNKNOWN_TOPIC_OR_PARTITION if a topic does not exist, UsageError for contradictory
    options.
    """
    chosen = choose(options)
    lines = None if options[FROM_FILE] is None else read_offsets(options[FROM_FILE])
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
        _check_lines(lines, keys)
        moves = _planned(brokers, (Strategy.FROM_FILE, 0), keys, current, lines)
    else:
        moves = _planned(brokers, chosen or (Strategy.TO_EARLIEST, 0), keys, current)
    notes = notes_of(moves) + _unfound(chosen, keys, current)
    at_end = [(topic, n) for topic in ends for n in range(counts[topic])]
    moves += _planned(brokers, (Strategy.TO_LATEST, 0), at_end, current)
    named = {row.key for row in moves}
    stay = [key for key in current if key not in named and key[1] < counts.get(key[0], 0)]
    return moves + _planned(brokers, (Strategy.TO_CURRENT, 0), stay, current), notes


def _check_known(names: Sequence[str], counts: Mapping[str, int]) -> None:
    missing = sorted(set(names) - set(counts))
    if missing:
        is_one = len(missing) == 1
        subject = f"topic {missing[0]} is" if is_one else f"topics {', '.join(missing)} are"
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The {subject} unknown; nothing was changed."
        )


def _planned(
    brokers: Brokers,
    target: tuple[Strategy, int],
    keys: Sequence[Key],
    current: Mapping[Key, int],
    offsets: Mapping[Key, int] | None = None,
) -> list[OffsetDifference]:
    strategy, amount = target
    if strategy is Strategy.SHIFT_BY:
        # As in Kafka's tool, whose consumer starts at the end of partitions without a committed
        # offset.
        bounds = read_bounds(brokers, keys)
        current = {key: current.get(key, bounds[key].end) for key in keys}
    request = ResetRequest("", strategy, amount=amount, offsets=offsets or {})
    return list(plan_partitions(brokers, request, keys, current))


def _check_lines(lines: Mapping[Key, int], keys: Sequence[Key]) -> None:
    for wrong, verb in (
        (set(keys) - set(lines), "does not contain"),
        (set(lines) - set(keys), "contains"),
    ):
        if wrong:
            topic, partition = min(wrong)
            why = "" if verb == "does not contain" else ", which is not of an input topic"
            raise click.UsageError(f"The file of --from-file {verb} {topic}-{partition}{why}.")


def _unfound(
    chosen: tuple[Strategy, int] | None,
    keys: Sequence[Key],
    current: Mapping[Key, int],
) -> list[str]:
    if chosen is None or chosen[0] is not Strategy.SHIFT_BY:
        return []
    return [
        f"{topic}-{partition}: no committed offset; shifted from the end offset."
        for topic, partition in sorted(set(keys) - set(current))
    ]
