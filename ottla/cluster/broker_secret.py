"""The secret of a cluster, with which its brokers prove their identity to each other.

It is stored in the coordination tree, because a writer of the tree controls the cluster anyway.
Restrict the tree to the brokers if the network is not trusted.
"""

from ottla.base.rng import Rng
from ottla.cluster.zk.port import Coordination, NodeExists, NoNode
from ottla.cluster.znodes import BrokerSecretNode

SECRET_BYTES = 32


async def ensure_broker_secret(session: Coordination, rng: Rng) -> bytes:
    """Return the secret of the cluster; the first broker of a cluster generates it."""
    while True:
        try:
            return BrokerSecretNode.decode((await session.get(BrokerSecretNode.PATH))[0])
        except NoNode:
            await session.ensure(BrokerSecretNode.PATH.rpartition("/")[0])
        secret = rng.random_bytes(SECRET_BYTES)
        try:
            await session.create(BrokerSecretNode.PATH, BrokerSecretNode.encode(secret))
        except NodeExists:
            # Another broker created it first: its secret is the cluster's.
            continue
        return secret
