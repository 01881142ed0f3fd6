"""`ottla cluster features`: the features that brokers support, and their levels (KIP-584).

Not done: levels cannot be changed; `AdminClient.update_features` changes them.
"""

import click

from ottla.client.admin.features import Feature, level_text, read_features
from ottla.client.brokers import Brokers
from ottla.tools import options
from ottla.tools.broker_ids import running_brokers
from ottla.tools.output import Output, note

_COLUMNS = ("feature", "min", "max", "level")


@click.command("features")
@click.option("--broker", "broker_id", type=click.IntRange(min=0), metavar="ID",
              help="Ask this broker.  [default: any]")  # fmt: skip
@options.connected
def command(brokers: Brokers, output: Output, broker_id: int | None) -> None:
    """Show the levels of features that brokers support, and those that the cluster uses.

    A feature at level 0 is off. Levels of metadata.version are releases of Apache Kafka.

    \b
    ottla cluster features --broker 1
    """
    if broker_id is not None:
        running_brokers(brokers, [broker_id])
    described = read_features(brokers, broker_id)
    rows = [
        {
            "feature": row.name,
            "min": _shown(output, row, row.min_version),
            "max": _shown(output, row, row.max_version),
            "level": _shown(output, row, row.level),
            "epoch": described.epoch,
        }
        for row in described.features
    ]
    output.rows(rows, _COLUMNS, empty="The brokers support no features.")
    if rows:
        note(f"Epoch {described.epoch}.")


def _shown(output: Output, feature: Feature, level: int) -> int | str:
    return level if output.is_json else level_text(feature.name, level)
