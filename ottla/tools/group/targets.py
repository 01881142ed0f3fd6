"""The target options of `ottla group reset` and `ottla streams reset`, and the moves they cause."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click

from ottla.base.loading import deferred
from ottla.client.admin import offsets
from ottla.client.brokers import Brokers
from ottla.client.resets import Bounds, Move, Partition, Target, plan_moves
from ottla.tools.moments import parse_moment

_parse_duration = deferred("ottla.client.config.durations", "parse_duration")
_target_of = deferred("ottla.tools.group.expressions", "target_of")

_OPTIONS = (
    click.option(
        "--to",
        metavar="POSITION",
        help="Reset to start, end, 42, -10 (the last ten), +5 (after the first five), "
        "@2026-02-14 or @-1h.",
    ),
    click.option("--to-earliest", is_flag=True, help="Reset to the first available record."),
    click.option("--to-latest", is_flag=True, help="Reset to the end."),
    click.option("--to-offset", type=click.IntRange(min=0), help="Reset to this offset."),
    click.option(
        "--to-datetime", metavar="TIME", help="Reset to the first record at or after a time (UTC)."
    ),
    click.option(
        "--by-duration", metavar="AGE", help="Reset to the first record of the last 90s, 2h or P1D."
    ),
    click.option(
        "--shift-by", type=int, help="Shift by this number of records; negative moves back."
    ),
)
NAMES = ("to_earliest", "to_latest", "to", "to_offset", "to_datetime", "by_duration", "shift_by")


def targeted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the target options to a command; `choose` reads them."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def choose(options: Mapping[str, Any], *, also: Iterable[str] = ()) -> tuple[Target, int] | None:
    """Return the requested target, with its offset, shift or time in ms; None if none is given.

    UsageError if more than one of these options and of those in `also` is given, or if a position,
    a time or a duration cannot be parsed.
    """
    now_ms = time.time_ns() // 1_000_000
    names = (*NAMES, *also)
    named = [
        option
        for option in names
        if options.get(option) is not None and options[option] is not False
    ]
    if len(named) > 1:
        raise click.UsageError(f"Choose the target with exactly one of {as_typed(names)}.")
    name = named[0] if named else None
    try:
        match name:
            case "to":
                target: tuple[Target, int] = _target_of(options[name], now_ms)
                return target
            case "to_datetime":
                return Target.TIME, parse_moment(options[name], now_ms)
            case "by_duration":
                return Target.TIME, now_ms - int(_parse_duration(options[name]))
            case "to_offset":
                return Target.OFFSET, options[name]
            case "shift_by":
                return Target.SHIFT, options[name]
            case "to_earliest":
                return Target.EARLIEST, 0
            case "to_latest":
                return Target.LATEST, 0
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    return None


def as_typed(names: Iterable[str]) -> str:
    """Return options as the user types them."""
    return ", ".join("--" + name.replace("_", "-") for name in names)


def planned(
    brokers: Brokers,
    target: Target,
    amount: int,
    keys: Sequence[Partition],
    current: Mapping[Partition, int],
) -> list[Move]:
    """Return the moves of partitions, within their bounds; raises the ValueError of `plan_moves`."""
    bounds = bounds_of(brokers, keys)
    at_time = offsets.offsets_at(brokers, keys, amount) if target is Target.TIME else {}
    return plan_moves(target, amount, bounds=bounds, current=current, at_time=at_time)


def bounds_of(brokers: Brokers, keys: Sequence[Partition]) -> dict[Partition, Bounds]:
    """Return the bounds of partitions."""
    starts = offsets.list_offsets(brokers, dict.fromkeys(keys, offsets.EARLIEST))
    ends = offsets.list_offsets(brokers, dict.fromkeys(keys, offsets.LATEST))
    return {key: Bounds(starts[key].offset, ends[key].offset) for key in keys}


def warnings(moves: Iterable[Move]) -> list[str]:
    """Return a warning for each partition that does not contain the requested offset."""
    texts = []
    for move in moves:
        if move.requested is not None and move.requested != move.target:
            side = "before its first record" if move.requested < move.target else "past its end"
            texts.append(
                f"{move.topic}-{move.partition}: offset {move.requested} is {side}; using {move.target}."
            )
    return texts
