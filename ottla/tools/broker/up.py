"""`ottla up`: run one broker, a cluster of one, in the foreground until Ctrl-C."""

import contextlib
import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ottla.base import logs
from ottla.client.config.properties import parse_properties
from ottla.cluster.options.option_tables import unknown_names
from ottla.server import loop
from ottla.server.node import Node
from ottla.tools import options
from ottla.tools.broker.levels import parse_levels
from ottla.tools.broker.live import LiveLine
from ottla.tools.broker.settings import (
    DEFAULT_DATA,
    DEFAULT_HOST,
    DEFAULT_PORT,
    UpOptions,
    broker_settings,
)
from ottla.tools.output import Output, StatusLine, note


@click.command("up")
@click.option("--port", type=click.IntRange(0, 65535), metavar="PORT",
              help=f"The port to listen on; 0 for any free port.  [default: {DEFAULT_PORT}]")  # fmt: skip
@click.option("--host", metavar="HOST",
              help=f"The address to listen on; 0.0.0.0 for all.  [default: {DEFAULT_HOST}]")  # fmt: skip
@click.option("--data", metavar="FOLDER", type=click.Path(file_okay=False),
              help=f"The log directory.  [default: {DEFAULT_DATA}]")  # fmt: skip
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
              help="Serve /metrics for Prometheus and /healthz on this port of 127.0.0.1.")  # fmt: skip
@click.option(
    "--log-level",
    "log_levels",
    multiple=True,
    metavar="[LOGGER=]LEVEL",
    help="Log level on standard error: trace, debug, info, warning, error or fatal; may be "
    "repeated with levels of single loggers, like ottla.controller=debug.  [default: warning]",
)
@click.option("--log-format", type=click.Choice([logs.TEXT, logs.JSON]), default=logs.TEXT,
              show_default=True, help="The log format: text lines, or one JSON object per line.")  # fmt: skip
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
    """Start a broker on this machine and run it until Ctrl-C.

    \b
    ottla up
    ottla up --port 0 --data /tmp/trial --option num.partitions=3
    """
    levels = parse_levels(words["log_levels"])
    line = StatusLine(sys.stderr) if sys.stderr.isatty() and not output.is_json else None
    logs.configure(
        line or sys.stderr,
        level=levels.level,
        levels=levels.single,
        log_format=words["log_format"],
    )
    file = {} if config is None else parse_properties(Path(config).read_text("utf-8"), config)
    _report_unknown(file)
    command_line = UpOptions(
        host=host,
        port=port,
        data=data,
        metrics_port=words["metrics_port"],
        options=settings,
        file=file,
    )
    _serve(broker_settings(command_line), output, line)


def _report_unknown(file: Mapping[str, str]) -> None:
    """Report the unknown names in a file if --log-level hides the broker's own warning."""
    if not logging.getLogger(Node.__module__).isEnabledFor(logging.WARNING):
        for sentence in unknown_names(file):
            note(sentence)


def _serve(settings: dict[str, str], output: Output, line: StatusLine | None) -> None:
    data = settings.get("log.dirs") or settings["log.dir"]
    node = Node(settings)
    live = None if line is None else LiveLine(node, line)

    def announce(node: Node) -> None:
        host = f"[{node.host}]" if ":" in node.host else node.host
        bootstrap = f"{host}:{node.port}"
        sentence = f"Ottla is ready on {bootstrap} (data in {data})"
        facts = {"bootstrap": bootstrap, "data": data, "cluster_id": node.cluster_id}
        if node.monitoring_address is not None:
            facts["metrics"] = "http://{}:{}/metrics".format(*node.monitoring_address)
            sentence += f"\nMetrics are on {facts['metrics']}"
        # The reader of standard output may have ended; the broker continues without it.
        with contextlib.suppress(BrokenPipeError):
            output.done(sentence, **facts)

        if live is not None:
            live.start()

    try:
        loop.run(node, announce)
    finally:
        if live is not None:
            live.stop()
    note("Ottla has stopped.")
