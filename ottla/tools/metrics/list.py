"""`ottla metrics list [NAME]…`: subscriptions with their options."""

import click

from ottla.client.brokers import Brokers
from ottla.operations.client_metrics import describe_subscription, subscription_names
from ottla.tools import options
from ottla.tools.metrics.names import check_names
from ottla.tools.output import Output

_COLUMNS = ("name", "metrics", "interval_ms", "match")


@click.command("list")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=options.complete_subscription)  # fmt: skip
@options.connected
def command(brokers: Brokers, output: Output, names: tuple[str, ...]) -> None:
    """List the subscriptions, or some of them.

    `*` is all metrics. A subscription without a match is for all clients.

    \b
    ottla metrics list
    """
    known = subscription_names(brokers)
    check_names(names, known)
    rows = []
    for name in names or known:
        values = describe_subscription(brokers, name)
        rows.append(
            {
                "name": name,
                "metrics": _split(values.get("metrics")),
                "interval_ms": int(values.get("interval.ms") or 0),
                "match": _split(values.get("match")),
            }
        )
    output.rows(
        rows,
        _COLUMNS,
        empty="No subscriptions. `ottla metrics set NAME --metrics PREFIX --interval 30s` makes one.",
    )


def _split(text: str | None) -> list[str]:
    return text.split(",") if text else []
