"""The secret of a cluster, with which its brokers prove their identity to each other.

It is stored in the coordination tree, because a writer of the tree controls the cluster anyway.
Restrict the tree to the brokers if the network is not trusted.
"""

from typing import Protocol

from ottla.base.rng import Rng
from ottla.cluster.zk.port import Coordination, NodeExists, NoNode
from ottla.cluster.znodes import BrokerSecretNode

SECRET_BYTES = 32


class SecretNode(Protocol):
    """A node that has a secret of the cluster."""

    PATH: str

    @staticmethod
    def encode(secret: bytes) -> bytes:
        """Return the content."""
        ...

    @staticmethod
    def decode(data: bytes) -> bytes:
        """Return the secret."""
        ...


async def ensure_broker_secret(session: Coordination, rng: Rng) -> bytes:
    """Return the secret of the cluster; the first broker of a cluster generates it."""
    return await ensure_secret(session, rng, BrokerSecretNode())


async def ensure_secret(session: Coordination, rng: Rng, node: SecretNode) -> bytes:
    """Return the secret of a node; the first broker that needs it generates it."""
    while True:
        try:
            return node.decode((await session.get(node.PATH))[0])
        except NoNode:
            await session.ensure(node.PATH.rpartition("/")[0])
        secret = rng.random_bytes(SECRET_BYTES)
        try:
            await session.create(node.PATH, node.encode(secret))
        except NodeExists:
            # Another broker created it first: its secret is the cluster's.
            continue
        return secret
