"""`ottla broker start`: run one broker of a cluster in the foreground until SIGTERM."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import click

from ottla.cluster.options.option_tables import refuse_unknown_names
from ottla.server.node import Node
from ottla.tools import options
from ottla.tools.broker import serving
from ottla.tools.broker.properties import parse_properties
from ottla.tools.output import Output, note


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
    callback=options.parse_pairs,
    help="A broker option with Kafka's name, which has precedence over the file; may be repeated. "
    "An unknown name is an error.",
)
@click.option("--supervised", is_flag=True, hidden=True, help="Stop at the end of standard input.")
@serving.logging_options
@options.formatted
def command(
    output: Output, config: str, settings: dict[str, str], supervised: bool, **words: Any
) -> None:
    """Start one broker of a cluster and run it until SIGTERM (or Ctrl-C), which stops it cleanly.

    The file says where the cluster's metadata is: in the ZooKeeper of zookeeper.connect; at
    coordination.listener, for brokers that share a machine; else in the broker's log directory.

    \b
    ottla broker start --config server.properties
    ottla broker start --config server.properties --option broker.id=2
    """
    line = serving.configure_logs(output, words["log_levels"], words["log_format"])
    refuse_unknown_names(settings)
    file = parse_properties(Path(config).read_text("utf-8"), config)
    serving.report_unknown(file)
    whole = {**file, **settings}
    node = Node(whole)
    data = whole.get("log.dirs") or whole.get("log.dir") or "ottla-data"

    def nodes_of(node: Node) -> list[Node]:
        if supervised:
            _stop_at_end_of_input(node)
        return [node]

    serving.serve(node, nodes_of, output, line, data)
    if not supervised:
        note("Ottla has stopped.")


def _stop_at_end_of_input(node: Node) -> None:
    """Stop the broker when the process that supervises it has ended; no other would stop it."""
    loop = asyncio.get_running_loop()

    def read() -> None:
        if not os.read(sys.stdin.fileno(), 1):
            loop.remove_reader(sys.stdin)
            node.on_failure()

    loop.add_reader(sys.stdin, read)
