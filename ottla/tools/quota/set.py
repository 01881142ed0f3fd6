"""`ottla quota set`: set and remove the quotas of one entity."""

from typing import Any

import click

from ottla.client.brokers import Brokers
from ottla.operations.access.changes import alter_quota
from ottla.tools import options
from ottla.tools.output import Output
from ottla.tools.quota.entity import entity_of, name_of, named

_QUOTAS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage",
           "controller_mutation_rate", "connection_creation_rate")  # fmt: skip


@click.command("set")
@named
@click.option("--set", "assign", multiple=True, metavar="NAME=NUMBER", callback=options.parse_pairs,
              help="producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate; connection_creation_rate for an address.")  # fmt: skip
@click.option("--delete", multiple=True, metavar="NAME", help="Remove this quota.")
@options.connected
def command(
    brokers: Brokers,
    output: Output,
    assign: dict[str, str],
    delete: tuple[str, ...],
    **option_values: Any,
) -> None:
    """Set and remove quotas of a user, a client, a user's client, or an address.

    \b
    ottla quota set --client-id loader --set producer_byte_rate=1048576
    ottla quota set --user '<default>' --delete request_percentage
    """
    entity = entity_of(option_values)
    if not entity:
        raise click.UsageError("Name the entity with --user, --client-id or --ip.")
    if not assign and not delete:
        raise click.UsageError("Give --set NAME=NUMBER or --delete NAME.")
    for name in delete:
        if name not in _QUOTAS:
            raise click.UsageError(f"--delete {name}: the quotas are {', '.join(_QUOTAS)}.")
    numbers = {}
    for name, text in assign.items():
        try:
            numbers[name] = float(text)
        except ValueError:
            raise click.UsageError(f"--set {name}={text}: {text!r} is not a number.") from None
    alter_quota(brokers, entity, numbers, delete)
    output.done(
        f"Changed the quotas of {name_of(entity)}.",
        entity=entity,
        set=numbers,
        deleted=list(delete),
    )
