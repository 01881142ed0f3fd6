"""The images, writes and notices after brokers have joined or left."""

import sys
from dataclasses import replace

from ottla.cluster.image import (
    NO_EPOCH,
    NO_LEADER,
    BrokerImage,
    ClusterImage,
    PartitionImage,
    TopicImage,
)
from ottla.cluster.zk.port import Create, Delete, SetData
from ottla.controller.planning import planner


def brokers(*ids: int, epoch: int = 1) -> dict[int, BrokerImage]:
    """Return live brokers."""
    return {key: BrokerImage(key, "host", 9092, epoch=epoch) for key in ids}


def image(*partitions: PartitionImage, live: tuple[int, ...] = (1, 2, 3)) -> ClusterImage:
    """Return a cluster with one topic."""
    topic = TopicImage("t", b"i" * 16, partitions)
    return ClusterImage().with_brokers(brokers(*live).values()).with_topics([topic])


def is_clean(_topic: str) -> bool:
    """Return false: no topic allows an unclean election."""
    return False


P0 = PartitionImage(0, 1, 5, isr=(1, 2, 3), replicas=(1, 2, 3), partition_epoch=8)


def only(after: ClusterImage) -> PartitionImage:
    """Return the one partition."""
    (partition,) = after.topics["t"].partitions
    return partition


def test_brokers_are_compared_by_id_and_epoch() -> None:
    """A broker with another epoch has restarted, so it counts as gone and as new."""
    before = brokers(1, 2)
    after = brokers(1, 3) | brokers(2, epoch=9)
    assert planner.compare_brokers(before, after) == ({2, 3}, {2})


def test_the_next_in_sync_replica_leads_when_the_leader_dies() -> None:
    """The dead leader leaves the ISR, and the leader epoch grows by one."""
    after = only(planner.plan_brokers(image(P0), brokers(2, 3), is_clean))
    assert (after.leader, after.isr, after.leader_epoch) == (2, (2, 3), 6)
    assert after.offline_replicas == (1,)


def test_a_plan_for_one_broker_looks_only_at_its_partitions() -> None:
    """Thousands of partitions on other brokers cost no calls when a broker leaves."""
    others = [PartitionImage(n, 4, 0, isr=(4, 5), replicas=(4, 5)) for n in range(1, 2000)]
    before = image(P0, *others, live=(1, 2, 3, 4, 5))
    after = brokers(2, 3, 4, 5)
    calls: list[str] = []
    sys.setprofile(lambda _, event, __: calls.append(event) if event == "call" else None)
    try:
        planned = planner.plan_brokers(before, after, is_clean, (), frozenset({1}))
    finally:
        sys.setprofile(None)
    assert planned == planner.plan_brokers(before, after, is_clean)
    assert planned.topics["t"].partitions[0].leader == 2
    assert len(calls) < 200


def test_a_replica_on_a_failed_disk_neither_leads_nor_is_in_sync() -> None:
    """The broker is alive, so it still leads its partitions on other disks."""
    other = replace(P0, partition=1)
    before = image(P0, other)
    after = planner.plan_failures(before, 1, [("t", 0), ("gone", 0)], is_clean)
    failed, served = after.topics["t"].partitions
    assert (failed.leader, failed.isr, failed.offline_replicas) == (2, (2, 3), (1,))
    assert served is other
    assert planner.plan_failures(after, 1, [("t", 0)], is_clean) is after
    assert planner.plan_elections(after, is_clean) is after


def test_a_failed_disk_with_the_last_in_sync_replica_leaves_no_leader() -> None:
    """The ISR stays, because only that replica has all records; an unclean election finds no other."""
    alone = replace(P0, replicas=(1,), isr=(1,))
    after = planner.plan_failures(image(alone), 1, [("t", 0)], lambda _: True)
    assert (only(after).leader, only(after).isr, only(after).leader_epoch) == (NO_LEADER, (1,), 6)
    (notice, *_) = planner.plan_notices(image(alone), after)
    assert [state.leader for state in notice.leaders] == [NO_LEADER]


def test_a_restart_clears_the_failed_replicas() -> None:
    """A restarted broker reports its failed directories again."""
    alone = replace(P0, replicas=(1,), isr=(1,))
    failed = planner.plan_failures(image(alone), 1, [("t", 0)], is_clean)
    after = only(planner.plan_brokers(failed, brokers(2, 3) | brokers(1, epoch=2), is_clean))
    assert (after.leader, after.failed_replicas, after.offline_replicas) == (1, (), ())


def test_a_dead_follower_leaves_the_isr() -> None:
    """The leader stays, with a new leader epoch."""
    after = only(planner.plan_brokers(image(P0), brokers(1, 2), is_clean))
    assert (after.leader, after.isr, after.leader_epoch) == (1, (1, 2), 6)


