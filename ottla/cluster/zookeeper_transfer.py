"""A cluster's znodes, carried from one coordination tree to another.

The two trees may be of different kinds: a directory that Ottla coordinates itself, and the ZooKeeper of
Apache Kafka brokers. What belongs to living sessions, and notifications that only they could miss, stays
behind. No broker may be running meanwhile, or its partitions would have two controllers.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import NamedTuple

from ottla.base.errors import ConfigError
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

# ZooKeeper's own, and a migration to KRaft that has not happened.
_FOREIGN = frozenset({"/zookeeper", "/migration"})
_NO_CHILDREN_OF = frozenset(
    {
        BrokerIdsNode.PATH,
        ConfigChangeNode.PARENT,
        IsrChangeNode.PARENT,
        LogDirEventNode.PARENT,
    }
)
# ZooKeeper refuses packets of more than a megabyte, a transaction is one packet.
_BATCH_BYTES = 256 * 1024
_BATCH_NODES = 200
# What a node costs in a packet beside its path and data, at most.
_NODE_BYTES = 100


# Apache Kafka 3.x on ZooKeeper knows no features: a broker that finds one there does not start.
_NO_FEATURES = FeatureNode.encode({})


class Znode(NamedTuple):
    """A node that stays when sessions end."""

    path: str
    data: bytes


async def read(session: Coordination) -> list[Znode]:
    """Return what there is to carry, parents first; ConfigError while a broker is running."""
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
    """Return the nodes as Apache Kafka 3.x brokers take them: without features."""
    return [
        Znode(node.path, _NO_FEATURES) if node.path == FeatureNode.PATH else node for node in nodes
    ]


def for_ottla(nodes: Sequence[Znode]) -> list[Znode]:
    """Return the nodes as Ottla takes them: where no feature was set, its defaults count."""
    return [
        node
        for node in nodes
        if not (node.path == FeatureNode.PATH and not FeatureNode.decode(node.data)[0])
    ]


async def cluster_id(session: Coordination) -> str | None:
    """Return the id of the cluster that a tree holds; None where it holds none, or half of one."""
    if await session.exists(ClusterIdNode.PATH) is None:
        return None
    return ClusterIdNode.decode((await session.get(ClusterIdNode.PATH))[0])


async def check_vacant(
    session: Coordination, place: str, nodes: Sequence[Znode], *, replace: bool
) -> None:
    """Return if `nodes` may be written to a tree, which is called `place` in the ConfigError.

    One that holds a cluster is not overwritten, unless it is the same one and `replace` is said.
    """
    found = await cluster_id(session)
    if found is None:
        return
    carried = {node.path: node.data for node in nodes}.get(ClusterIdNode.PATH)
    if carried is None or ClusterIdNode.decode(carried) != found:
        raise ConfigError(f"{place} holds another cluster, {found}: name an empty place")
    if not replace:
        raise ConfigError(
            f"{place} holds this cluster {found} already, as it was once: --replace has it replaced"
        )


async def remove_others(session: Coordination, nodes: Sequence[Znode]) -> None:
    """Delete what `read` would return and `nodes` does not name, children first."""
    kept = {node.path for node in nodes}
    others = [Znode(node.path, b"") for node in await read(session) if node.path not in kept]
    for batch in _batches(others[::-1]):
        await session.multi([Delete(node.path) for node in batch])


async def write(session: Coordination, nodes: Sequence[Znode]) -> AsyncIterator[int]:
    """Create the nodes, some hundred a transaction; gives how many each transaction did.

    The cluster's id comes last: a tree without one is seen as vacant, so a run that was broken off can
    be repeated. What is there already gets the new data.
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
