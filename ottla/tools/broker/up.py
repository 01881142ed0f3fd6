"""`ottla up`: run one broker or a cluster on this machine, in the foreground until Ctrl-C."""

from pathlib import Path
from typing import Any

import click

from ottla.server.local_cluster import LocalCluster
from ottla.server.node import Node
from ottla.tools import options
from ottla.tools.broker import layout, processes, serving
from ottla.tools.broker.properties import parse_properties
from ottla.tools.broker.settings import (
    DEFAULT_DATA,
    DEFAULT_HOST,
    DEFAULT_PORT,
    UpOptions,
    broker_settings,
    cluster_settings,
)
from ottla.tools.output import Output, StatusLine, note


@click.command("up")
@click.option("--brokers", type=click.IntRange(1, 100), default=1, show_default=True,
              help="The number of brokers.")  # fmt: skip
@click.option("--processes", "has_processes", is_flag=True,
              help="Run each broker in a process of its own, so that every core works.")  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65535), metavar="PORT",
              help="The port to listen on, the next ones for more brokers; 0 for any free ports."
                   f"  [default: {DEFAULT_PORT}]")  # fmt: skip
@click.option("--host", metavar="HOST",
              help=f"The address to listen on; 0.0.0.0 for all.  [default: {DEFAULT_HOST}]")  # fmt: skip
@click.option("--data", metavar="FOLDER", type=click.Path(file_okay=False),
              help=f"The log directory, or the folder for those of all brokers.  [default: {DEFAULT_DATA}]")  # fmt: skip
@click.option(
    "--option",
    "-o",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    callback=options.parse_pairs,
    help="A broker option with Kafka's name, like num.partitions=3; may be repeated. Has precedence "
    "over --config. An unknown name, or one that a short option also sets, is an error.",
)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False),
    help="A configuration file like Kafka's server.properties. An unknown name is reported and "
    "ignored, as in Kafka.",
)
@click.option("--metrics-port", type=click.IntRange(0, 65535), metavar="PORT",
              help="Serve /metrics for Prometheus and /healthz on this port of 127.0.0.1 (the next "
                   "ones for more brokers).")  # fmt: skip
@serving.logging_options
@options.formatted
def command(
    output: Output,
    port: int | None,
    host: str | None,
    data: str | None,
    settings: dict[str, str],
    config: str | None,
    **words: Any,
) -> None:
    """Start one broker or more on this machine and run them until Ctrl-C.

    \b
    ottla up
    ottla up --brokers 3
    ottla up --port 0 --data /tmp/trial --option num.partitions=3
    """
    line = serving.configure_logs(output, words["log_levels"], words["log_format"])
    file = {} if config is None else parse_properties(Path(config).read_text("utf-8"), config)
    serving.report_unknown(file)
    command_line = UpOptions(
        host=host,
        port=port,
        data=data,
        metrics_port=words["metrics_port"],
        options=settings,
        file=file,
    )
    if words["has_processes"]:
        _run_processes(command_line, words, output, line)
    elif words["brokers"] > 1:
        _run_cluster(command_line, words["brokers"], output, line)
    else:
        _run_broker(broker_settings(command_line), output, line)
    note("Ottla has stopped.")


def _run_broker(settings: dict[str, str], output: Output, line: StatusLine | None) -> None:
    data = settings.get("log.dirs") or settings["log.dir"]
    layout.refuse_cluster(data)
    serving.serve(Node(settings), lambda node: [node], output, line, data)


def _run_cluster(
    command_line: UpOptions, count: int, output: Output, line: StatusLine | None
) -> None:
    data = command_line.data or DEFAULT_DATA
    settings = cluster_settings(command_line, count)
    layout.check_cluster(data, count)
    cluster = LocalCluster(settings, layout.coordination(data))
    serving.serve(cluster, lambda cluster: cluster.nodes, output, line, data)


def _run_processes(
    command_line: UpOptions, words: dict[str, Any], output: Output, line: StatusLine | None
) -> None:
    data, count = command_line.data or DEFAULT_DATA, words["brokers"]
    settings = cluster_settings(command_line, count)
    layout.check_cluster(data, count)
    logging = [word for level in words["log_levels"] for word in ("--log-level", level)]
    processes.run(data, settings, [*logging, "--log-format", words["log_format"]], output, line)
