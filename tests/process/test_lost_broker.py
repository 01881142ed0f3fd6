"""A broker that never returns while deletions and moves of its replicas are pending."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin import replicas, topics
from tests.process.broker_cluster import BrokerCluster, campaign, wait
from tests.process.load import Load

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
TOPIC, DELETED, MOVED = "orders", "deleted", "moved"
_LOST = 4


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[BrokerCluster]:
    """Four brokers: the last one is lost."""
    with BrokerCluster(tmp_path, count=4) as running:
        yield running


def replicas_of(cluster: BrokerCluster, topic: str) -> list[list[int]]:
    """Return the replicas of each partition."""
    return [list(row.replicas) for row in cluster.partitions(topic)]


@campaign
def test_broker_that_never_returns_blocks_nothing(
    cluster: BrokerCluster,
) -> None:
    """Moves to it are cancelled, moves away from it finish, topics are created and written, also
    with the name of a deleted one, and an empty broker takes its id over.
    """
    for name in (TOPIC, DELETED, MOVED):
        cluster.create_topic(name, partitions=8)
    with Load(cluster.bootstrap, TOPIC, partitions=8, rate=200) as load:
        load.wait_for(300)
        before = replicas_of(cluster, MOVED)
        pending = next(number for number, row in enumerate(before) if _LOST not in row)
        # It does not fetch the replica that it is to have, and is never heard of again.
        cluster.pause(_LOST)
        with cluster.admin(timeout_s=20) as brokers:
            target = [*before[pending][:2], _LOST]
            replicas.alter_partition_reassignments(brokers, {(MOVED, pending): target})
            cluster.kill(_LOST)
            load.wait_for(300)
            wait(lambda: _LOST not in cluster.known(), "the broker is gone")
            topics.delete_topic(brokers, DELETED)
            wait(lambda: _is_created(cluster), "the name is free")
            assert set(replicas.list_partition_reassignments(brokers)) == {(MOVED, pending)}
            replicas.alter_partition_reassignments(brokers, {(MOVED, pending): None})
            assert not replicas.list_partition_reassignments(brokers)
            assert replicas_of(cluster, MOVED)[pending] == before[pending]
            check_moves(cluster)
            topics.create_topic(brokers, "new", partitions=6, replication_factor=3)
            cluster.wait_in_sync("new")
            assert not any(_LOST in row for row in replicas_of(cluster, "new"))
            controller = cluster.controller()
            cluster.kill(controller)
            wait(lambda: cluster.controller() not in (controller, -1), "another controller")
            load.wait_for(300)
            cluster.start(controller)
        # A new machine with the id of the lost one, and an empty disk.
        cluster.data(_LOST).rename(cluster.folder / "lost")
        cluster.start(_LOST)
        for name in (TOPIC, MOVED, DELETED):
            cluster.wait_in_sync(name)
    load.check(cluster.bootstrap)
    cluster.verify(TOPIC, MOVED)


def _is_created(cluster: BrokerCluster) -> bool:
    with cluster.admin(timeout_s=20) as brokers:
        try:
            topics.create_topic(brokers, DELETED, partitions=2, replication_factor=3)
        except ApiError as error:
            assert error.code is ErrorCode.TOPIC_ALREADY_EXISTS
            return False
    return True


def check_moves(cluster: BrokerCluster) -> None:
    """Refuse a move to the lost broker, and finish one that leaves it."""
    before = replicas_of(cluster, MOVED)
    on_lost = next(number for number, row in enumerate(before) if _LOST in row)
    elsewhere = next(number for number, row in enumerate(before) if _LOST not in row)
    remaining = [number for number in cluster.ids if number != _LOST]
    with cluster.admin(timeout_s=20) as brokers:
        with pytest.raises(ApiError) as caught:
            replicas.alter_partition_reassignments(
                brokers, {(MOVED, elsewhere): [*before[elsewhere][:2], _LOST]}
            )
        assert caught.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        replicas.alter_partition_reassignments(brokers, {(MOVED, on_lost): remaining})
        wait(
            lambda: sorted(replicas_of(cluster, MOVED)[on_lost]) == remaining,
            "the move away from the lost broker",
        )
