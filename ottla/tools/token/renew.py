"""`ottla token renew TOKEN`: postpone the expiry of a delegation token."""

import click

from ottla.client.admin.apache import delegation_tokens as tokens
from ottla.client.brokers import Brokers
from ottla.operations.access.changes import renew_token
from ottla.operations.offsets.moments import render_moment
from ottla.tools import options
from ottla.tools.output import Output
from ottla.tools.token.naming import find


@click.command("renew")
@click.argument("token")
@click.option(
    "--period",
    "period_ms",
    callback=options.parse_positive_milliseconds,
    metavar="DURATION",
    help="The time until the token expires, as in 1d.  [default: the brokers' delegation.token.expiry.time.ms]",
)
@options.connected
def command(brokers: Brokers, output: Output, token: str, period_ms: int | None) -> None:
    """Postpone the expiry of a token, at most to the end of its longest life.

    TOKEN is an id or an HMAC. The user must own the token or be one of its renewers.

    \b
    ottla token renew SvGDVLtJQVqkj3Nq5sy2EQ --period 1d
    """
    named = find(brokers, token)
    change = renew_token(
        brokers,
        named.token_id or "",
        named.hmac,
        period_ms=tokens.BROKER_DEFAULT if period_ms is None else period_ms,
    )
    expiry_ms = int(change.after["expiry_ms"])
    expires = render_moment(expiry_ms)
    output.done(
        f"Renewed {named}: it expires at {expires}.",
        token_id=named.token_id,
        expiry_ms=expiry_ms,
        expires=expires,
    )
