"""`ottla metrics set NAME`: create or change a subscription to metrics of clients."""

import click

from ottla.client.brokers import Brokers
from ottla.operations.client_metrics import alter_subscription
from ottla.tools import options
from ottla.tools.output import Output

_OPTIONS = {"metrics": "metrics", "interval": "interval.ms", "match": "match"}


@click.command("set")
@click.argument("name", shell_complete=options.complete_subscription)
@click.option("--metrics", multiple=True, metavar="PREFIX", help="Metrics whose names begin with this; * is all; may be repeated.")  # fmt: skip
@click.option("--interval", callback=options.parse_milliseconds, metavar="DURATION", help="How often clients push, as in 30s.")  # fmt: skip
@click.option("--match", multiple=True, metavar="NAME=REGEX", callback=options.parse_pairs,
              help="Only clients that match: client_id, client_instance_id, client_software_name, client_software_version, client_source_address, client_source_port.")  # fmt: skip
@click.option("--reset", multiple=True, type=click.Choice([*_OPTIONS]), help="Set this option to its default.")  # fmt: skip
@options.connected
def command(
    brokers: Brokers,
    output: Output,
    name: str,
    metrics: tuple[str, ...],
    interval: int | None,
    match: dict[str, str],
    reset: tuple[str, ...],
) -> None:
    """Create or change a subscription; options that are not given keep their values.

    \b
    ottla metrics set producers --metrics org.apache.kafka.producer. --interval 30s
    ottla metrics set producers --match client_id=loader-.* --reset interval
    """
    values = {}
    if metrics:
        values["metrics"] = ",".join(metrics)
    if interval is not None:
        values["interval"] = str(interval)
    if match:
        values["match"] = ",".join(f"{key}={pattern}" for key, pattern in match.items())
    twice = sorted({*values} & {*reset})
    if twice:
        raise click.UsageError(f"--{twice[0]} cannot be combined with --reset {twice[0]}.")
    if not values and not reset:
        raise click.UsageError("Give --metrics PREFIX, --interval DURATION, --match or --reset.")
    changes = {**values, **dict.fromkeys(reset, "")}
    alter_subscription(brokers, name, {_OPTIONS[key]: value for key, value in changes.items()})
    output.done(f"Changed the subscription {name}.", name=name, set=values, reset=list(reset))
