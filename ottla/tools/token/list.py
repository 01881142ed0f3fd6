"""`ottla token list`: the delegation tokens that the user may see."""

import click

from ottla.client.admin.apache import delegation_tokens as tokens
from ottla.client.brokers import Brokers
from ottla.tools import options
from ottla.tools.output import Output
from ottla.tools.token.naming import shown

_COLUMNS = ("token_id", "owner", "requester", "renewers", "issued", "expires", "ends")


@click.command("list")
@click.option("--owner", "owners", multiple=True, metavar="TYPE:NAME", help="Only tokens that this principal owns or may renew; may be repeated.")  # fmt: skip
@options.connected
def command(brokers: Brokers, output: Output, owners: tuple[str, ...]) -> None:
    """List delegation tokens: all that the user of this connection may describe.

    The HMACs, which are passwords, are only in --output json.

    \b
    ottla token list
    ottla token list --owner User:anna --output json
    """
    listed = tokens.describe_delegation_tokens(brokers, owners or None)
    output.rows(
        [shown(token) for token in listed],
        _COLUMNS,
        empty="No tokens. `ottla token create` issues one.",
    )
