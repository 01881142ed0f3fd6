"""`ottla acl add`: add entries to the access control lists of resources."""

from typing import Any

import click

from ottla.client.admin import acls
from ottla.client.brokers import Brokers
from ottla.operations.access.entries import divided, entries_to_add
from ottla.tools import options
from ottla.tools.acl.selection import (
    COLUMNS,
    authorized,
    entries,
    request_of,
    resources,
    rows_of,
    usage_errors,
)
from ottla.tools.output import Output, note


@click.command("add")
@resources("literal", "prefixed")
@entries
@click.option("--dry-run", is_flag=True, help="Only show what would be added.")
@options.connected
def command(brokers: Brokers, output: Output, dry_run: bool, **option_values: Any) -> None:
    """Add entries for principals to the access control lists of resources.

    Entries that exist are not added again.

    \b
    ottla acl add --topic orders --allow-principal User:anna --operation Read
    ottla acl add --topic orders --group billing --consumer --allow-principal User:ben
    """
    request = request_of(option_values)
    with usage_errors():
        wanted = entries_to_add(request)
    missing = []
    with authorized():
        for pattern, listed in wanted.items():
            missing += divided(brokers, pattern, listed)[1]
        if missing and not dry_run:
            acls.create_acls(brokers, missing)
    output.rows(rows_of(missing, executed=not dry_run), COLUMNS, empty="The entries exist already.")
    if missing and dry_run:
        note("Dry run, nothing was added.")
