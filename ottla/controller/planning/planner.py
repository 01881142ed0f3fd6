"""Elections, writes and notices after brokers registered, left or lost a log directory. Pure.

Every function takes images and returns images, writes or notices; the term performs them. Brokers
are sent the difference between two images, so that no change can be forgotten. Follows
KafkaController.onBrokerStartup, onBrokerFailure, onReplicasBecomeOffline and
ControllerBrokerRequestBatch.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ottla.cluster import election
from ottla.cluster.image import (
    NO_LEADER,
    BrokerImage,
    ClusterImage,
    PartitionImage,
    PartitionState,
    TopicImage,
)
from ottla.cluster.zk.port import Delete, Operation, SetData
from ottla.cluster.znodes import PartitionsNode, PartitionStateNode
from ottla.controller.planning.creation import (
    Write,
    create_state,
    leader_and_isr,
    new_partition,
)
from ottla.controller.planning.machines import PartitionStatus, move_partition, partition_status
from ottla.controller.planning.notices import MetadataUpdate, Notice

# Operations per multi: ZooKeeper rejects packets above one megabyte.
OPERATIONS_MAX = 2000

IsUnclean = Callable[[str], bool]


class BrokerChange(NamedTuple):
    """Brokers that registered and brokers whose registration ended; a restarted broker has a new
    epoch and is in both.
    """

    registered: frozenset[int]
    removed: frozenset[int]


def compare_brokers(
    before: Mapping[int, BrokerImage], after: Mapping[int, BrokerImage]
) -> BrokerChange:
    """Return which brokers registered or left between two reads of the registrations."""
    removed = {
        key
        for key, broker in before.items()
        if key not in after or after[key].epoch != broker.epoch
    }
    registered = {
        key
        for key, broker in after.items()
        if key not in before or before[key].epoch != broker.epoch
    }
    return BrokerChange(frozenset(registered), frozenset(removed))


def plan_brokers(
    image: ClusterImage,
    after: Mapping[int, BrokerImage],
    is_unclean: IsUnclean,
    lingering: Collection[int] = (),
    affected: frozenset[int] | None = None,
) -> ClusterImage:
    """Return the image after brokers registered or left, with new leaders for their partitions.

    A restarted broker is treated as one that left first: it may lose leaderships, and its replicas
    start over. `lingering` are registered brokers whose process has ended. If the image is the
    result of a former plan, only partitions of the `affected` brokers and those without a leader
    can change.
    """
    change = compare_brokers(image.brokers, after)
    # Even if no broker left: `image` may have been loaded without the restarted ones. A broker that
    # registers now may be the last member of an ISR, so unclean elections wait until it is counted.
    without_removed = _elect_where_needed(
        _without_failures(image, change).with_brokers(removed=change.removed),
        _never,
        lingering,
        affected,
    )
    joined = without_removed.with_brokers(after[key] for key in sorted(change.registered))
    return _in_one_step(image, _elect_where_needed(joined, is_unclean, lingering, affected))


def _never(_topic: str) -> bool:
    return False


def _without_failures(image: ClusterImage, change: BrokerChange) -> ClusterImage:
    """Return the image without failures from before a restart: the broker reports them again."""
    forgotten = change.registered | change.removed
    changed = []
    for topic in image.topics.values():
        failed = [partition for partition in topic.partitions if partition.failed_replicas]
        restarted = [
            replace(
                partition,
                failed_replicas=tuple(
                    key for key in partition.failed_replicas if key not in forgotten
                ),
            )
            for partition in failed
            if not forgotten.isdisjoint(partition.failed_replicas)
        ]
        if restarted:
            changed.append(topic.with_partitions(restarted))
    return image.with_topics(changed) if changed else image


def plan_failures(
    image: ClusterImage,
    broker_id: int,
    failed: Iterable[tuple[str, int]],
    is_unclean: IsUnclean,
    lingering: Collection[int] = (),
) -> ClusterImage:
    """Return the image after the log directory of these replicas of a broker failed (KIP-112).

    Replicas that are already marked as failed change nothing; they stay marked until their broker
    restarts.
    """
    by_topic: dict[str, list[PartitionImage]] = {}
    for name, number in failed:
        partition = image.partition(name, number)
        if partition is None or broker_id not in partition.replicas:
            continue
        if broker_id not in partition.failed_replicas:
            failed_partition = replace(
                partition, failed_replicas=(*partition.failed_replicas, broker_id)
            )
            by_topic.setdefault(name, []).append(failed_partition)
    if not by_topic:
        return image
    topics = [
        image.topics[name].with_partitions(partitions) for name, partitions in by_topic.items()
    ]
    return _elect_where_needed(image.with_topics(topics), is_unclean, lingering)


def _in_one_step(before: ClusterImage, after: ClusterImage) -> ClusterImage:
    """Return `after` with each leader epoch at most one higher than `before`: no broker has seen
    the epochs in between.
    """
    changed = []
    for name, topic in after.topics.items():
        former = before.topics[name]
        if former is topic:
            continue
        changed.append(
            topic.with_partitions(
                replace(partition, leader_epoch=earlier.leader_epoch + 1)
                for partition in topic.differences(former)
                for earlier in (former.partitions[partition.partition],)
                if partition.leader_epoch > earlier.leader_epoch + 1
            )
        )
    return after.with_topics(changed) if changed else after


def plan_elections(
    image: ClusterImage,
    is_unclean: IsUnclean,
    lingering: Collection[int] = (),
    topic: str | None = None,
) -> ClusterImage:
    """Return the image with a leader for every partition that needs one and can have one.

    `topic` None means every topic; a topic that does not exist changes nothing.
    """
    if topic is None:
        return _elect_where_needed(image, is_unclean, lingering)
    former = image.topic(topic)
    changed = None if former is None else _with_leaders(former, image, is_unclean, lingering)
    return image if changed is None else image.with_topics([changed])


def _elect_where_needed(
    image: ClusterImage,
    is_unclean: IsUnclean,
    lingering: Collection[int],
    affected: frozenset[int] | None = None,
) -> ClusterImage:
    changed = [
        elected
        for topic in image.topics.values()
        if (elected := _with_leaders(topic, image, is_unclean, lingering, affected)) is not None
    ]
    return image.with_topics(changed) if changed else image


def _with_leaders(
    topic: TopicImage,
    image: ClusterImage,
    is_unclean: IsUnclean,
    lingering: Collection[int],
    affected: frozenset[int] | None = None,
) -> TopicImage | None:
    """Return the topic after its elections; None if no partition changes."""

    def may_be_unclean(partition: PartitionImage) -> bool:
        # A registered member of the ISR may return with every acknowledged record.
        return is_unclean(topic.name) and not any(key in lingering for key in partition.isr)

    candidates: Iterable[PartitionImage] = topic.partitions
    if affected is not None:
        candidates = [
            partition
            for partition in topic.partitions
            if partition.leader == NO_LEADER or not affected.isdisjoint(partition.replicas)
        ]
    partitions = [
        after
        for partition in candidates
        if (after := _partition_elected(partition, image.brokers, may_be_unclean)) is not partition
    ]
    return topic.with_partitions(partitions) if partitions else None


def _partition_elected(
    partition: PartitionImage,
    brokers: Mapping[int, BrokerImage],
    may_be_unclean: Callable[[PartitionImage], bool],
) -> PartitionImage:
    """Return the partition with dead replicas removed from its ISR and, if possible, a leader."""
    status = partition_status(partition, brokers)
    if status is PartitionStatus.NEW:
        return _first_leader(partition, brokers)
    live = partition.live(brokers)
    offline = tuple(replica for replica in partition.replicas if replica not in live)
    if offline != partition.offline_replicas:
        partition = replace(partition, offline_replicas=offline)
    if status is PartitionStatus.ONLINE:
        return _without_dead(partition, live)
    elected = election.elect_for_offline(
        partition.replicas,
        leader_and_isr(partition),
        live,
        allow_unclean=may_be_unclean(partition),
    )
    if elected is None:
        if partition.leader == NO_LEADER:
            return partition
        move_partition(status, PartitionStatus.OFFLINE)
        # The ISR stays as it is: only its members hold every acknowledged record.
        return _led(partition, NO_LEADER, partition.isr, is_recovering=partition.is_recovering)
    move_partition(status, PartitionStatus.ONLINE)
    return _led(partition, elected.leader, elected.isr, is_recovering=elected.is_recovering)


def _first_leader(partition: PartitionImage, brokers: Mapping[int, BrokerImage]) -> PartitionImage:
    if not any(replica in brokers for replica in partition.replicas):
        return partition
    move_partition(PartitionStatus.NEW, PartitionStatus.ONLINE)
    return new_partition(partition.partition, partition.replicas, brokers)


def _without_dead(partition: PartitionImage, live: Collection[int]) -> PartitionImage:
    isr = tuple(member for member in partition.isr if member in live)
    if isr == partition.isr:
        return partition
    move_partition(PartitionStatus.ONLINE, PartitionStatus.ONLINE)
    return _led(partition, partition.leader, isr, is_recovering=partition.is_recovering)


def _led(
    partition: PartitionImage, leader: int, isr: tuple[int, ...], *, is_recovering: bool
) -> PartitionImage:
    # Every decision increments the epoch, so that replicas recognise the latest one.
    return replace(
        partition,
        leader=leader,
        leader_epoch=partition.leader_epoch + 1,
        isr=isr,
        is_recovering=is_recovering,
    )


def write_states(before: ClusterImage, after: ClusterImage, controller_epoch: int) -> list[Write]:
    """Return the writes that change the partition states from one image to another, in batches.

    The topics of a write carry the partition epochs that its nodes will have.
    """
    writes: list[Write] = []
    batch = Write(())
    for name, topic in after.topics.items():
        if before.topics.get(name) is topic:
            continue
        write = topic_states(before.topics[name], topic, controller_epoch)
        batch = Write(
            batch.operations + write.operations,
            batch.topics + write.topics,
            batch.parents + write.parents,
        )
        if len(batch.operations) >= OPERATIONS_MAX:
            writes += _split(batch)
            batch = Write(())
    return [*writes, batch] if batch.topics else writes


def _split(write: Write) -> Iterator[Write]:
    """Yield the parts of a write that fit into a multi; the topics are changed by the last one."""
    starts = range(0, len(write.operations), OPERATIONS_MAX)
    parents = write.parents
    for start in starts:
        operations = write.operations[start : start + OPERATIONS_MAX]
        yield Write(operations, write.topics if start == starts[-1] else (), parents)
        parents = ()


def topic_states(before: TopicImage, after: TopicImage, controller_epoch: int) -> Write:
    """Return the write of those partition states of a topic that differ."""
    operations: list[Operation] = []
    written: list[PartitionImage] = []
    parents: list[str] = []
    for partition in after.differences(before):
        former = before.partitions[partition.partition]
        if leader_and_isr(former) == leader_and_isr(partition):
            continue
        if partition_status(former, ()) is PartitionStatus.NEW:
            parents.append(PartitionsNode.partition_path(after.name, partition.partition))
            operations.append(create_state(after.name, partition, controller_epoch))
            continue
        operations.append(
            SetData(
                PartitionStateNode.path(after.name, partition.partition),
                PartitionStateNode.encode(leader_and_isr(partition), controller_epoch),
                former.partition_epoch,
            )
        )
        written.append(replace(partition, partition_epoch=former.partition_epoch + 1))
    return Write(tuple(operations), (after.with_partitions(written),), tuple(parents))


def plan_notices(
    before: ClusterImage, after: ClusterImage, registered: Collection[int] = ()
) -> list[Notice]:
    """Return the notice that takes each live broker from one image to another.

    A broker that just registered receives the complete image, its own partitions first.
    """
    changed = [
        topic for name, topic in after.topics.items() if before.topics.get(name) is not topic
    ]
    deleted = [name for name in before.topics if name not in after.topics]
    brokers = after.brokers if before.brokers is not after.brokers else None
    is_other_term = before.controller_epoch != after.controller_epoch
    update = MetadataUpdate(brokers, changed, deleted)
    fresh = _by_replica(_new_states(before, changed))
    complete = _by_replica(_all_states(after)) if registered else {}
    everything = MetadataUpdate(after.brokers, tuple(after.topics.values()), (), is_complete=True)
    notices = []
    for broker_id in after.brokers:
        if broker_id in registered:
            states = complete.get(broker_id, [])
            notices.append(Notice(broker_id=broker_id, leaders=states, metadata=everything))
        elif changed or deleted or brokers is not None or is_other_term:
            states = fresh.get(broker_id, [])
            notices.append(Notice(broker_id=broker_id, leaders=states, metadata=update))
    return notices


def _new_states(before: ClusterImage, changed: Iterable[TopicImage]) -> list[PartitionState]:
    """Return the states of the partitions that replicas must act on."""
    states: list[PartitionState] = []
    for topic in changed:
        former = before.topics.get(topic.name)
        if former is None:
            states += topic.states(is_new=True)
            continue
        for partition in topic.differences(former):
            earlier = former.partition(partition.partition)
            is_new = partition_status(earlier, ()) in (
                PartitionStatus.NON_EXISTENT,
                PartitionStatus.NEW,
            )
            # Every decision of the controller has a new leader epoch. Offline replicas and an ISR
            # that the leader proposed itself are metadata.
            if earlier is None or is_new or _decision(partition) != _decision(earlier):
                states.append(topic.state(partition, is_new=is_new))
    return states


def _decision(partition: PartitionImage) -> tuple[object, ...]:
    return (
        partition.leader_epoch,
        partition.leader,
        partition.replicas,
        partition.adding_replicas,
        partition.removing_replicas,
    )


def states_of(broker_id: int, image: ClusterImage) -> list[PartitionState]:
    """Return the state of every partition that has a replica on this broker."""
    return [state for state in _all_states(image) if broker_id in state.replicas]


def _all_states(image: ClusterImage) -> Iterator[PartitionState]:
    for topic in image.topics.values():
        yield from topic.states()


def _by_replica(states: Iterable[PartitionState]) -> dict[int, list[PartitionState]]:
    """Return the states by the brokers that have a replica, in one pass over the states."""
    by_replica: dict[int, list[PartitionState]] = {}
    for state in states:
        for broker_id in state.replicas:
            by_replica.setdefault(broker_id, []).append(state)
    return by_replica


def write_removal(paths: Sequence[str]) -> list[Write]:
    """Return the writes that remove nodes, children before parents.

    The first path, the node of the deletion request, is removed last, so that an interrupted
    removal is resumed.
    """
    deepest_first = sorted(reversed(paths), key=lambda path: path.count("/"), reverse=True)
    return [
        Write(tuple(Delete(path) for path in deepest_first[start : start + OPERATIONS_MAX]))
        for start in range(0, len(deepest_first), OPERATIONS_MAX)
    ]
