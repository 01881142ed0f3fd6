"""`ottla acl add`: add entries to the access control lists of resources."""

from typing import Any

import click

from ottla.client.brokers import Brokers
from ottla.operations.access.changes import add_entries
from ottla.operations.access.entries import divided, entries_to_add, row_of, row_of_words
from ottla.tools import options
from ottla.tools.acl.selection import (
    COLUMNS,
    authorized,
    entries,
    request_of,
    resources,
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
        rows = [row_of(binding) for binding in missing]
        if not dry_run:
            rows = [row_of_words(change.after) for change in add_entries(brokers, missing)]
    shown = [{**row, "executed": not dry_run} for row in rows]
    output.rows(shown, COLUMNS, empty="The entries exist already.")
    if missing and dry_run:
        note("Dry run, nothing was added.")
