"""`ottla token create`: issue a delegation token."""

import click

from ottla.client.admin.apache import delegation_tokens as tokens
from ottla.client.brokers import Brokers
from ottla.operations.access.changes import create_token
from ottla.tools import options
from ottla.tools.output import Output
from ottla.tools.token.naming import shown


@click.command("create")
@click.option(
    "--owner",
    metavar="TYPE:NAME",
    default="",
    help="The owner, as in User:anna.  [default: the user of this connection]",
)
@click.option(
    "--renewer",
    "renewers",
    multiple=True,
    metavar="TYPE:NAME",
    help="A user that may renew the token, as in User:ben; may be repeated.",
)
@click.option(
    "--max-lifetime",
    "lifetime_ms",
    callback=options.parse_positive_milliseconds,
    metavar="DURATION",
    help="The longest life of the token, as in 7d.  [default: the brokers' delegation.token.max.lifetime.ms]",
)
@options.connected
def command(
    brokers: Brokers,
    output: Output,
    owner: str,
    renewers: tuple[str, ...],
    lifetime_ms: int | None,
) -> None:
    """Issue a delegation token, with which clients log in as its owner.

    Clients use SCRAM, with the id as their user, the HMAC as their password and tokenauth="true".
    The connection needs SASL or a client's certificate; a token cannot create tokens.

    \b
    ottla token create --command-config anna.properties
    ottla token create --renewer User:ben --max-lifetime 1d
    """
    token = create_token(
        brokers,
        owner=owner,
        renewers=renewers,
        max_lifetime_ms=tokens.BROKER_DEFAULT if lifetime_ms is None else lifetime_ms,
    ).token
    row = shown(token)
    output.done(
        f"Created token {token.token_id} of {token.owner}, which expires at {row['expires']}.\n"
        f"Its HMAC, the password: {row['hmac']}",
        **row,
    )