def test_without_an_in_sync_replica_there_is_no_leader_and_the_isr_stays() -> None:
    """A replica that lacks acknowledged records is not elected."""
    partition = replace(P0, isr=(1,))
    after = only(planner.plan_brokers(image(partition), brokers(2, 3), is_clean))
    assert (after.leader, after.isr, after.leader_epoch) == (NO_LEADER, (1,), 6)


def test_an_unclean_election_happens_only_if_it_is_allowed() -> None:
    """The new leader is the whole ISR and is marked as recovering."""
    partition = replace(P0, isr=(1,))
    after = only(planner.plan_brokers(image(partition), brokers(2, 3), lambda _: True))
    assert (after.leader, after.isr, after.is_recovering) == (2, (2,), True)


def test_a_broker_that_registers_leads_rather_than_a_replica_out_of_sync() -> None:
    """The last in-sync replica is elected although the topic allows unclean elections."""
    partition = replace(P0, leader=NO_LEADER, isr=(1,))
    before = image(partition, live=(2, 3))
    after = only(planner.plan_brokers(before, brokers(1, 2, 3), lambda _: True))
    assert (after.leader, after.isr, after.leader_epoch) == (1, (1,), 6)
    assert not after.is_recovering


def test_a_restarted_leader_leads_rather_than_a_replica_out_of_sync() -> None:
    """It has registered again before the controller found that its process had ended."""
    partition = replace(P0, isr=(1,))
    live = brokers(2, 3) | brokers(1, epoch=2)
    after = only(planner.plan_brokers(image(partition), live, lambda _: True))
    assert (after.leader, after.isr, after.leader_epoch) == (1, (1,), 6)


def test_an_unclean_election_waits_only_for_registered_members_of_the_isr() -> None:
    """The session of another ended process does not delay the election."""
    partition = replace(P0, isr=(1,), replicas=(1, 2, 3))
    waiting = only(planner.plan_brokers(image(partition), brokers(2, 3), lambda _: True, {1}))
    assert (waiting.leader, waiting.isr) == (NO_LEADER, (1,))
    after = only(planner.plan_brokers(image(partition), brokers(2), lambda _: True, {3}))
    assert (after.leader, after.isr) == (2, (2,))


def test_enabled_unclean_elections_of_a_topic_are_held_at_once() -> None:
    """Only the partitions of that topic change."""
    offline = replace(P0, leader=NO_LEADER, isr=(1,), offline_replicas=(1,))
    before = image(offline, live=(2, 3))
    before = before.with_topics([TopicImage("u", b"u" * 16, (offline,))])
    after = planner.plan_elections(before, lambda _: True, topic="t")
    assert (only(after).leader, only(after).is_recovering) == (2, True)
    assert after.topics["u"] is before.topics["u"]
    assert planner.plan_elections(before, lambda _: True, topic="gone") is before


def test_the_last_in_sync_replica_leads_again_when_it_returns() -> None:
    """An offline partition is online again when its broker returns."""
    partition = replace(P0, leader=NO_LEADER, isr=(1,))
    after = only(planner.plan_brokers(image(partition, live=(2,)), brokers(1, 2), is_clean))
    assert (after.leader, after.isr, after.leader_epoch) == (1, (1,), 6)


def test_a_restarted_only_replica_leads_under_the_next_epoch() -> None:
    """The restart of the only replica increases the leader epoch by one."""
    partition = replace(P0, isr=(1,), replicas=(1,))
    after = only(planner.plan_brokers(image(partition, live=(1,)), brokers(1, epoch=2), is_clean))
    assert (after.leader, after.leader_epoch) == (1, 6)


def test_a_partition_without_state_gets_its_first_leader() -> None:
    """A partition with replicas but without state is new: its first live replica leads in epoch 0."""
    new = PartitionImage(0, NO_LEADER, NO_EPOCH, isr=(), replicas=(9, 2, 3))
    after = planner.plan_elections(image(new), is_clean)
    assert (only(after).leader, only(after).isr, only(after).leader_epoch) == (2, (2, 3), 0)
    (write,) = planner.write_states(image(new), after, controller_epoch=4)
    assert [type(operation) for operation in write.operations] == [Create]
    assert write.parents == ("/brokers/topics/t/partitions/0",)


def test_a_partition_without_any_live_replica_stays_as_it_is() -> None:
    """A partition without a live replica is not written again at each election."""
    offline = replace(P0, leader=NO_LEADER, offline_replicas=(1, 2, 3))
    before = image(offline, live=(7,))
    assert planner.plan_elections(before, is_clean) is before


def test_a_state_is_written_with_the_version_it_is_based_on() -> None:
    """The write is conditional, so that a state that was changed after it was read is not
    overwritten.
    """
    before = image(P0)
    after = planner.plan_brokers(before, brokers(2, 3), is_clean)
    (write,) = planner.write_states(before, after, controller_epoch=4)
    (operation,) = write.operations
    assert isinstance(operation, SetData)
    assert (operation.path, operation.version) == ("/brokers/topics/t/partitions/0/state", 8)
    assert write.topics[0].partitions[0].partition_epoch == 9


