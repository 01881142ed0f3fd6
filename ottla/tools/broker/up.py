"""`ottla up`: run one broker or a cluster on this machine, in the foreground until Ctrl-C."""

from typing import Any

import click

from ottla.base.loading import deferred
from ottla.tools import options
from ottla.tools.broker.defaults import CONSOLE_PORT, DEFAULT_DATA, DEFAULT_HOST, DEFAULT_PORT
from ottla.tools.broker.levels import logging_options
from ottla.tools.output import Output

_up = deferred("ottla.tools.broker.launch", "up")


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
              help=f"The log directory, or the folder for the log directories of all brokers.  [default: {DEFAULT_DATA}]")  # fmt: skip
@click.option(
    "--option",
    "-o",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    callback=options.parse_settings,
    help="A broker option with Kafka's name, like num.partitions=3; may be repeated. Has precedence "
    "over --config. An unknown name is an error, and so is an option that --port, --host, --data "
    "or --metrics-port sets, too.",
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
@click.option("--console", is_flag=True,
              help="Serve the console, for a browser: the output has an address that logs in.")  # fmt: skip
@click.option("--console-port", type=click.IntRange(0, 65535), default=CONSOLE_PORT, metavar="PORT",
              show_default=True, help="The port of the console; 0 for any free port.")  # fmt: skip
@click.option("--console-host", default=DEFAULT_HOST, metavar="HOST", show_default=True,
              help="The address of the console; any other than loopback needs --console-insecure.")  # fmt: skip
@click.option("--console-insecure", is_flag=True,
              help="Let the console listen on an address that others can reach, although it does not "
                   "encrypt.")  # fmt: skip
@click.option("--console-read-only", is_flag=True,
              help="Let no user of the console change the cluster.")  # fmt: skip
@click.option("--console-schema-registry", metavar="URL",
              help="The schema registry of the cluster, for the console: to read and write Avro, "
                   "Protobuf and JSON Schema.")  # fmt: skip
@logging_options
@options.formatted
def command(output: Output, **option_values: Any) -> None:
    """Start one broker or more on this machine and run them until Ctrl-C.

    \b
    ottla up
    ottla up --brokers 3
    ottla up --console
    ottla up --port 0 --data /tmp/trial --option num.partitions=3
    """
    _up(output, **option_values)
