"""`ottla transaction list`: the transactional ids with the states of their transactions."""

import click

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin import transactions
from ottla.client.brokers import Brokers
from ottla.tools import options
from ottla.tools.output import Output

_COLUMNS = ("transactional_id", "coordinator", "producer_id", "state")


@click.command("list")
@click.option("--open-for", "open_ms", callback=options.parse_milliseconds, metavar="DURATION", help="Only transactions that have been open for longer, as in 15m.")  # fmt: skip
@click.option("--pattern", metavar="REGEX", help="Only ids that match (RE2).")
@options.connected
def command(brokers: Brokers, output: Output, open_ms: int | None, pattern: str | None) -> None:
    """List the transactional ids of all coordinators.

    \b
    ottla transaction list --open-for 15m
    """
    try:
        listings = transactions.list_transactions(
            brokers, min_duration_ms=-1 if open_ms is None else open_ms, pattern=pattern
        )
    except ApiError as error:
        if error.code is not ErrorCode.INVALID_REGULAR_EXPRESSION:
            raise
        raise click.UsageError(
            f"--pattern {pattern}: write a regular expression of RE2."
        ) from error
    rows = [
        {
            "transactional_id": row.transactional_id,
            "coordinator": row.coordinator,
            "producer_id": row.producer_id,
            "state": row.state,
        }
        for row in listings
    ]
    output.rows(rows, _COLUMNS, empty="No transactional ids.")
