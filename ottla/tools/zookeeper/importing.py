"""`ottla zookeeper import`: move a cluster from Apache Kafka 3.x brokers to Ottla."""

from pathlib import Path

import click

from ottla.cluster import zookeeper_transfer
from ottla.tools.output import Output
from ottla.tools.zookeeper.transfer import TreeCopy, between, copy, directory, ensemble


@click.command("import")
@between
def command(output: Output, data: Path, connect: str, **how: bool) -> None:
    """Copy a cluster's metadata from a ZooKeeper to a log directory without metadata.

    The broker must be stopped: its session has to end first. Then start Ottla with the same
    broker.id on the same log.dirs, the first of which is --data.

    \b
    ottla zookeeper import --connect localhost:2181/kafka --data /var/lib/kafka
    """
    copy(
        output,
        TreeCopy(
            ensemble(connect),
            directory(data, must_exist=False),
            str(data),
            zookeeper_transfer.for_ottla,
        ),
        **how,
    )
