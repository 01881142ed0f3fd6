"""Metadata: brokers, topics and leaders, and topic creation on first use."""

import asyncio
from typing import Any

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.image import BrokerImage
from ottla.cluster.names import GROUP_OFFSETS_TOPIC
from ottla.cluster.options.option_tables import BROKER_OPTIONS
from ottla.server import current, operations
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
    """Every version returns topics, partitions and brokers."""
    topic = broker.create("t", partitions=2, leader_epoch=4)
    broker.create(GROUP_OFFSETS_TOPIC, replicas=(NODE, OTHER))
    response = await broker.ask(metadata, everything(version), version)
    assert [item.name for item in response.topics] == ["t", GROUP_OFFSETS_TOPIC]
    assert [item.partition_index for item in response.topics[0].partitions] == [0, 1]
    first = response.topics[0].partitions[0]
    assert (first.error_code, first.leader_id, first.isr_nodes) == (0, NODE, [NODE])
    assert first.leader_epoch == (4 if version >= 7 else -1)
    assert response.topics[1].partitions[0].replica_nodes == [NODE, OTHER]
    assert response.topics[0].topic_id == (topic.topic_id if version >= 10 else bytes(16))
    assert [item.is_internal for item in response.topics] == [False, version >= 1]
    assert [item.node_id for item in response.brokers] == [NODE, OTHER]
    assert response.controller_id == (NODE if version >= 1 else -1)
    assert response.cluster_id == ("cluster" if version >= 2 else None)


async def test_broker_has_the_address_of_the_connection(broker: LogsBroker) -> None:
    """Without advertised.listeners a client gets the address of its connection."""
    response = await broker.ask(metadata, everything(9), 9)
    assert [(item.host, item.port) for item in response.brokers] == [("127.0.0.1", 7), ("b2", 9093)]


async def test_advertised_listeners_have_precedence(broker: LogsBroker) -> None:
    """With advertised.listeners clients get these addresses."""
    broker.advertised = {"PLAINTEXT": ("public", 99)}
    response = await broker.ask(metadata, everything(9), 9)
    assert next((item.host, item.port) for item in response.brokers) == ("public", 99)


async def test_an_empty_list_means_no_topic_from_version_1(broker: LogsBroker) -> None:
    """Version 0 had no null list."""
    broker.create("t")
    assert (await broker.ask(metadata, MetadataRequest(topics=[]), 1)).topics == []
    assert len((await broker.ask(metadata, MetadataRequest(topics=[]), 0)).topics) == 1


@pytest.mark.parametrize("version", [v for v in VERSIONS if v >= 4])
async def test_topic_is_created_on_request(broker: LogsBroker, version: int) -> None:
    """The response waits for the creation, so that the first use succeeds at once."""
    response = await broker.ask(metadata, request("new"), version)
    assert (response.topics[0].error_code, response.topics[0].name) == (0, "new")
    assert len(response.topics[0].partitions) == 1


async def test_disabled_creation_includes_internal_topics(
    broker: LogsBroker,
) -> None:
    """The coordinator creates internal topics when it needs them."""
    broker.options = BROKER_OPTIONS.parse({"auto.create.topics.enable": "false"})
    response = await broker.ask(metadata, request(GROUP_OFFSETS_TOPIC), 9)
    assert response.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert response.topics[0].is_internal


@pytest.mark.parametrize("version", [1, 13])
async def test_creation_can_be_disabled(broker: LogsBroker, version: int) -> None:
    """The client can forbid it, and so can auto.create.topics.enable."""
    if version >= 4:
        metadata_request = request("new", allow_auto_topic_creation=False)
    else:
        broker.options = BROKER_OPTIONS.parse({"auto.create.topics.enable": "false"})
        metadata_request = request("new")
    response = await broker.ask(metadata, metadata_request, version)
    assert response.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert broker.image.topic("new") is None


@pytest.mark.parametrize("name", ["", ".", "a b", "x" * 250, "a/b"])
@pytest.mark.parametrize("is_allowed", [True, False])
async def test_invalid_names_are_rejected(broker: LogsBroker, name: str, is_allowed: bool) -> None:
    """The error is INVALID_TOPIC_EXCEPTION, and nothing is created."""
    metadata_request = request(name, allow_auto_topic_creation=is_allowed)
    response = await broker.ask(metadata, metadata_request, 9)
    assert response.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert not broker.image.topics


async def test_rejected_topic_does_not_affect_the_others(broker: LogsBroker) -> None:
    """Each topic has its own error."""
    broker.create("t")
    response = await broker.ask(metadata, request("t", "a b", "new"), 9)
    codes = [item.error_code for item in response.topics]
    assert codes == [0, ErrorCode.INVALID_TOPIC_EXCEPTION, 0]


