"""`ottla zookeeper export`: move a cluster from Ottla to Apache Kafka 3.x brokers."""

from pathlib import Path

import click

from ottla.cluster import zookeeper_transfer
from ottla.tools.output import Output
from ottla.tools.zookeeper.transfer import TreeCopy, between, copy, directory, ensemble


@click.command("export")
@between
def command(output: Output, data: Path, connect: str, **how: bool) -> None:
    """Copy a cluster's metadata from a log directory to an empty ZooKeeper.

    The logs are not moved: start Apache Kafka with the same broker.id on the same log.dirs.

    \b
    ottla zookeeper export --data ottla-data --connect localhost:2181/kafka
    """
    copy(
        output,
        TreeCopy(
            directory(data, must_exist=True),
            ensemble(connect),
            connect,
            zookeeper_transfer.for_kafka,
        ),
        **how,
    )
