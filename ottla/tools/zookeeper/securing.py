"""`ottla zookeeper secure`: access control lists for the nodes that a cluster has already."""

import asyncio
from collections.abc import Callable
from typing import Any

import click

from ottla.base.errors import ConfigError
from ottla.cluster import zookeeper_security
from ottla.cluster.secured_znodes import secured
from ottla.cluster.zk.acls import AclOf
from ottla.cluster.zk.live import LiveSession
from ottla.cluster.zk.login import login_of_environment
from ottla.cluster.znodes import BrokerIdsNode
from ottla.tools import options
from ottla.tools.output import Output

CONNECT_MS = 10_000


def connected(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --connect and --output to a command."""
    function = options.formatted(function)
    return click.option(
        "--connect",
        metavar="HOST:PORT[/PATH]",
        required=True,
        help="The ZooKeeper ensemble, as in the brokers' zookeeper.connect.",
    )(function)


@click.command("secure")
@connected
def command(output: Output, connect: str) -> None:
    """Let only the user of the brokers change the nodes of a cluster.

    All may still read them, apart from those with secrets. First restart all brokers with
    zookeeper.set.acl=true. The user is that of the JAAS file in KAFKA_OPTS, as for the brokers.

    \b
    export KAFKA_OPTS=-Djava.security.auth.login.config=/etc/kafka/client.conf
    ottla zookeeper secure --connect localhost:2181/kafka
    """
    count = migrate(connect, secured)
    output.done(f"Secured {count} nodes in {connect}.", nodes=count, target=connect)


def migrate(connect: str, acl_of: AclOf) -> int:
    """Set the lists of all nodes of a cluster, and return their number."""
    if login_of_environment() is None:
        raise ConfigError(
            "the user of the brokers must change the nodes: set "
            "KAFKA_OPTS=-Djava.security.auth.login.config=FILE, a JAAS file with the section Client"
        )
    return asyncio.run(_migrate(connect, acl_of))


async def _migrate(connect: str, acl_of: AclOf) -> int:
    session = await LiveSession.begin(
        connect, connect_timeout_ms=CONNECT_MS, acl_of=acl_of, creates_path=False
    )
    try:
        if await session.exists(BrokerIdsNode.PATH) is None:
            raise ConfigError(
                f"{connect} contains no cluster: name the path of the brokers' zookeeper.connect"
            )
        return await zookeeper_security.set_lists(session, acl_of)
    finally:
        await session.close()
