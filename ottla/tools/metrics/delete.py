"""`ottla metrics delete NAME…`: delete subscriptions, after a confirmation on a terminal."""

import click

from ottla.client.brokers import Brokers
from ottla.operations.client_metrics import delete_subscription, subscription_names
from ottla.tools import options
from ottla.tools.metrics.names import check_names
from ottla.tools.output import Output, is_terminal


@click.command("delete")
@click.argument("names", nargs=-1, required=True, shell_complete=options.complete_subscription)
@options.yes
@options.connected
def command(brokers: Brokers, output: Output, names: tuple[str, ...], yes: bool) -> None:
    """Delete subscriptions: clients stop pushing their metrics.

    \b
    ottla metrics delete producers
    """
    check_names(names, subscription_names(brokers))
    listed = ", ".join(names)
    if not yes and is_terminal():
        click.confirm(f"Delete {listed}?", abort=True, err=True)
    for name in names:
        delete_subscription(brokers, name)
    output.done(f"Deleted {listed}.", deleted=list(names))
