"""`ottla topic delete NAME…`: delete topics, after a confirmation on a terminal."""

import click

from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from ottla.operations.topics import delete
from ottla.tools import options
from ottla.tools.output import Output, is_terminal


@click.command("delete")
@click.argument("names", nargs=-1, required=True, shell_complete=options.complete_topic)
@options.yes
@options.connected
def command(brokers: Brokers, output: Output, names: tuple[str, ...], yes: bool) -> None:
    """Delete topics and all their records."""
    # Check all names first: a misspelt name must not leave only the topics before it deleted.
    described = [topics.describe_topic(brokers, name) for name in names]
    listed = ", ".join(names)
    if not yes and is_terminal():
        click.confirm(f"Delete {listed} with all records?", abort=True, err=True)
    changes = [delete(brokers, topic) for topic in described]
    output.done(f"Deleted {listed}.", deleted=[change.resource for change in changes])
