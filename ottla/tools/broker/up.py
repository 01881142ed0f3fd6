"""`ottla up`: one broker in the foreground, a cluster of one, until Ctrl-C."""

import contextlib
import logging
from pathlib import Path

import click

from ottla.server import loop
from ottla.server.node import Node
from ottla.tools import options
from ottla.tools.broker.properties import parse_properties
from ottla.tools.broker.settings import (
    DEFAULT_DATA,
    DEFAULT_HOST,
    DEFAULT_PORT,
    UpOptions,
    broker_settings,
)
from ottla.tools.output import Output, note

_LEVELS = ("debug", "info", "warning", "error")


@click.command("up")
@click.option("--port", type=click.IntRange(0, 65535), metavar="PORT",
              help=f"Where to listen; 0 takes any free port.  [default: {DEFAULT_PORT}]")  # fmt: skip
@click.option("--host", metavar="HOST",
              help=f"Which address to listen on; 0.0.0.0 for all.  [default: {DEFAULT_HOST}]")  # fmt: skip
@click.option("--data", metavar="FOLDER", type=click.Path(file_okay=False),
              help=f"Where records are kept.  [default: {DEFAULT_DATA}]")  # fmt: skip
@click.option(
    "--option",
    "-o",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    callback=options.parse_pairs,
    help="A broker option with Kafka's name, like num.partitions=3; may be repeated.",
)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False),
    help="A configuration file like Kafka's server.properties.",
)
@click.option("--log-level", type=click.Choice(_LEVELS), default="warning", show_default=True,
              help="How much to tell on standard error.")  # fmt: skip
@options.formatted
def command(
    output: Output,
    port: int | None,
    host: str | None,
    data: str | None,
    settings: dict[str, str],
    config: str | None,
    log_level: str,
) -> None:
    """Start a broker here, and stop it with Ctrl-C.

    \b
    ottla up
    ottla up --port 0 --data /tmp/trial --option num.partitions=3
    """
    logging.basicConfig(
        level=log_level.upper(), format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    file = {} if config is None else parse_properties(Path(config).read_text("utf-8"), config)
    given = UpOptions(host=host, port=port, data=data, options=settings, file=file)
    _serve(broker_settings(given), output)


def _serve(settings: dict[str, str], output: Output) -> None:
    data = settings.get("log.dirs") or settings["log.dir"]

    def announce(node: Node) -> None:
        host = f"[{node.host}]" if ":" in node.host else node.host
        bootstrap = f"{host}:{node.port}"
        sentence = f"Ottla is ready on {bootstrap} (data in {data})"
        # Whoever started it may have read enough; a broker goes on without a reader.
        with contextlib.suppress(BrokenPipeError):
            output.done(sentence, bootstrap=bootstrap, data=data, cluster_id=node.cluster_id)

    loop.run(Node(settings), announce)
    note("Ottla has stopped.")
