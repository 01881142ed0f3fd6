"""Options that the verbs of `ottla perf` share, and what librdkafka calls without a broker."""

from collections.abc import Callable, Mapping
from typing import Any

import click

from ottla.tools import options
from ottla.tools.measuring.unreachable import repeated_warning
from ottla.tools.output import note

plot = click.option("--plot", metavar="FILE.svg", type=click.Path(dir_okay=False),
                    help="Draw the measured values as a picture.")  # fmt: skip
size = click.option("--size", type=click.IntRange(min=1, max=1 << 30), default=100,
                    show_default=True, metavar="BYTES", help="The size of each value.")  # fmt: skip
rate = click.option("--rate", type=options.FiniteRange(min=0, min_open=True), metavar="N",
                    help="Records per second (default: as many as possible).")  # fmt: skip
settings = click.option("-X", "settings", multiple=True, metavar="NAME=VALUE",
                        callback=options.parse_settings,
                        help="An option of librdkafka, like linger.ms=5; may be repeated.")  # fmt: skip


def on_down(bootstrap: str) -> Callable[[], None]:
    """Return a function that reports, at most every five seconds, that no broker responds."""
    return repeated_warning(note, f"No broker of {bootstrap} responds; retrying.")


def rounded(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return measured values with three decimals: the others are noise."""
    return {
        name: round(value, 3) if isinstance(value, float) else value
        for name, value in facts.items()
    }
