"""`ottla token expire TOKEN`: delete a delegation token, or let it expire soon."""

import click

from ottla.client.brokers import Brokers
from ottla.operations.access.changes import expire_token
from ottla.operations.offsets.moments import render_moment
from ottla.tools import options
from ottla.tools.output import Output, is_terminal
from ottla.tools.token.naming import find

_AT_ONCE = -1


@click.command("expire")
@click.argument("token")
@click.option(
    "--period",
    "period_ms",
    callback=options.parse_positive_milliseconds,
    metavar="DURATION",
    help="The time until the token expires, as in 1h.  [default: the token is deleted at once]",
)
@options.yes
@options.connected
def command(brokers: Brokers, output: Output, token: str, period_ms: int | None, yes: bool) -> None:
    """Delete a token, so that no client can log in with it, or let it expire after a period.

    TOKEN is an id or an HMAC. The user must own the token or be one of its renewers.

    \b
    ottla token expire SvGDVLtJQVqkj3Nq5sy2EQ
    ottla token expire SvGDVLtJQVqkj3Nq5sy2EQ --period 1h
    """
    named = find(brokers, token)
    deletes = period_ms is None
    if deletes and not yes and is_terminal():
        click.confirm(f"Delete {named}?", abort=True, err=True)
    change = expire_token(
        brokers,
        named.token_id or "",
        named.hmac,
        period_ms=_AT_ONCE if period_ms is None else period_ms,
    )
    expiry_ms = int(change.after["expiry_ms"])
    expires = render_moment(expiry_ms)
    output.done(
        f"Deleted {named}." if deletes else f"The expiry of {named} is now {expires}.",
        token_id=named.token_id,
        deleted=deletes,
        expiry_ms=expiry_ms,
        expires=expires,
    )
