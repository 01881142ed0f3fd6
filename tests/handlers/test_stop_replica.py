"""StopReplica: replicas that this broker no longer has."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.server.handlers import stop_replica
from ottla.wire.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from tests.handlers.logs import OTHER, LogsBroker
from tests.handlers.peers import accept_peer

VERSIONS = range(stop_replica.MIN_VERSION, stop_replica.MAX_VERSION + 1)


@pytest.fixture
def broker(broker: LogsBroker) -> LogsBroker:
    """Broker 1 in epoch 10, which receives notices."""
    accept_peer(broker, OTHER)
    return broker


def request(*, delete: bool, leader_epoch: int = -1, broker_epoch: int = 10) -> StopReplicaRequest:
    """Return a request for partition 0 of topic t."""
    state = StopReplicaPartitionState(
        partition_index=0, leader_epoch=leader_epoch, delete_partition=delete
    )
    return StopReplicaRequest(
        controller_id=OTHER,
        controller_epoch=2,
        broker_epoch=broker_epoch,
        topic_states=[StopReplicaTopicState(topic_name="t", partition_states=[state])],
    )


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("delete", [False, True])
async def test_a_replica_is_stopped(broker: LogsBroker, version: int, delete: bool) -> None:
    """Its log remains unless it is to be deleted."""
    broker.create("t")
    response = await broker.ask(stop_replica, request(delete=delete), version)
    (item,) = response.partition_errors
    assert (response.error_code, item.topic_name, item.partition_index, item.error_code) == (
        0,
        "t",
        0,
        0,
    )
    assert broker.replicas.all_partitions() == []
    assert (broker.directories.get("t", 0) is None) == delete


async def test_an_unknown_replica_is_no_error(broker: LogsBroker) -> None:
    """The controller may repeat a request."""
    response = await broker.ask(stop_replica, request(delete=True, leader_epoch=-2), 4)
    assert [item.error_code for item in response.partition_errors] == [0]


async def test_a_later_leader_epoch_is_not_stopped(broker: LogsBroker) -> None:
    """The request is older than the assignment of the replica (KIP-570)."""
    broker.create("t", leader_epoch=3)
    response = await broker.ask(stop_replica, request(delete=True, leader_epoch=2), 4)
    (item,) = response.partition_errors
    assert item.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert broker.replicas.get("t", 0).is_leader


async def test_a_stale_broker_epoch_is_fenced(broker: LogsBroker) -> None:
    """The request is for a former life of this broker."""
    broker.create("t")
    response = await broker.ask(stop_replica, request(delete=True, broker_epoch=9), 4)
    assert response.error_code == ErrorCode.STALE_BROKER_EPOCH
    assert broker.replicas.get("t", 0).is_leader


@pytest.mark.parametrize("peer", [-1, 3])
async def test_only_the_proven_controller_is_served(broker: LogsBroker, peer: int) -> None:
    """A client, or another broker than the request claims, changes nothing."""
    accept_peer(broker, peer)
    response = await broker.ask(stop_replica, request(delete=True), 4)
    assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
