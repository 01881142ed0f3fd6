"""The target options of `ottla group reset` and `ottla streams reset`."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import click

from ottla.base.errors import ConfigError
from ottla.base.loading import deferred
from ottla.operations.offsets.moments import parse_moment
from ottla.operations.offsets.plans import Key, Strategy
from ottla.tools.text_files import read_text

_parse_duration = deferred("ottla.client.config.durations", "parse_duration")
_parse_offsets = deferred("ottla.operations.offsets.files", "parse_offsets")
_strategy_of = deferred("ottla.operations.offsets.positions", "strategy_of")

FROM_FILE = "from_file"
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
        "--to-datetime",
        metavar="TIME",
        help="Reset to the first record at or after a time (UTC): 2026-02-14T12:00:00Z, -1h.",
    ),
    click.option(
        "--by-duration", metavar="AGE", help="Reset to the first record of the last 90s, 2h or P1D."
    ),
    click.option(
        "--shift-by", type=int, help="Shift by this number of records; negative moves back."
    ),
    click.option(
        "--from-file",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False),
        help="Reset to the offsets in a file of lines TOPIC,PARTITION,OFFSET.",
    ),
)
NAMES = (
    *("to_earliest", "to_latest", "to", "to_offset", "to_datetime", "by_duration", "shift_by"),
    FROM_FILE,
)


def targeted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the target options to a command; `choose` reads them."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def choose(options: Mapping[str, Any], *, also: Iterable[str] = ()) -> tuple[Strategy, int] | None:
    """Return the requested strategy, with its offset, shift or time in ms; None if there is none.

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
                target: tuple[Strategy, int] = _strategy_of(options[name], now_ms)
                return target
            case "to_datetime":
                return Strategy.TO_DATETIME, parse_moment(options[name], now_ms)
            case "by_duration":
                return Strategy.TO_DATETIME, now_ms - int(_parse_duration(options[name]))
            case "to_offset" | "shift_by":
                return Strategy(name.replace("_", "-")), options[name]
            case "to_earliest" | "to_latest":
                return Strategy(name.replace("_", "-")), 0
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    return None


def as_typed(names: Iterable[str]) -> str:
    """Return options as the user types them."""
    return ", ".join("--" + name.replace("_", "-") for name in names)


def read_offsets(file: str) -> dict[Key, int]:
    """Return the offsets of a file; UsageError if it has none, or names an invalid line."""
    text = read_text(file)
    try:
        offsets: dict[Key, int] = _parse_offsets(text)
    except ConfigError as error:
        raise click.UsageError(f"{file}, {error}") from error
    if not offsets:
        raise click.UsageError(f"{file} contains no line TOPIC,PARTITION,OFFSET.")
    return offsets