def test_many_states_are_written_in_batches() -> None:
    """The size of a multi stays below ZooKeeper's limit."""
    partitions = tuple(replace(P0, partition=number) for number in range(500))
    topics = [TopicImage(f"t{number}", bytes([number]) * 16, partitions) for number in range(9)]
    before = ClusterImage().with_brokers(brokers(1, 2, 3).values()).with_topics(topics)
    after = planner.plan_brokers(before, brokers(2, 3), is_clean)
    sizes = [len(write.operations) for write in planner.write_states(before, after, 1)]
    assert sizes == [2000, 2000, 500]


def test_the_states_of_one_topic_are_written_in_batches() -> None:
    """A topic may have more partitions than fit into a multi; it changes with the last one."""
    partitions = tuple(replace(P0, partition=number) for number in range(4500))
    before = ClusterImage().with_brokers(brokers(1, 2, 3).values())
    before = before.with_topics([TopicImage("t", b"t" * 16, partitions)])
    after = planner.plan_brokers(before, brokers(2, 3), is_clean)
    writes = planner.write_states(before, after, 1)
    assert [len(write.operations) for write in writes] == [2000, 2000, 500]
    assert [len(write.topics) for write in writes] == [0, 0, 1]
    assert writes[-1].topics[0].partitions[0].partition_epoch == P0.partition_epoch + 1


def test_live_brokers_receive_metadata_and_replicas_their_partitions() -> None:
    """Broker 2 has a replica and receives its leader; broker 4 receives only metadata."""
    partition = replace(P0, replicas=(1, 2), isr=(1, 2))
    before = image(partition, live=(1, 2, 4))
    after = planner.plan_brokers(before, brokers(2, 4), is_clean)
    notices = {notice.broker_id: notice for notice in planner.plan_notices(before, after)}
    assert set(notices) == {2, 4}
    assert [state.leader for state in notices[2].leaders] == [2]
    assert notices[4].leaders == []
    for notice in notices.values():
        assert notice.metadata is not None
        assert notice.metadata.brokers is after.brokers
        assert [topic.name for topic in notice.metadata.changed] == ["t"]


def test_a_new_broker_receives_everything() -> None:
    """The notice contains all topics, all brokers and each of the broker's own partitions."""
    quiet = TopicImage("quiet", b"q" * 16, (replace(P0, isr=(1, 2)),))
    before = image(P0, live=(1, 2)).with_topics([quiet])
    before = planner.plan_elections(before, is_clean)
    after = planner.plan_brokers(before, brokers(1, 2, 3), is_clean)
    (_, _, notice) = planner.plan_notices(before, after, {3})
    assert notice.broker_id == 3
    assert {state.topic for state in notice.leaders} == {"t", "quiet"}
    assert notice.metadata is not None
    assert notice.metadata.is_complete
    assert {topic.name for topic in notice.metadata.changed} == {"t", "quiet"}


def test_a_new_partition_is_marked_as_new() -> None:
    """A broker with an offline directory creates logs only for new partitions."""
    before = image(P0)
    more = before.topics["t"].with_partitions([replace(P0, partition=1, leader_epoch=0)])
    after = before.with_topics([more])
    notice = planner.plan_notices(before, after)[0]
    assert [(state.partition, state.is_new) for state in notice.leaders] == [(1, True)]


def test_a_deleted_topic_is_announced_by_name() -> None:
    """Brokers remove the topic from their image; the notice contains no leaders."""
    before = image(P0)
    after = before.with_topics(deleted=["t"])
    for notice in planner.plan_notices(before, after):
        assert notice.metadata is not None
        assert list(notice.metadata.deleted) == ["t"]
        assert not notice.leaders


def test_an_unchanged_image_causes_no_notice() -> None:
    """Comparing an image with itself yields no notices."""
    assert planner.plan_notices(image(P0), image(P0).with_topics()) != []
    same = image(P0)
    assert planner.plan_notices(same, same) == []


def test_a_removal_deletes_children_before_their_parents() -> None:
    """ZooKeeper deletes only nodes without children; the deletion request is removed last."""
    paths = ["/admin/delete_topics/t", "/brokers/topics/t", "/brokers/topics/t/partitions",
             "/brokers/topics/t/partitions/0", "/brokers/topics/t/partitions/0/state"]  # fmt: skip
    (write,) = planner.write_removal(paths)
    order = [operation.path for operation in write.operations]
    assert all(isinstance(operation, Delete) for operation in write.operations)
    assert order[0] == "/brokers/topics/t/partitions/0/state"
    assert order[-2:] == ["/brokers/topics/t", "/admin/delete_topics/t"]
