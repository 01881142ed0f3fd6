"""Copies of znodes between trees: what is copied, skipped and rejected."""

import pytest

from ottla.base.clock import RealClock
from ottla.base.errors import ConfigError
from ottla.base.files import RealFileSystem
from ottla.cluster import zookeeper_transfer
from ottla.cluster.zk.embedded import EmbeddedTree
from ottla.cluster.zk.port import Coordination
from ottla.cluster.znodes import FeatureNode

ID = b'{"version":"1","id":"MkU3OEVBNTcwNTJENDM2Qg"}'
OTHER_ID = b'{"version":"1","id":"AAAAAAAAAAAAAAAAAAAAAA"}'


def new_tree() -> Coordination:
    """Return a session with an empty tree in memory."""
    return EmbeddedTree(RealFileSystem(), RealClock(), None).session()


async def put(session: Coordination, path: str, data: bytes, *, ephemeral: bool = False) -> None:
    """Create a node, and its parents."""
    await session.ensure(path.rpartition("/")[0] or "/")
    await session.create(path, data, ephemeral=ephemeral)


async def cluster(topics: int = 3) -> Coordination:
    """Return a tree with a cluster in it."""
    session = new_tree()
    await put(session, "/cluster/id", ID)
    for number in range(topics):
        await put(session, f"/brokers/topics/t{number}", b"%d" % number)
    return session


async def carry(source: Coordination, target: Coordination, *, replace: bool = False) -> int:
    """Copy as the commands do; return the number of written nodes."""
    nodes = await zookeeper_transfer.read(source)
    await zookeeper_transfer.check_vacant(target, "there", nodes, replace=replace)
    await zookeeper_transfer.remove_others(target, nodes)
    return sum([count async for count in zookeeper_transfer.write(target, nodes)])


async def test_nodes_are_copied_with_their_data() -> None:
    """The other tree has equal nodes."""
    source, target = await cluster(), new_tree()
    assert await carry(source, target) == 7
    assert await zookeeper_transfer.read(target) == await zookeeper_transfer.read(source)
    assert (await target.get("/brokers/topics/t2"))[0] == b"2"


async def test_nodes_of_sessions_are_not_copied() -> None:
    """Ephemeral nodes, the controller, notifications and ZooKeeper's own nodes are not copied."""
    source = await cluster(0)
    await put(source, "/controller", b"{}", ephemeral=True)
    await put(source, "/somebody/here", b"", ephemeral=True)
    await put(source, "/zookeeper/quota", b"")
    for parent in ("/config/changes", "/isr_change_notification", "/log_dir_event_notification"):
        await put(source, f"{parent}/note_0000000001", b"")
    await source.ensure("/brokers/ids")
    assert [node.path for node in await zookeeper_transfer.read(source)] == [
        "/brokers",
        "/brokers/ids",
        "/cluster",
        "/cluster/id",
        "/config",
        "/config/changes",
        "/isr_change_notification",
        "/log_dir_event_notification",
        "/somebody",
    ]


async def test_notifications_of_access_control_lists_and_tokens_are_not_copied() -> None:
    """Later ones would have lower numbers in the other tree, so that brokers would ignore them."""
    source = await cluster(0)
    for parent in ("/kafka-acl-changes", "/kafka-acl-extended-changes"):
        await put(source, f"{parent}/acl_changes_0000000001", b"TOPIC:t")
    await put(source, "/delegation_token/token_changes/token_change_0000000001", b"t")
    await put(source, "/kafka-acl/Topic/t", b"{}")
    assert [node.path for node in await zookeeper_transfer.read(source)][-7:] == [
        "/delegation_token",
        "/delegation_token/token_changes",
        "/kafka-acl",
        "/kafka-acl/Topic",
        "/kafka-acl/Topic/t",
        "/kafka-acl-changes",
        "/kafka-acl-extended-changes",
    ]


async def test_running_broker_is_an_error() -> None:
    """Two controllers for the same logs would lose data, so nothing is read."""
    source = await cluster()
    await put(source, "/brokers/ids/7", b"{}", ephemeral=True)
    with pytest.raises(ConfigError, match="broker 7 is running on this tree: stop it"):
        await zookeeper_transfer.read(source)


async def test_many_nodes_need_several_transactions() -> None:
    """Neither the number nor the size of the nodes reaches ZooKeeper's limit for a packet."""
    source, target = await cluster(450), new_tree()
    await put(source, "/large", bytes(200_000))
    await put(source, "/larger", bytes(200_000))
    nodes = await zookeeper_transfer.read(source)
    counts = [count async for count in zookeeper_transfer.write(target, nodes)]
    assert counts == [200, 200, 54, 2]
    assert await zookeeper_transfer.read(target) == nodes


async def test_interrupted_copy_can_be_repeated() -> None:
    """The cluster id is written last, so an incomplete copy does not look like a cluster."""
    source, target = await cluster(450), new_tree()
    nodes = await zookeeper_transfer.read(source)
    async for _ in zookeeper_transfer.write(target, nodes):
        break
    assert await zookeeper_transfer.cluster_id(target) is None
    await put(target, "/brokers/topics/left-over", b"")
    assert await carry(source, target) == len(nodes)
    assert await zookeeper_transfer.read(target) == nodes


async def test_another_cluster_is_never_overwritten() -> None:
    """The option to replace does not allow it either."""
    source, target = await cluster(), new_tree()
    await put(target, "/cluster/id", OTHER_ID)
    with pytest.raises(ConfigError, match="there contains another cluster, AAAAAAAAAAAAAAAAAAAAAA"):
        await carry(source, target, replace=True)
    assert len(await zookeeper_transfer.read(target)) == 2


async def test_same_cluster_is_replaced_on_request() -> None:
    """On the way back new nodes are added and missing ones deleted, only if the user requests it."""
    source, target = await cluster(3), await cluster(5)
    await source.set("/brokers/topics/t1", b"changed")
    with pytest.raises(ConfigError, match="--replace"):
        await carry(source, target)
    await carry(source, target, replace=True)
    assert await zookeeper_transfer.read(target) == await zookeeper_transfer.read(source)


def test_kafka_on_zookeeper_gets_no_features() -> None:
    """A broker of 3.9 refuses to start if a feature is set; other content stays."""
    feature = zookeeper_transfer.Znode("/feature", FeatureNode.encode({"transaction.version": 2}))
    other = zookeeper_transfer.Znode("/cluster/id", ID)
    assert zookeeper_transfer.for_kafka([other, feature]) == [
        other,
        zookeeper_transfer.Znode("/feature", FeatureNode.encode({})),
    ]


def test_features_that_kafka_never_set_are_not_copied() -> None:
    """Ottla then begins with its defaults; features that were set in Kafka are kept."""
    empty = zookeeper_transfer.Znode("/feature", FeatureNode.encode({}))
    chosen = zookeeper_transfer.Znode("/feature", FeatureNode.encode({"group.version": 1}))
    assert zookeeper_transfer.for_ottla([empty, chosen]) == [chosen]
