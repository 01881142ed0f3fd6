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
    node = _SupervisedNode(whole) if supervised else Node(whole)
    data = whole.get("log.dirs") or whole.get("log.dir") or "ottla-data"

    def nodes_of(node: Node) -> list[Node]:
        if isinstance(node, _SupervisedNode):
            node.watch_input()
        return [node]

    serving.serve(node, nodes_of, output, line, data)
    if not supervised:
        note("Ottla has stopped.")


class _SupervisedNode(Node):
    """A broker of `ottla up --processes`; the end of its input means that all brokers stop.

    Its input ends when the process that supervises it closes the pipe, or dies.
    """

    _stops_with_cluster = False

    def watch_input(self) -> None:
        """Stop at the end of standard input."""
        loop = asyncio.get_running_loop()

        def read() -> None:
            if not os.read(sys.stdin.fileno(), 1):
                loop.remove_reader(sys.stdin)
                self._stops_with_cluster = True
                self.on_failure()

        loop.add_reader(sys.stdin, read)

    async def stop(self, *, with_cluster: bool = False) -> None:
        """Stop; the leaders stay if all brokers stop."""
        await super().stop(with_cluster=with_cluster or self._stops_with_cluster)
