"""Brokers that registered again while there was no controller to notice it."""

from dataclasses import replace

from ottla.base.clock import RealClock
from ottla.base.files import RealFileSystem
from ottla.cluster.image import BrokerImage, LeaderAndIsr, ReplicaAssignment
from ottla.cluster.zk.embedded import EmbeddedTree
from ottla.cluster.znodes import PartitionStateNode, TopicNode
from ottla.controller import state


async def test_broker_that_registered_after_a_decision_about_it_has_restarted() -> None:
    """Only a broker that registered after the decision counts as restarted, because it may have
    lost records.
    """
    session = EmbeddedTree(RealFileSystem(), RealClock()).session()
    path = PartitionStateNode.path("t", 0)
    await session.ensure(path.rpartition("/")[0])
    await session.set(
        TopicNode.path("t"), TopicNode.encode(b"t" * 16, {0: ReplicaAssignment((1, 2, 3))})
    )
    decision = LeaderAndIsr(leader=1, leader_epoch=1, isr=(1, 2, 3))
    await session.create(path, PartitionStateNode.encode(decision, 1))
    stat = await session.exists(path)
    assert stat is not None
    broker = BrokerImage(1, "b1", 9092, epoch=stat.mzxid + 1)
    live = {1: broker, 2: replace(broker, id=2, epoch=stat.mzxid - 1)}
    topics, restarted = await state.load_topics(session, live)
    assert list(topics) == ["t"]
    assert restarted == {1}
