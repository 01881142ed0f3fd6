"""`ottla up`: run one broker, a cluster of one, in the foreground until Ctrl-C."""

from typing import Any

import click

from ottla.base import logs
from ottla.tools import options
from ottla.tools.broker.defaults import DEFAULT_DATA, DEFAULT_HOST, DEFAULT_PORT
from ottla.tools.lazy import deferred
from ottla.tools.output import Output

_serve = deferred("ottla.tools.broker.serving", "serve")


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
def command(output: Output, **words: Any) -> None:
    """Start a broker on this machine and run it until Ctrl-C.

    \b
    ottla up
    ottla up --port 0 --data /tmp/trial --option num.partitions=3
    """
    _serve(output, **words)
