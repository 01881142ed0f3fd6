"""UpdateMetadata: the metadata that this broker returns to clients."""

import asyncio
import itertools

import pytest

from ottla.base.errors import ErrorCode
from ottla.cluster.image import BrokerImage, ClusterImage, Endpoint, PartitionImage, TopicImage
from ottla.controller.planning.notices import MetadataUpdate
from ottla.server.brokers import states
from ottla.server.handlers import update_metadata
from ottla.server.local_broker import LocalBroker
from ottla.wire.messages.update_metadata import UpdateMetadataRequest
from tests.handlers.logs import OTHER, LogsBroker
from tests.handlers.peers import accept_peer

VERSIONS = range(update_metadata.MIN_VERSION, update_metadata.MAX_VERSION + 1)
BROKERS = (
    BrokerImage(
        2,
        "b2",
        9092,
        rack="r2",
        listener="A",
        endpoints=(Endpoint("A", "b2", 9092), Endpoint("B", "b2", 9093, "SSL")),
    ),
    BrokerImage(3, "b3", 9092, endpoints=(Endpoint("PLAINTEXT", "b3", 9092),)),
)


@pytest.fixture
def broker(broker: LogsBroker) -> LogsBroker:
    """Broker 1 in epoch 10, which receives notices."""
    accept_peer(broker, OTHER)
    return broker


def topic(name: str, count: int, leader: int = 2) -> TopicImage:
    """Return a topic as another broker's controller knows it."""
    partitions = tuple(
        PartitionImage(
            number, leader, 4, (2, 3), (2, 3, 1), offline_replicas=(1,), partition_epoch=7
        )
        for number in range(count)
    )
    return TopicImage(name, name.encode().rjust(16, b"-"), partitions)


def sent(image: ClusterImage) -> states.SentImage:
    """Return what a broker knows that has this image."""
    known = states.SentImage()
    topics = tuple(image.topics.values())
    known.sent(MetadataUpdate(image.brokers, topics, (), is_complete=True))
    return known


def update_of(before: ClusterImage, after: ClusterImage) -> MetadataUpdate:
    """Return the update that leads from one image to another."""
    changed = [item for name, item in after.topics.items() if before.topic(name) is not item]
    gone = [name for name in before.topics if name not in after.topics]
    return MetadataUpdate(after.brokers, changed, gone)


def requests(
    before: ClusterImage, after: ClusterImage, partitions_max: int, kind: int = 0
) -> list[UpdateMetadataRequest]:
    """Return the requests that lead from one image to another."""
    changes = sent(before).changes(update_of(before, after))
    chunks = list(states.in_chunks(changes, 2, partitions_max)) or [[]]
    return [
        UpdateMetadataRequest(
            controller_id=OTHER,
            controller_epoch=2,
            broker_epoch=10,
            type=states.PART if number < len(chunks) else kind,
            topic_states=topics,
            live_brokers=states.live_brokers(after.brokers.values()),
        )
        for number, topics in enumerate(chunks, 1)
    ]


def request(before: ClusterImage, after: ClusterImage, kind: int = 0) -> UpdateMetadataRequest:
    """Return the only request that leads from one image to another."""
    (only,) = requests(before, after, 1000, kind)
    return only


@pytest.mark.parametrize("version", VERSIONS)
async def test_topics_and_brokers_arrive(broker: LogsBroker, version: int) -> None:
    """Every field of the metadata reaches the image of the broker."""
    after = ClusterImage().with_brokers(BROKERS).with_topics([topic("t", 2)])
    assert (
        await broker.ask(update_metadata, request(ClusterImage(), after), version)
    ).error_code == 0
    image = broker.image
    assert image.brokers == after.brokers
    assert image.topics == after.topics
    assert (image.controller_id, image.controller_epoch) == (OTHER, 2)
    assert image.topic_by_id(topic("t", 2).topic_id) is image.topic("t")


async def test_only_changed_partitions_are_sent(broker: LogsBroker) -> None:
    """The others remain as they are."""
    before = ClusterImage().with_brokers(BROKERS).with_topics([topic("t", 3)])
    await broker.ask(update_metadata, request(ClusterImage(), before), 8)
    moved = topic("t", 3, leader=3).partitions[1]
    after = before.with_topics([before.topics["t"].with_partitions([moved])])
    change = request(before, after)
    assert [len(item.partition_states) for item in change.topic_states] == [1]
    await broker.ask(update_metadata, change, 8)
    assert [item.leader for item in broker.image.topics["t"].partitions] == [2, 3, 2]


async def test_a_deleted_topic_is_forgotten(broker: LogsBroker) -> None:
    """Its partitions have the leader -2."""
    before = ClusterImage().with_topics([topic("t", 2), topic("u", 1)])
    await broker.ask(update_metadata, request(ClusterImage(), before), 8)
    after = before.with_topics(deleted=["t"])
    await broker.ask(update_metadata, request(before, after), 8)
    assert list(broker.image.topics) == ["u"]


