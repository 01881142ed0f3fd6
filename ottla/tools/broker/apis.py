"""`ottla broker apis`: the versions of APIs that brokers serve (ApiVersions)."""

import click

from ottla.client.admin.cluster import describe_apis
from ottla.client.brokers import Brokers
from ottla.tools import options
from ottla.tools.broker.api_ranges import apis_of
from ottla.tools.broker_ids import broker_option, running_brokers
from ottla.tools.output import Output

_COLUMNS = ("broker", "key", "api", "min", "max", "usable")


@click.command("apis")
@broker_option
@options.connected
def command(brokers: Brokers, output: Output, broker_ids: tuple[int, ...]) -> None:
    """Show the lowest and the highest version of each API that brokers serve.

    The usable version is the highest one that Apache Kafka's client has, too (4.3.0). An API
    without versions is known to that client and not served by the broker.

    \b
    ottla broker apis --broker 1
    """
    rows = []
    for broker in running_brokers(brokers, broker_ids):
        for api in apis_of(describe_apis(brokers, broker.node_id)):
            low, high = api.versions or (None, None)
            rows.append(
                {
                    "broker": broker.node_id,
                    "key": api.key,
                    "api": api.name,
                    "min": low,
                    "max": high,
                    "usable": api.usable,
                }
            )
    output.rows(rows, _COLUMNS)
