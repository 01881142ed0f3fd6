"""One run of `ottla topic copy`."""

import time
from typing import Any

import click

from ottla.client.brokers import Brokers
from ottla.operations.mirror.copying import Mirror, MirrorSettings
from ottla.operations.mirror.routes import Route
from ottla.operations.offsets.groups import check_exists
from ottla.operations.offsets.positions import BEGINNING, Anchor, parse_range
from ottla.tools.output import Output, ProgressBar, note
from ottla.tools.signals import PATIENCE_S, StopSignals


def copy_topic(
    source: Brokers,
    target: Brokers,
    output: Output,
    names: tuple[str, str],
    options: dict[str, Any],
) -> None:
    """Copy one topic with the options of the command, and report the number of records."""
    route = Route(*names)
    try:
        start, end = parse_range(options["positions"], time.time_ns() // 1_000_000)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if start is not None and start.anchor is Anchor.STORED:
        raise click.UsageError("`stored` is a position of a group: name an offset or a time")
    if end is not None and options["follow"]:
        raise click.UsageError("--follow has no end: omit it, or the second -o")
    if not options["follow"]:
        for group in options["groups"]:
            check_exists(source, group)
    settings = MirrorSettings(
        exactly_once=options["exactly_once"],
        follow=options["follow"],
        interval_s=options["interval"],
        groups=options["groups"],
        start=start or BEGINNING,
        end=end,
        bytes_per_s=options["throttle"],
        is_read_committed=options["read_committed"],
        # A batch that fits only when it is compressed has to fit in the target, too.
        producer={"compression.type": "lz4"},
    )
    with StopSignals(patience_s=PATIENCE_S) as stop:
        mirror = Mirror(source, target, [route], settings, note)
        with ProgressBar("Copying", None) as progress:
            mirror.run(stop, progress.advance)
    output.done(
        f"Copied {mirror.copied} records of {route.source} to {route.target}.",
        source=route.source,
        target=route.target,
        records=mirror.copied,
        is_stopped=stop.requested,
        groups=mirror.moved_groups,
    )
