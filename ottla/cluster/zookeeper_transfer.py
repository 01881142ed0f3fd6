"""The transfer of a cluster's znodes from one coordination tree to another.

The two trees may be of different kinds: a directory that Ottla coordinates itself, and the
ZooKeeper of Apache Kafka brokers. Ephemeral nodes and notifications for live sessions are not
copied: later notifications in the other tree would have lower numbers, and brokers would ignore
them. No broker may be running during the transfer, or its partitions would have two controllers.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import NamedTuple

from ottla.base.errors import ConfigError
from ottla.cluster.acl_znodes import AclChangeNode
from ottla.cluster.token_znodes import TokenChangeNode
from ottla.cluster.zk.port import Coordination, Create, Delete, NoNode, SetData
from ottla.cluster.zk.tree import ROOT
from ottla.cluster.znodes import (
    BrokerIdsNode,
    ClusterIdNode,
    ConfigChangeNode,
    ControllerNode,
    FeatureNode,
    IsrChangeNode,
    LogDirEventNode,
)

# ZooKeeper's own nodes, and the nodes of a migration to KRaft that has not happened.
_FOREIGN = frozenset({"/zookeeper", "/migration"})
_NO_CHILDREN_OF = frozenset(
    {
        BrokerIdsNode.PATH,
        ConfigChangeNode.PARENT,
        IsrChangeNode.PARENT,
        LogDirEventNode.PARENT,
        AclChangeNode.LITERAL_PARENT,
        AclChangeNode.EXTENDED_PARENT,
        TokenChangeNode.PARENT,
    }
)
# ZooKeeper rejects packets of more than a megabyte, and a transaction is one packet.
_BATCH_BYTES = 256 * 1024
_BATCH_NODES = 200
# The maximum overhead of a node in a packet, in addition to its path and data.
_NODE_BYTES = 100


# Apache Kafka 3.x on ZooKeeper does not support features: a broker that finds one does not start.
_NO_FEATURES = FeatureNode.encode({})


class Znode(NamedTuple):
    """A persistent node."""

    path: str
    data: bytes


async def read(session: Coordination) -> list[Znode]:
    """Return the nodes to copy, parents first; raise ConfigError if a broker is running."""
    try:
        running = await session.children(BrokerIdsNode.PATH)
    except NoNode:
        running = []
    if running:
        raise ConfigError(
            f"broker {', '.join(running)} is running on this tree: stop it, and wait until its"
            " session has ended"
        )
    return [node async for node in _walk(session, ROOT)]


async def _walk(session: Coordination, path: str) -> AsyncIterator[Znode]:
    for name in await session.children(path):
        below = f"{path.rstrip('/')}/{name}"
        if below in _FOREIGN or below == ControllerNode.PATH:
            continue
        data, stat = await session.get(below)
        if stat.ephemeral_owner:
            continue
        yield Znode(below, data)
        if below not in _NO_CHILDREN_OF:
            async for node in _walk(session, below):
                yield node


def for_kafka(nodes: Sequence[Znode]) -> list[Znode]:
    """Return the nodes for Apache Kafka 3.x brokers: without features."""
    return [
        Znode(node.path, _NO_FEATURES) if node.path == FeatureNode.PATH else node for node in nodes
    ]


def for_ottla(nodes: Sequence[Znode]) -> list[Znode]:
    """Return the nodes for Ottla: if no feature was set, Ottla's defaults apply."""
    return [
        node
        for node in nodes
        if not (node.path == FeatureNode.PATH and not FeatureNode.decode(node.data)[0])
    ]


async def cluster_id(session: Coordination) -> str | None:
    """Return the id of the cluster in a tree; None if it has no cluster, or an incomplete copy of
    one.
    """
    if await session.exists(ClusterIdNode.PATH) is None:
        return None
    return ClusterIdNode.decode((await session.get(ClusterIdNode.PATH))[0])


async def check_vacant(
    session: Coordination, target: str, nodes: Sequence[Znode], *, replace: bool
) -> None:
    """Check that `nodes` may be written to a tree, named `target` in the ConfigError.

    A tree with a cluster is not overwritten, unless it is the same cluster and `replace` is set.
    """
    existing_id = await cluster_id(session)
    if existing_id is None:
        return
    carried = {node.path: node.data for node in nodes}.get(ClusterIdNode.PATH)
    if carried is None or ClusterIdNode.decode(carried) != existing_id:
        raise ConfigError(f"{target} contains another cluster, {existing_id}: use an empty tree")
    if not replace:
        raise ConfigError(
            f"{target} already contains a copy of this cluster, {existing_id}: add --replace to replace it"
        )


async def remove_others(session: Coordination, nodes: Sequence[Znode]) -> None:
    """Delete the nodes that `read` would return and that are not in `nodes`, children first."""
    copied = {node.path for node in nodes}
    extra = [Znode(node.path, b"") for node in await read(session) if node.path not in copied]
    for batch in _batches(extra[::-1]):
        await session.multi([Delete(node.path) for node in batch])


async def write(session: Coordination, nodes: Sequence[Znode]) -> AsyncIterator[int]:
    """Create the nodes, some hundred in a transaction; yield the number of each transaction.

    The cluster's id is written last: a tree without one counts as vacant, so a transfer that was
    interrupted can be repeated. Existing nodes get the new data.
    """
    ordered = sorted(nodes, key=lambda node: node.path == ClusterIdNode.PATH)
    for batch in _batches(ordered):
        operations: list[Create | SetData] = []
        for node in batch:
            is_there = await session.exists(node.path) is not None
            operations.append(SetData(*node) if is_there else Create(*node))
        await session.multi(operations)
        yield len(batch)


def _batches(nodes: Sequence[Znode]) -> Iterator[list[Znode]]:
    batch: list[Znode] = []
    size = 0
    for node in nodes:
        cost = len(node.path) + len(node.data) + _NODE_BYTES
        if batch and (size + cost > _BATCH_BYTES or len(batch) == _BATCH_NODES):
            yield batch
            batch, size = [], 0
        batch.append(node)
        size += cost
    if batch:
        yield batch
