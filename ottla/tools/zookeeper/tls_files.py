"""The option --tls-config of commands that connect to a ZooKeeper."""

import click

from ottla.client.config.properties import parse_properties
from ottla.tools.text_files import read_text

tls_config = click.option(
    "--tls-config",
    metavar="FILE",
    help="A properties file with the zookeeper.ssl options of a broker; by default, the system "
    "properties in KAFKA_OPTS.",
)


def tls_options(path: str | None) -> dict[str, str]:
    """Return the options in a file."""
    return {} if path is None else parse_properties(read_text(path), path, needs_values=False)