async def test_a_complete_request_replaces_every_topic(broker: LogsBroker) -> None:
    """A topic that was deleted between two controllers is forgotten as well."""
    broker.create("stale")
    after = ClusterImage().with_topics([topic("t", 1)])
    await broker.ask(update_metadata, request(ClusterImage(), after, states.FULL), 8)
    assert list(broker.image.topics) == ["t"]


async def test_a_stale_controller_is_fenced(broker: LogsBroker) -> None:
    """Its view of the cluster is not taken over."""
    await broker.ask(update_metadata, request(ClusterImage(), ClusterImage()), 8)
    stale = request(ClusterImage(), ClusterImage().with_topics([topic("t", 1)]))
    stale.controller_epoch = 1
    response = await broker.ask(update_metadata, stale, 8)
    assert response.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    assert not broker.image.topics


async def test_a_large_update_takes_effect_as_a_whole(broker: LogsBroker) -> None:
    """A request has a bounded number of partitions; until the last one arrives nothing changes."""
    broker.create("stale")
    before, after = broker.image, ClusterImage().with_topics([topic("t", 7), topic("u", 2)])
    parts = requests(before, after, 3, states.FULL)
    counts = [
        [(s.topic_name, len(s.partition_states)) for s in item.topic_states] for item in parts
    ]
    assert counts == [
        [("stale", 1)],
        [("t", 3)],
        [("t", 3)],
        [("t", 1), ("u", 2)],
    ]
    for part in parts[:-1]:
        assert (await broker.ask(update_metadata, part, 8)).error_code == 0
        assert broker.image is before
    assert (await broker.ask(update_metadata, parts[-1], 8)).error_code == 0
    assert broker.image.topics == after.topics


async def test_parts_of_another_controller_are_dropped(broker: LogsBroker) -> None:
    """It was replaced while it sent an update."""
    after = ClusterImage().with_topics([topic("t", 4)])
    first, second = requests(ClusterImage(), after, 2)
    await broker.ask(update_metadata, first, 8)
    second.controller_epoch = 3
    response = await broker.ask(update_metadata, second, 8)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert not broker.image.topics


async def test_a_topic_that_was_created_again_replaces_the_former_one(broker: LogsBroker) -> None:
    """Its name is in the request twice: first deleted, then with another id."""
    former = topic("t", 3)
    await broker.ask(
        update_metadata, request(ClusterImage(), ClusterImage().with_topics([former])), 8
    )
    again = TopicImage("t", b"another id------", topic("t", 1).partitions)
    changed = request(ClusterImage().with_topics([former]), ClusterImage().with_topics([again]))
    await broker.ask(update_metadata, changed, 8)
    assert broker.image.topics == {"t": again}
    assert list(broker.image.topic_names.values()) == ["t"]


@pytest.mark.parametrize("peer", [-1, 3])
async def test_only_the_proven_controller_is_served(broker: LogsBroker, peer: int) -> None:
    """A client, or another broker than the request claims, changes nothing."""
    accept_peer(broker, peer)
    response = await broker.ask(update_metadata, request(ClusterImage(), ClusterImage()), 8)
    assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_an_introduction_names_brokers_only(broker: LogsBroker) -> None:
    """The broker still waits for the topics: its start is not complete."""
    broker.node_id = 2
    broker.receive_notices()
    after = ClusterImage().with_brokers(BROKERS)
    response = await broker.ask(
        update_metadata, request(ClusterImage(), after, states.INTRODUCTION), 8
    )
    assert response.error_code == 0
    assert list(broker.image.brokers) == [2, 3]
    assert isinstance(broker.notices, LocalBroker)
    assert not await broker.notices.wait_until_informed(0)
    await broker.ask(update_metadata, request(ClusterImage(), after), 8)
    assert await broker.notices.wait_until_informed(1)


async def test_unknown_security_protocol_is_refused(broker: LogsBroker) -> None:
    """Its listener must not look like one in plain text."""
    (request,) = requests(ClusterImage(), ClusterImage().with_brokers(BROKERS), 9)
    request.live_brokers[0].endpoints[0].security_protocol = 4
    response = await broker.ask(update_metadata, request, 8)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert broker.image.broker(3) is None


async def test_an_update_of_many_topics_lets_the_loop_run(
    broker: LogsBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker reads one topic after the other, and serves other requests in between."""
    times = itertools.count(100.0)
    monkeypatch.setattr(broker.clock, "monotonic", lambda: next(times))
    after = broker.image.with_brokers(BROKERS).with_topics([topic(f"t{n}", 1) for n in range(50)])
    (request,) = requests(broker.image, after, 1000)
    response = asyncio.ensure_future(broker.ask(update_metadata, request, 8))
    turns = 0
    while not response.done():
        await asyncio.sleep(0)
        turns += 1
    assert response.result().error_code == ErrorCode.NONE
    assert broker.image.topics == after.topics
    assert turns >= 50
