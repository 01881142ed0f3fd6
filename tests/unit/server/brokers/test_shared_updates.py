"""An update of the metadata is encoded once for all brokers that need the same."""

from ottla.cluster.image import BrokerImage, PartitionImage, TopicImage
from ottla.controller.planning.notices import MetadataUpdate
from ottla.server.brokers import states
from ottla.server.brokers.remote import METADATA_MAX, EncodedTopics, UpdatesUnderWay
from ottla.wire import headers
from ottla.wire.messages.update_metadata import UpdateMetadataRequest

BROKERS = [BrokerImage(number, f"host{number}", 9092, rack="r") for number in range(1, 4)]


def topic(name: str, count: int) -> TopicImage:
    """Return a topic."""
    partitions = tuple(PartitionImage(number, 1, 4, (1, 2), (1, 2, 3)) for number in range(count))
    return TopicImage(name, name.encode().rjust(16, b"-"), partitions)


def update(*topics: TopicImage) -> MetadataUpdate:
    """Return the complete metadata."""
    return MetadataUpdate({broker.id: broker for broker in BROKERS}, topics, (), is_complete=True)


def request(kind: int) -> UpdateMetadataRequest:
    """Return a request without topics."""
    return UpdateMetadataRequest(
        controller_id=1,
        controller_epoch=2,
        broker_epoch=2**40,
        type=kind,
        live_brokers=states.live_brokers(BROKERS),
    )


def test_shared_chunks_have_the_bytes_of_whole_requests() -> None:
    """A request of encoded topics is the same as one that is encoded as a whole."""
    differences = states.SentImage().differences(update(topic("a", 3), topic("b", METADATA_MAX)))
    encoded = EncodedTopics(differences, 2)
    chunks = list(states.in_chunks(states.changes_of(differences), 2, METADATA_MAX))
    assert len(chunks) == 2
    for number, topics in enumerate(chunks):
        for kind in (0, states.FULL, states.PART):
            pieces = encoded.chunk(number)
            assert pieces is not None
            whole = request(kind)
            whole.topic_states = topics
            header = headers.encode_request_header(type(whole), 8, 7, "client")
            parts = pieces.parts_after_fixed(request(kind), header)
            assert b"".join(parts) == headers.encode_request(whole, 8, 7, "client")
    assert encoded.chunk(2) is None


def test_brokers_that_know_the_same_share_an_encoding() -> None:
    """A broker that knows another version of a topic has an encoding of its own."""
    under_way, new = UpdatesUnderWay(), topic("a", 2)
    one, other, later = states.SentImage(), states.SentImage(), states.SentImage()
    later.sent(update(topic("a", 2)))
    first = under_way.topics(one.differences(update(new)), 2)
    assert under_way.topics(other.differences(update(new)), 2) is first
    assert under_way.topics(later.differences(update(new)), 2) is not first
    assert under_way.topics(other.differences(update(new)), 3) is not first
