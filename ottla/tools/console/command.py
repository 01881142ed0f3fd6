"""`ottla console`: serve the console of one cluster or more, until Ctrl-C."""

from typing import Any

import click

from ottla.base.loading import deferred
from ottla.tools import options
from ottla.tools.output import Output

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8080
DEFAULT_DATA = "./ottla-console"

_run = deferred("ottla.tools.console.running", "run")


@click.command("console")
@click.option("--cluster", "clusters", multiple=True,
              metavar="NAME=HOST:PORT[,HOST:PORT…]",
              help="A cluster, of Ottla or Apache Kafka, or the name of a profile; may be repeated.")  # fmt: skip
@click.option("--command-config", "client_configs", multiple=True, metavar="NAME=FILE",
              callback=options.parse_pairs,
              help="The properties file of a cluster with options of Kafka's clients, for TLS and SASL; may be repeated.")  # fmt: skip
@click.option("--zookeeper", "zookeepers", multiple=True, metavar="NAME=HOST:PORT[,HOST:PORT…]",
              callback=options.parse_pairs,
              help="The ZooKeeper ensemble of a cluster, to browse its tree; may be repeated.")  # fmt: skip
@click.option("--http-url", "http_urls", multiple=True, metavar="NAME/BROKER=URL",
              callback=options.parse_pairs,
              help="The HTTP port of a broker of Ottla, as in local/1=http://127.0.0.1:9644: for search in the broker, the exact lag in seconds and the metrics of clients; may be repeated.")  # fmt: skip
@click.option("--schema-registry", "registries", multiple=True, metavar="NAME=URL",
              callback=options.parse_pairs,
              help="The schema registry of a cluster, to read and write Avro, Protobuf and JSON Schema; may be repeated.")  # fmt: skip
@click.option("--console-port", "port", type=click.IntRange(0, 65535), default=DEFAULT_PORT,
              show_default=True, metavar="PORT", help="The port to listen on; 0 for any free port.")  # fmt: skip
@click.option("--console-host", "host", default=DEFAULT_HOST, show_default=True, metavar="HOST",
              help="The address to listen on. Any other than loopback needs --insecure.")  # fmt: skip
@click.option("--insecure", "is_insecure", is_flag=True,
              help="Listen on an address that others can reach, although the console does not encrypt: "
                   "for a proxy with TLS on another machine, or a trusted network.")  # fmt: skip
@click.option("--data", metavar="FOLDER", type=click.Path(file_okay=False), default=DEFAULT_DATA,
              show_default=True, help="The folder for users, audit log and history.")  # fmt: skip
@click.option("--read-only", "is_read_only", is_flag=True,
              help="Let no user change a cluster.")  # fmt: skip
@click.option("--reset-password", metavar="USER",
              help="Give a user a one-time password, print it, and exit.")  # fmt: skip
@options.formatted
def command(
    output: Output, clusters: tuple[str, ...], reset_password: str | None, **option_values: Any
) -> None:
    """Serve the console of one cluster or more.

    The first start prints a one-time password for the user admin, or uses the password in the
    environment variable OTTLA_CONSOLE_PASSWORD.

    \b
    ottla console --cluster local=localhost:9092
    ottla console --cluster test=kafka1:9092 --cluster live=kafka7:9092,kafka8:9092 --read-only
    ottla console --cluster live=kafka7:9093 --command-config live=client.properties
    """
    if not clusters and reset_password is None:
        raise click.UsageError("Name a cluster with --cluster NAME=HOST:PORT, or a profile.")
    _run(output, clusters=clusters, reset_password=reset_password, **option_values)
