"""A client that may write to its topics tries to be more: names that leave the log directory, names
that collide, fetches of a follower, and requests of brokers (scenario 25).

Guessed passwords are in tests/robustness/test_strangers.py.
"""

from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.testing.sim.client import SimConnection
from ottla.wire.messages import (
    allocate_producer_ids,
    alter_partition,
    controlled_shutdown,
    create_acls,
    create_topics,
    fetch,
    leader_and_isr,
    stop_replica,
    update_metadata,
)
from ottla.wire.schema import Message
from tests.integration.server.audit.audited_broker import AuditedBroker, ask, run
from tests.integration.server.audit.test_denials import denials, write

_ALL, _TOPIC, _ALLOW = 2, 2, 3
HOSTILE_NAMES = ("../x", "a/b", "/etc/x", "a\0b", ".", "..", "", "x" * 250, "a\nb", "t/../../x")
FIRST_VERSION_WITH_ERROR = 7
# From version 15 on (KIP-903).
FOLLOWER: dict[str, Any] = {"replica_state": fetch.ReplicaState(replica_id=2, replica_epoch=1)}
REQUESTS_OF_BROKERS: dict[str, tuple[Message, int]] = {
    "LEADER_AND_ISR": (leader_and_isr.LeaderAndIsrRequest(controller_id=1), 7),
    "STOP_REPLICA": (stop_replica.StopReplicaRequest(controller_id=1), 4),
    "UPDATE_METADATA": (update_metadata.UpdateMetadataRequest(controller_id=1), 8),
    "CONTROLLED_SHUTDOWN": (controlled_shutdown.ControlledShutdownRequest(broker_id=1), 3),
    "ALTER_PARTITION": (alter_partition.AlterPartitionRequest(broker_id=1), 3),
    "ALLOCATE_PRODUCER_IDS": (
        allocate_producer_ids.AllocateProducerIdsRequest(broker_id=1),
        0,
    ),
}


async def log_in_with_topics(broker: AuditedBroker) -> SimConnection:
    """Return a connection of ann, who may do everything to topics, and nothing else."""
    root = await broker.log_in("root")
    row = create_acls.AclCreation(
        resource_type=_TOPIC,
        resource_name="*",
        principal="User:ann",
        host="*",
        operation=_ALL,
        permission_type=_ALLOW,
    )
    await ask(root, create_acls.CreateAclsRequest(creations=[row]), 3)
    return await broker.log_in("ann")


async def create(connection: SimConnection, name: str) -> ErrorCode:
    """Create a topic; return the error code."""
    row = create_topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    request = create_topics.CreateTopicsRequest(topics=[row], timeout_ms=5000)
    response = await ask(connection, request, 7)
    return ErrorCode(response.topics[0].error_code)


def folders(broker: AuditedBroker) -> set[str]:
    """Return the names in the log directories and in the folders above them."""
    files = broker.machine.files
    return {
        f"{folder}/{name}"
        for folder in ("", "/data", "/data/one", "/data/two")
        for name in files.list(folder or "/")
    }


def test_names_that_leave_the_log_directory_create_nothing() -> None:
    """Each is INVALID_TOPIC_EXCEPTION, and no file appears, inside of the directory or outside."""

    async def scenario(broker: AuditedBroker) -> None:
        ann = await log_in_with_topics(broker)
        assert await create(ann, "harmless") is ErrorCode.NONE
        before = folders(broker)
        for name in HOSTILE_NAMES:
            assert await create(ann, name) is ErrorCode.INVALID_TOPIC_EXCEPTION, name
            assert await write(ann, name), name
        assert folders(broker) == before

    run(scenario)


def test_names_that_collide_in_metrics_are_refused() -> None:
    """A dot and an underscore are the same in the name of a metric."""

    async def scenario(broker: AuditedBroker) -> None:
        ann = await log_in_with_topics(broker)
        assert await create(ann, "a.b") is ErrorCode.NONE
        assert await create(ann, "a_b") is ErrorCode.INVALID_TOPIC_EXCEPTION

    run(scenario)


@pytest.mark.parametrize("version", [4, 11, 15, 17])
def test_fetch_in_the_name_of_a_follower_is_refused(version: int) -> None:
    """It would move the high watermark, and read what is not committed. The refusal is written.

    A response of old versions has no place for the error: the connection is closed.
    """

    async def scenario(broker: AuditedBroker) -> None:
        ann = await log_in_with_topics(broker)
        assert await create(ann, "t") is ErrorCode.NONE
        assert await write(ann, "t") == 0
        assert broker.node is not None
        topic = broker.node.broker.image.topic("t")
        assert topic is not None
        partition = fetch.FetchPartition(fetch_offset=0, partition_max_bytes=1000)
        request = fetch.FetchRequest(
            max_wait_ms=0,
            topics=[fetch.FetchTopic(topic="t", topic_id=topic.topic_id, partitions=[partition])],
            **(FOLLOWER if version >= 15 else {"replica_id": 2}),
        )
        if version < FIRST_VERSION_WITH_ERROR:
            with pytest.raises(ConnectionError):
                await ask(ann, request, version)
            return
        response = await ask(ann, request, version)
        assert ErrorCode(response.error_code) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert response.responses == []

    (line,) = denials(run(scenario))
    assert (line["principal"], line["api"], line["operation"]) == (
        "User:ann",
        "FETCH",
        "CLUSTER_ACTION",
    )


@pytest.mark.parametrize("name", REQUESTS_OF_BROKERS)
def test_requests_of_brokers_are_refused(name: str) -> None:
    """They change leaders and metadata. Each refusal is written."""
    request, version = REQUESTS_OF_BROKERS[name]

    async def scenario(broker: AuditedBroker) -> None:
        ann = await log_in_with_topics(broker)
        response: Any = await ask(ann, request, version)
        assert ErrorCode(response.error_code) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    (line,) = denials(run(scenario))
    assert (line["principal"], line["api"]) == ("User:ann", name)
