"""`ottla acl list`: the access control lists of resources."""

from typing import Any

import click

from ottla.client.brokers import Brokers
from ottla.operations.access.entries import bindings_of
from ottla.tools import options
from ottla.tools.acl.selection import COLUMNS, authorized, request_of, resources, rows_of
from ottla.tools.output import Output


@click.command("list")
@resources("literal", "prefixed", "any", "match")
@click.option("--principal", multiple=True, metavar="TYPE:NAME", help="Only entries of this principal; may be repeated.")  # fmt: skip
@options.connected
def command(
    brokers: Brokers, output: Output, principal: tuple[str, ...], **option_values: Any
) -> None:
    """List access control lists: all of them, or the named resources' lists.

    With --pattern-type match, a name selects all patterns that match it.

    \b
    ottla acl list --topic orders --pattern-type match
    ottla acl list --principal User:anna
    """
    request = request_of(option_values)
    with authorized():
        bindings = bindings_of(brokers, request)
    selected = [row for row in bindings if not principal or row.entry.principal in principal]
    output.rows(
        rows_of(selected),
        COLUMNS,
        empty="No entries. `ottla acl add --topic NAME --allow-principal User:NAME` adds one.",
    )
