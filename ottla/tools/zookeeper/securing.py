"""`ottla zookeeper secure`: access control lists for the nodes that a cluster has already."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import click

from ottla.base.errors import ConfigError
from ottla.cluster import zookeeper_security
from ottla.cluster.secured_znodes import secured
from ottla.cluster.zk.acls import AclOf
from ottla.cluster.zk.tls import has_user
from ottla.cluster.znodes import BrokerIdsNode
from ottla.tools import options
from ottla.tools.output import Output
from ottla.tools.zookeeper.sessions import begin
from ottla.tools.zookeeper.tls_files import tls_config, tls_options

CONNECT_MS = 10_000


def connected(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --connect, --tls-config and --output to a command."""
    function = tls_config(options.formatted(function))
    return click.option(
        "--connect",
        metavar="HOST:PORT[/PATH]",
        required=True,
        help="The ZooKeeper ensemble, as in the brokers' zookeeper.connect.",
    )(function)


@click.command("secure")
@connected
def command(output: Output, connect: str, tls_config: str | None) -> None:
    """Let only the user of the brokers change the nodes of a cluster.

    All may still read them, apart from those with secrets. First restart all brokers with
    zookeeper.set.acl=true. The user comes from the JAAS file in KAFKA_OPTS, as for the brokers.

    \b
    export KAFKA_OPTS=-Djava.security.auth.login.config=/etc/kafka/client.conf
    ottla zookeeper secure --connect localhost:2181/kafka
    """
    count = migrate(connect, secured, tls_options(tls_config))
    output.done(f"Secured {count} nodes in {connect}.", nodes=count, target=connect)


def migrate(connect: str, acl_of: AclOf, options: Mapping[str, str]) -> int:
    """Set the lists of all nodes of a cluster, and return their number."""
    if not has_user(options):
        raise ConfigError(
            "the user of the brokers must change the nodes: set "
            "KAFKA_OPTS=-Djava.security.auth.login.config=FILE, a JAAS file with the section Client"
        )
    return asyncio.run(_migrate(connect, acl_of, options))


async def _migrate(connect: str, acl_of: AclOf, options: Mapping[str, str]) -> int:
    session = await begin(
        connect,
        connect_timeout_ms=CONNECT_MS,
        acl_of=acl_of,
        creates_path=False,
        tls_options=options,
    )
    try:
        if await session.exists(BrokerIdsNode.PATH) is None:
            raise ConfigError(
                f"{connect} contains no cluster: name the path of the brokers' zookeeper.connect"
            )
        return await zookeeper_security.set_lists(session, acl_of)
    finally:
        await session.close()
