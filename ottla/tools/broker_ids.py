"""Brokers as users type them: `--broker 1`, `--to 1,2,3`."""

from collections.abc import Iterable

import click

from ottla.base.errors import ConfigError
from ottla.client.admin import cluster
from ottla.client.brokers import Brokers
from ottla.tools.text_files import is_number

broker_option = click.option(
    "--broker",
    "broker_ids",
    type=click.IntRange(min=0),
    multiple=True,
    metavar="ID",
    help="Only this broker; may be repeated.",
)


def parse_broker_ids(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> tuple[int, ...]:
    """Return the broker ids of a comma-separated list (a click callback)."""
    parts = [part.strip() for part in text.split(",")] if text else []
    if not all(is_number(part, 32) for part in parts):
        raise click.BadParameter(f"{text!r} is not a list of broker ids, as in 1,2,3", context, parameter)  # fmt: skip
    ids = tuple(int(part) for part in parts)
    if len(set(ids)) != len(ids):
        raise click.BadParameter(f"{text!r} names a broker twice", context, parameter)
    return ids


def running_brokers(brokers: Brokers, named: Iterable[int]) -> list[cluster.Broker]:
    """Return the brokers with these ids, or all if none is named.

    ConfigError if one of them is not running.
    """
    described = cluster.describe_cluster(brokers).brokers
    running = {broker.node_id: broker for broker in described}
    ids = sorted(set(named))
    unknown = [number for number in ids if number not in running]
    if unknown:
        known = ", ".join(map(str, sorted(running)))
        raise ConfigError(f"Broker {unknown[0]} is not running; running brokers: {known}.")
    return [running[number] for number in ids or sorted(running)]
