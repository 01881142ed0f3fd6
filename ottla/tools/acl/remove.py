"""`ottla acl remove`: remove entries from the access control lists of resources."""

from typing import Any

import click

from ottla.client.admin import acls
from ottla.client.brokers import Brokers
from ottla.operations.access.changes import remove_entries
from ottla.operations.access.entries import entries_of, filters_of, row_of, row_of_words
from ottla.tools import options
from ottla.tools.acl.selection import (
    COLUMNS,
    authorized,
    entries,
    request_of,
    resources,
    usage_errors,
)
from ottla.tools.output import Output, is_terminal, note


@click.command("remove")
@resources("literal", "prefixed", "any", "match")
@entries
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@options.yes
@options.connected
def command(
    brokers: Brokers, output: Output, dry_run: bool, yes: bool, **option_values: Any
) -> None:
    """Remove entries of principals, or all entries, from the access control lists of resources.

    Without a principal, all entries of the resources are removed.

    \b
    ottla acl remove --topic orders --allow-principal User:anna --operation Read
    ottla acl remove --topic orders --dry-run
    """
    request = request_of(option_values)
    with usage_errors():
        named = entries_of(request)
    filters = [row for pattern, listed in named.items() for row in filters_of(pattern, listed)]
    with authorized():
        bindings = list(
            dict.fromkeys(row for one in filters for row in acls.describe_acls(brokers, one))
        )
        if bindings and not (yes or dry_run) and is_terminal():
            for row in bindings:
                note(f"{row.pattern.resource_type.name} {row.pattern.name}: {row.entry.principal}")
            click.confirm(f"Remove {len(bindings)} entries?", abort=True, err=True)
        rows = [row_of(binding) for binding in bindings]
        if bindings and not dry_run:
            rows = [row_of_words(change.before) for change in remove_entries(brokers, filters)]
    shown = [{**row, "executed": not dry_run} for row in rows]
    output.rows(shown, COLUMNS, empty="There are no such entries.")
    if bindings and dry_run:
        note("Dry run, nothing was removed.")
