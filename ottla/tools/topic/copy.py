"""`ottla topic copy SOURCE [TARGET]`: copy a topic, within a cluster or to another one; can be
resumed.
"""

from typing import Any

import click

from ottla.base.loading import deferred
from ottla.client.brokers import Brokers
from ottla.tools import options
from ottla.tools.output import Output

_copy = deferred("ottla.tools.mirror.running", "copy_topic")
_configure = deferred("ottla.tools.connection.client_config", "configure")


@click.command("copy")
@click.argument("source", shell_complete=options.complete_topic)
@click.argument("target", required=False)
@click.option("--to", metavar="HOST:PORT", help="The target's cluster (default: the same).")
@click.option(
    "--to-config",
    metavar="FILE",
    type=options.properties_file,
    help="A properties file with options of Kafka's clients for the target's cluster.",
)
@click.option(
    "-o",
    "--offset",
    "positions",
    multiple=True,
    metavar="POSITION",
    help="Start of partitions that were never copied: beginning (default), end, 42, -10, +5, "
    "@2026-02-14, @-1h; a second -o sets the end.",
)
@click.option("--follow", is_flag=True, help="Wait for new records at the end, until Ctrl-C.")
@click.option(
    "--exactly-once", is_flag=True, help="Write records and positions in transactions (KIP-98)."
)
@click.option(
    "--groups",
    multiple=True,
    metavar="GROUP",
    help="Translate the committed offsets of this group; may be repeated. A group that does not "
    "exist is an error, unless --follow waits for it.",
)
@click.option(
    "--interval",
    type=options.FiniteRange(min=0.1),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Store the position at least this often.",
)
@click.option(
    "--throttle",
    type=click.IntRange(min=1),
    metavar="BYTES",
    help="Copy at most this many bytes per second, without compression.",
)
@click.option(
    "--read-committed/--read-uncommitted",
    default=True,
    show_default=True,
    help="Leave out records of open and aborted transactions, or copy them, too.",
)
@options.connected
def command(
    brokers: Brokers,
    output: Output,
    source: str,
    target: str | None,
    to: str | None,
    to_config: str | None,
    **option_values: Any,
) -> None:
    """Copy the records of SOURCE to TARGET (default: the same name, with --to).

    Partition, key, value, headers and timestamp are kept; a missing target is created with the
    configuration of the source. With --follow, new partitions are copied from their beginning. The
    position is kept in the topic TARGET.mirror-offsets, so that a second run continues where the
    first one stopped.

    \b
    ottla topic copy orders orders-backup
    ottla topic copy orders orders-of-today -o @-1d
    ottla topic copy orders --to west:9092 --follow --exactly-once --groups billing
    """
    if to is None and target in (None, source):
        raise click.UsageError("Name another topic as TARGET, or another cluster with --to.")
    if to_config is not None and to is None:
        raise click.UsageError("--to-config is for another cluster: name its address with --to.")
    with Brokers(to or brokers.bootstrap) as other:
        other.on_request = brokers.on_request
        if to is None:
            other.security, other.settings = brokers.security, brokers.settings
        elif to_config is not None:
            _configure(other, to_config)
        _copy(brokers, other, output, (source, target or source), option_values)
