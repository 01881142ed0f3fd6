"""One run of `ottla topic copy`."""

from typing import Any

from ottla.client.brokers import Brokers
from ottla.tools.mirror.copying import Mirror, MirrorSettings
from ottla.tools.mirror.routes import Route
from ottla.tools.output import Output, Progress, note
from ottla.tools.signals import StopSignals


def copy_topic(
    source: Brokers,
    target: Brokers,
    output: Output,
    names: tuple[str, str],
    options: dict[str, Any],
) -> None:
    """Copy one topic with the options of the command, and report the number of records."""
    route = Route(*names)
    settings = MirrorSettings(
        exactly_once=options["exactly_once"],
        follow=options["follow"],
        interval_s=options["interval"],
        groups=options["groups"],
    )
    with StopSignals() as stop:
        mirror = Mirror(source, target, [route], settings, note)
        with Progress("Copying", None) as progress:
            mirror.run(stop, progress.advance)
    output.done(
        f"Copied {mirror.copied} records of {route.source} to {route.target}.",
        source=route.source,
        target=route.target,
        records=mirror.copied,
        is_stopped=stop.requested,
        groups=mirror.moved_groups,
    )
