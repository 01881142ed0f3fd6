"""Metadata: brokers, topics and leaders, and topics that come into being by being asked for."""

from typing import Any

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.names import GROUP_OFFSETS_TOPIC
from ottla.cluster.options.option_tables import BROKER_OPTIONS
from ottla.server import operations
from ottla.server.handlers import metadata
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.handlers.logs import NODE, OTHER, LogsBroker

VERSIONS = range(metadata.MIN_VERSION, metadata.MAX_VERSION + 1)


def request(*names: str, **fields: Any) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], **fields)


def everything(version: int) -> MetadataRequest:
    return MetadataRequest(topics=[] if version == 0 else None)


@pytest.mark.parametrize("version", VERSIONS)
async def test_all_topics_with_their_leaders(broker: LogsBroker, version: int) -> None:
    """Every version lists topics, partitions and brokers."""
    topic = broker.create("t", partitions=2, leader_epoch=4)
    broker.create(GROUP_OFFSETS_TOPIC, replicas=(NODE, OTHER))
    answer = await broker.ask(metadata, everything(version), version)
    assert [item.name for item in answer.topics] == ["t", GROUP_OFFSETS_TOPIC]
    assert [item.partition_index for item in answer.topics[0].partitions] == [0, 1]
    first = answer.topics[0].partitions[0]
    assert (first.error_code, first.leader_id, first.isr_nodes) == (0, NODE, [NODE])
    assert first.leader_epoch == (4 if version >= 7 else -1)
    assert answer.topics[1].partitions[0].replica_nodes == [NODE, OTHER]
    assert answer.topics[0].topic_id == (topic.topic_id if version >= 10 else bytes(16))
    assert [item.is_internal for item in answer.topics] == [False, version >= 1]
    assert [item.node_id for item in answer.brokers] == [NODE, OTHER]
    assert answer.controller_id == (NODE if version >= 1 else -1)
    assert answer.cluster_id == ("cluster" if version >= 2 else None)


async def test_the_broker_is_where_the_client_found_it(broker: LogsBroker) -> None:
    """Without advertised.listeners a client is told the address it came in on."""
    answer = await broker.ask(metadata, everything(9), 9)
    assert [(item.host, item.port) for item in answer.brokers] == [("127.0.0.1", 7), ("b2", 9093)]


async def test_advertised_listeners_win(broker: LogsBroker) -> None:
    """Where they are set, they are what clients are told."""
    broker.advertised = {"PLAINTEXT": ("public", 99)}
    answer = await broker.ask(metadata, everything(9), 9)
    assert next((item.host, item.port) for item in answer.brokers) == ("public", 99)


async def test_an_empty_list_means_no_topic_from_version_1(broker: LogsBroker) -> None:
    """Version 0 had no null list."""
    broker.create("t")
    assert (await broker.ask(metadata, MetadataRequest(topics=[]), 1)).topics == []
    assert len((await broker.ask(metadata, MetadataRequest(topics=[]), 0)).topics) == 1


@pytest.mark.parametrize("version", [v for v in VERSIONS if v >= 4])
async def test_a_topic_comes_into_being_when_asked_for(broker: LogsBroker, version: int) -> None:
    """The answer waits for it, so that the first use works at once."""
    answer = await broker.ask(metadata, request("new"), version)
    assert (answer.topics[0].error_code, answer.topics[0].name) == (0, "new")
    assert len(answer.topics[0].partitions) == 1


async def test_while_creation_is_off_not_even_the_brokers_own_topics_are_made(
    broker: LogsBroker,
) -> None:
    """Whoever needs them has the coordinator make them."""
    broker.options = BROKER_OPTIONS.parse({"auto.create.topics.enable": "false"})
    answer = await broker.ask(metadata, request(GROUP_OFFSETS_TOPIC), 9)
    assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answer.topics[0].is_internal


@pytest.mark.parametrize("version", [1, 13])
async def test_creation_can_be_forbidden(broker: LogsBroker, version: int) -> None:
    """By the client, or by auto.create.topics.enable."""
    if version >= 4:
        asked = request("new", allow_auto_topic_creation=False)
    else:
        broker.options = BROKER_OPTIONS.parse({"auto.create.topics.enable": "false"})
        asked = request("new")
    answer = await broker.ask(metadata, asked, version)
    assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert broker.image.topic("new") is None


@pytest.mark.parametrize("name", ["", ".", "a b", "x" * 250, "a/b"])
@pytest.mark.parametrize("is_allowed", [True, False])
async def test_impossible_names_are_refused(
    broker: LogsBroker, name: str, is_allowed: bool
) -> None:
    """INVALID_TOPIC_EXCEPTION, and nothing is created."""
    asked = request(name, allow_auto_topic_creation=is_allowed)
    answer = await broker.ask(metadata, asked, 9)
    assert answer.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert not broker.image.topics


