"""`ottla group delete GROUP…`: delete groups and the offsets they have committed."""

import click

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.brokers import Brokers
from ottla.operations.offsets.groups import check_exists, delete_group
from ottla.tools import options
from ottla.tools.output import Output, is_terminal


@click.command("delete")
@click.argument("names", nargs=-1, required=True, shell_complete=options.complete_group)
@options.yes
@options.connected
def command(brokers: Brokers, output: Output, names: tuple[str, ...], yes: bool) -> None:
    """Delete groups and their committed offsets."""
    for name in names:
        check_exists(brokers, name)
    listed = ", ".join(names)
    if not yes and is_terminal():
        click.confirm(f"Delete {listed} with all offsets?", abort=True, err=True)
    for name in names:
        _delete(brokers, name)
    output.done(f"Deleted {listed}.", deleted=list(names))


def _delete(brokers: Brokers, name: str) -> None:
    try:
        delete_group(brokers, name)
    except ApiError as error:
        if error.code is not ErrorCode.NON_EMPTY_GROUP:
            raise
        raise ApiError(
            error.code, f"Group {name!r} has members: stop its consumers first, then delete it."
        ) from error
