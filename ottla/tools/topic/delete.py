"""`ottla topic delete NAME…`: delete topics, after a confirmation on a terminal."""

import click

from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from ottla.tools import options
from ottla.tools.output import Output, is_terminal


@click.command("delete")
@click.argument("names", nargs=-1, required=True, shell_complete=options.complete_topic)
@options.yes
@options.connected
def command(brokers: Brokers, output: Output, names: tuple[str, ...], yes: bool) -> None:
    """Delete topics and all their records."""
    # Check all names first: a misspelt name must not leave only the topics before it deleted.
    for name in names:
        topics.describe_topic(brokers, name)
    listed = ", ".join(names)
    if not yes and is_terminal():
        click.confirm(f"Delete {listed} with all records?", abort=True, err=True)
    for name in names:
        topics.delete_topic(brokers, name)
    output.done(f"Deleted {listed}.", deleted=list(names))
