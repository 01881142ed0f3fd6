"""`ottla broker start`: run one broker of a cluster in the foreground until SIGTERM."""

from typing import Any

import click

from ottla.base.loading import deferred
from ottla.tools import options
from ottla.tools.broker.levels import logging_options
from ottla.tools.output import Output

_start = deferred("ottla.tools.broker.launch", "start")


@click.command("start")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False),
    required=True,
    help="A configuration file like Kafka's server.properties. An unknown name is reported and "
    "ignored, as in Kafka.",
)
@click.option(
    "--option",
    "-o",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    callback=options.parse_settings,
    help="A broker option with Kafka's name, which has precedence over the file; may be repeated. "
    "An unknown name is an error.",
)
@click.option("--supervised", is_flag=True, hidden=True, help="Stop at the end of standard input.")
@logging_options
@options.formatted
def command(output: Output, **option_values: Any) -> None:
    """Start one broker of a cluster and run it until SIGTERM (or Ctrl-C), which stops it cleanly.

    The file says where the cluster's metadata is: in the ZooKeeper of zookeeper.connect; at
    coordination.listener, for brokers that share a machine; else in the broker's log directory.

    \b
    ottla broker start --config server.properties
    ottla broker start --config server.properties --option broker.id=2
    """
    _start(output, **option_values)