async def test_one_refused_topic_leaves_the_others_alone(broker: LogsBroker) -> None:
    """Each topic has its own error."""
    broker.create("t")
    answer = await broker.ask(metadata, request("t", "a b", "new"), 9)
    codes = [item.error_code for item in answer.topics]
    assert codes == [0, ErrorCode.INVALID_TOPIC_EXCEPTION, 0]


async def test_what_the_controller_refuses_is_told(broker: LogsBroker) -> None:
    """The controller's reason becomes the topic's error."""
    broker.controller_refuses = ApiError(ErrorCode.INVALID_REPLICATION_FACTOR)
    answer = await broker.ask(metadata, request("new"), 9)
    assert answer.topics[0].error_code == ErrorCode.INVALID_REPLICATION_FACTOR


async def test_a_slow_controller_is_not_waited_for_for_ever(
    broker: LogsBroker, monkeypatch: Any
) -> None:
    """LEADER_NOT_AVAILABLE makes the client ask again."""
    monkeypatch.setattr(metadata, "_CREATION_SECONDS", 0.0)
    answer = await broker.ask(metadata, request("new"), 9)
    assert answer.topics[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE


async def test_topics_are_found_by_id_from_version_12(broker: LogsBroker) -> None:
    """An id that is not known is UNKNOWN_TOPIC_ID, without a name."""
    topic = broker.create("t")
    ids = [topic.topic_id, bytes(15) + b"\x09"]
    asked = MetadataRequest(topics=[MetadataRequestTopic(topic_id=each, name=None) for each in ids])
    answer = await broker.ask(metadata, asked, 12)
    assert [item.name for item in answer.topics] == ["t", None]
    assert [item.error_code for item in answer.topics] == [0, ErrorCode.UNKNOWN_TOPIC_ID]
    assert answer.topics[1].topic_id == ids[1]


async def test_each_topic_is_told_once(broker: LogsBroker) -> None:
    """However often it is asked for; where there are ids, names alone are not looked at."""
    topic = broker.create("t")
    broker.create("u")
    answer = await broker.ask(metadata, request("t", "u", "t"), 12)
    assert [item.name for item in answer.topics] == ["t", "u"]
    by_id = MetadataRequestTopic(name=None, topic_id=topic.topic_id)
    both = MetadataRequest(topics=[by_id, MetadataRequestTopic(name="u"), by_id])
    answer = await broker.ask(metadata, both, 12)
    assert [item.name for item in answer.topics] == ["t"]


@pytest.mark.parametrize("version", [10, 11])
async def test_ids_are_refused_before_version_12(broker: LogsBroker, version: int) -> None:
    """INVALID_REQUEST for all that is asked, though the request has room for ids."""
    topic = broker.create("t")
    named = MetadataRequestTopic(name="t")
    for odd in (
        MetadataRequestTopic(name="t", topic_id=topic.topic_id),
        MetadataRequestTopic(name=None),
    ):
        answer = await broker.ask(metadata, MetadataRequest(topics=[named, odd]), version)
        assert {item.error_code for item in answer.topics} == {ErrorCode.INVALID_REQUEST}
        assert (answer.brokers, answer.cluster_id) == ([], None)


async def test_a_partition_without_leader_says_so(broker: LogsBroker) -> None:
    """LEADER_NOT_AVAILABLE, and the replicas that are gone are offline."""
    broker.create("t", leader=9, replicas=(NODE, 9))
    answer = await broker.ask(metadata, request("t"), 9)
    partition = answer.topics[0].partitions[0]
    assert partition.error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert (partition.leader_id, partition.offline_replicas) == (-1, [9])


@pytest.mark.parametrize(
    ("version", "code"), [(5, "LEADER_NOT_AVAILABLE"), (6, "LISTENER_NOT_FOUND")]
)
async def test_a_leader_without_this_listener_says_so(
    broker: LogsBroker, version: int, code: str
) -> None:
    """LISTENER_NOT_FOUND exists since version 6."""
    broker.create("t", leader=OTHER, replicas=(NODE, OTHER))
    context = broker.context(metadata, version, listener="INTERNAL")
    answer = metadata.handle(context, request("t"))
    assert answer.topics[0].partitions[0].error_code == ErrorCode[code]
    assert [item.node_id for item in answer.brokers] == [NODE]


async def test_authorized_operations_are_told_when_asked_for(broker: LogsBroker) -> None:
    """Without an authorizer everything is allowed (KIP-430)."""
    broker.create("t")
    asked = request(
        "t", include_cluster_authorized_operations=True, include_topic_authorized_operations=True
    )
    answer = await broker.ask(metadata, asked, 8)
    assert answer.cluster_authorized_operations == operations.ON_CLUSTER
    assert answer.topics[0].topic_authorized_operations == operations.ON_TOPIC
    missing = request(
        "no", allow_auto_topic_creation=False, include_topic_authorized_operations=True
    )
    answer = await broker.ask(metadata, missing, 8)
    assert answer.topics[0].topic_authorized_operations == operations.ON_TOPIC
    plain = await broker.ask(metadata, request("t"), 8)
    assert plain.topics[0].topic_authorized_operations == operations.NOT_ASKED