async def test_error_of_the_controller_is_returned(broker: LogsBroker) -> None:
    """The controller's error becomes the topic's error."""
    broker.controller_refuses = ApiError(ErrorCode.INVALID_REPLICATION_FACTOR)
    response = await broker.ask(metadata, request("new"), 9)
    assert response.topics[0].error_code == ErrorCode.INVALID_REPLICATION_FACTOR


async def test_wait_for_a_slow_controller_times_out(broker: LogsBroker, monkeypatch: Any) -> None:
    """The error LEADER_NOT_AVAILABLE makes the client retry."""
    monkeypatch.setattr(metadata, "_CREATION_SECONDS", 0.0)
    response = await broker.ask(metadata, request("new"), 9)
    assert response.topics[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE


async def test_topics_are_found_by_id_from_version_12(broker: LogsBroker) -> None:
    """An unknown id has the error UNKNOWN_TOPIC_ID and no name."""
    topic = broker.create("t")
    ids = [topic.topic_id, bytes(15) + b"\x09"]
    request = MetadataRequest(topics=[MetadataRequestTopic(topic_id=id_, name=None) for id_ in ids])
    response = await broker.ask(metadata, request, 12)
    assert [item.name for item in response.topics] == ["t", None]
    assert [item.error_code for item in response.topics] == [0, ErrorCode.UNKNOWN_TOPIC_ID]
    assert response.topics[1].topic_id == ids[1]


async def test_each_topic_is_returned_once(broker: LogsBroker) -> None:
    """A repeated topic has one result; if there are ids, names without an id are ignored."""
    topic = broker.create("t")
    broker.create("u")
    response = await broker.ask(metadata, request("t", "u", "t"), 12)
    assert [item.name for item in response.topics] == ["t", "u"]
    by_id = MetadataRequestTopic(name=None, topic_id=topic.topic_id)
    both = MetadataRequest(topics=[by_id, MetadataRequestTopic(name="u"), by_id])
    response = await broker.ask(metadata, both, 12)
    assert [item.name for item in response.topics] == ["t"]


@pytest.mark.parametrize("version", [10, 11])
async def test_ids_are_rejected_before_version_12(broker: LogsBroker, version: int) -> None:
    """Every topic has INVALID_REQUEST, although the request has a field for ids."""
    topic = broker.create("t")
    named = MetadataRequestTopic(name="t")
    for odd in (
        MetadataRequestTopic(name="t", topic_id=topic.topic_id),
        MetadataRequestTopic(name=None),
    ):
        response = await broker.ask(metadata, MetadataRequest(topics=[named, odd]), version)
        assert {item.error_code for item in response.topics} == {ErrorCode.INVALID_REQUEST}
        assert (response.brokers, response.cluster_id) == ([], None)


async def test_partition_without_leader_has_an_error(broker: LogsBroker) -> None:
    """The error is LEADER_NOT_AVAILABLE, and replicas on dead brokers are offline."""
    broker.create("t", leader=9, replicas=(NODE, 9))
    response = await broker.ask(metadata, request("t"), 9)
    partition = response.topics[0].partitions[0]
    assert partition.error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert (partition.leader_id, partition.offline_replicas) == (-1, [9])


@pytest.mark.parametrize(
    ("version", "code"), [(5, "LEADER_NOT_AVAILABLE"), (6, "LISTENER_NOT_FOUND")]
)
async def test_leader_without_this_listener_is_an_error(
    broker: LogsBroker, version: int, code: str
) -> None:
    """The code LISTENER_NOT_FOUND exists since version 6."""
    broker.create("t", leader=OTHER, replicas=(NODE, OTHER))
    context = broker.context(metadata, version, listener="INTERNAL")
    response = metadata.handle(context, request("t"))
    assert response.topics[0].partitions[0].error_code == ErrorCode[code]
    assert [item.node_id for item in response.brokers] == [NODE]


async def test_authorized_operations_are_returned_on_request(broker: LogsBroker) -> None:
    """Without an authorizer all operations are allowed (KIP-430)."""
    broker.create("t")
    metadata_request = request(
        "t", include_cluster_authorized_operations=True, include_topic_authorized_operations=True
    )
    response = await broker.ask(metadata, metadata_request, 8)
    assert response.cluster_authorized_operations == operations.ON_CLUSTER
    assert response.topics[0].topic_authorized_operations == operations.ON_TOPIC
    missing = request(
        "no", allow_auto_topic_creation=False, include_topic_authorized_operations=True
    )
    response = await broker.ask(metadata, missing, 8)
    assert response.topics[0].topic_authorized_operations == operations.ON_TOPIC
    plain = await broker.ask(metadata, request("t"), 8)
    assert plain.topics[0].topic_authorized_operations == operations.NOT_ASKED


async def test_response_waits_for_the_successor_of_a_lost_leader(broker: LogsBroker) -> None:
    """A client asks as soon as it has lost the leader, before another one is elected."""
    broker.create("t", replicas=(NODE, OTHER), leader=OTHER)
    broker.create("u", replicas=(NODE, OTHER))
    broker.current.contacts.fetch_lost(OTHER, broker.clock.now)
    waiting = asyncio.ensure_future(broker.ask(metadata, request("t"), 9))
    await asyncio.sleep(0)
    other = await broker.ask(metadata, request("u"), 9)
    assert other.topics[0].partitions[0].leader_id == NODE
    assert not waiting.done()
    broker.create("t", replicas=(NODE, OTHER), leader_epoch=4)
    former = broker.image.brokers
    broker.image = broker.image.with_brokers(removed=[OTHER])
    broker.current.brokers_changed(former)
    answer = await waiting
    partition = answer.topics[0].partitions[0]
    assert (partition.leader_id, partition.offline_replicas) == (NODE, [OTHER])
    assert NODE in [item.node_id for item in answer.brokers]


async def test_broker_that_has_left_is_listed_for_a_while(
    broker: LogsBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """librdkafka removes a broker that is not listed, which harms during a fail-over.

    The broker leads nothing, and responses from the former list are no longer cached.
    """
    broker.create("t", replicas=(NODE, OTHER), leader=OTHER)
    monkeypatch.setattr(current, "DEPARTED_SECONDS", 0)
    former = broker.image.brokers
    broker.image = left = broker.image.with_brokers(removed=[OTHER])
    broker.current.brokers_changed(former)
    answer = await broker.ask(metadata, request("t"), 9)
    assert sorted(item.node_id for item in answer.brokers) == [NODE, OTHER]
    assert answer.topics[0].partitions[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE
    while broker.current.departed:
        await asyncio.sleep(0)
    answer = await broker.ask(metadata, request("t"), 9)
    assert [item.node_id for item in answer.brokers] == [NODE]
    assert broker.image is not left


async def test_broker_that_has_returned_has_its_new_address(broker: LogsBroker) -> None:
    """A broker is listed once, although it has left a moment ago."""
    former = broker.image.brokers
    broker.image = broker.image.with_brokers(removed=[OTHER])
    broker.current.brokers_changed(former)
    broker.image = broker.image.with_brokers([BrokerImage(OTHER, "b2", 9999)])
    answer = await broker.ask(metadata, everything(9), 9)
    assert sorted((item.node_id, item.port) for item in answer.brokers) == [
        (NODE, 7),
        (OTHER, 9999),
    ]


@pytest.mark.parametrize("is_back", [False, True], ids=["no successor", "leader answers"])
async def test_response_names_a_lost_leader_that_nothing_replaces(
    broker: LogsBroker, is_back: bool
) -> None:
    """Responses wait for at most a second, and no longer than until the leader responds again."""
    broker.create("t", replicas=(NODE, OTHER), leader=OTHER)
    broker.current.contacts.fetch_lost(OTHER, broker.clock.now)
    waiting = asyncio.ensure_future(broker.ask(metadata, everything(9), 9))
    await asyncio.sleep(0)
    assert not waiting.done()
    if is_back:
        broker.current.contacts.fetched(OTHER)
    else:
        broker.clock.now += 1.0
    answer = await waiting
    assert answer.topics[0].partitions[0].leader_id == OTHER


@pytest.mark.parametrize("include", [False, True])
async def test_many_partitions_are_described_in_slices(
    broker: LogsBroker, monkeypatch: pytest.MonkeyPatch, include: bool
) -> None:
    """The response is the same as the one that is made at once."""
    for number in range(5):
        broker.create(f"t{number}", partitions=2)
    asked = MetadataRequest(topics=None, include_topic_authorized_operations=include)
    whole = await broker.ask(metadata, asked, 9)
    monkeypatch.setattr(metadata, "PARTITIONS_AT_ONCE", 9)
    monkeypatch.setattr(metadata, "_TOPICS_AT_ONCE", 2)
    assert isinstance(broker.begin(metadata, asked, 9), asyncio.Task)
    assert await broker.ask(metadata, asked, 9) == whole
    assert len(whole.topics) == 5


@pytest.mark.parametrize(("version", "count"), [(11, 2), (12, 1)])
async def test_large_request_with_names_and_ids(
    broker: LogsBroker, version: int, count: int
) -> None:
    """Names do not count beside ids, wherever the request is divided."""
    by_id = MetadataRequestTopic(name=None, topic_id=bytes(15) + b"1")
    asked = MetadataRequest(topics=[MetadataRequestTopic(name="a"), by_id])
    metadata.prepare(asked, broker.context(metadata, version))
    assert asked.topics is not None
    assert len(asked.topics) == count
    assert by_id in asked.topics
