"""`ottla zookeeper unsecure`: the way back from `ottla zookeeper secure`."""

import click

from ottla.cluster.secured_znodes import unsecured
from ottla.tools.output import Output
from ottla.tools.zookeeper.securing import connected, migrate
from ottla.tools.zookeeper.tls_files import tls_options


@click.command("unsecure")
@connected
def command(output: Output, connect: str, tls_config: str | None) -> None:
    """Let everyone change the nodes of a cluster.

    First restart all brokers with zookeeper.set.acl=false, but with the user in KAFKA_OPTS, which
    this command needs, too.

    \b
    ottla zookeeper unsecure --connect localhost:2181/kafka
    """
    count = migrate(connect, unsecured, tls_options(tls_config))
    output.done(f"Opened {count} nodes in {connect}.", nodes=count, target=connect)
