"""The brokers behind `--zookeeper host:2181/chroot`, which Apache Kafka 3.0 removed from its tools.

Loaded only if the option is used: the client of ZooKeeper takes longer than the rest of a script.
"""

import asyncio

from ottla.base.errors import OttlaError
from ottla.cluster.zk.live import LiveSession
from ottla.cluster.znodes import BrokerIdNode, BrokerIdsNode

_CONNECT_MS = 10_000


def find_brokers(connect: str) -> str:
    """Return the addresses of the registered brokers, as for --bootstrap-server."""
    return asyncio.run(_find(connect))


async def _find(connect: str) -> str:
    try:
        session = await LiveSession.begin(connect, connect_timeout_ms=_CONNECT_MS)
    except OttlaError as error:
        raise OttlaError(f"{error}; or name the brokers with --bootstrap-server") from error
    try:
        addresses = []
        for name in sorted(await session.children(BrokerIdsNode.PATH), key=int):
            data, stat = await session.get(BrokerIdNode.path(int(name)))
            broker = BrokerIdNode.decode(int(name), data, stat.czxid)
            plain = [
                item for item in broker.every_endpoint() if item.security_protocol == "PLAINTEXT"
            ]
            addresses += [f"{item.host}:{item.port}" for item in plain[:1]]
    finally:
        await session.close()
    if not addresses:
        raise OttlaError(f"no broker with a PLAINTEXT listener is registered in {connect}")
    return ",".join(addresses)
