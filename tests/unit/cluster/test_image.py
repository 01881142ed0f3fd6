"""The image of the cluster: every change returns a new image, at low cost."""

import timeit

from ottla.base.uuids import ZERO_UUID
from ottla.cluster.image import (
    BrokerImage,
    ClusterImage,
    PartitionImage,
    ReplicaAssignment,
    TopicImage,
)


def topic(name: str, number: int, partitions: int = 1) -> TopicImage:
    """Return a topic with an id made of a number."""
    created = tuple(PartitionImage(item, 1, 0, (1,), (1, 2)) for item in range(partitions))
    return TopicImage(name, number.to_bytes(16, "big"), created)


def test_topics_are_found_by_name_and_by_id() -> None:
    """Old clients use names, new ones ids."""
    image = ClusterImage().with_topics([topic("a", 1), topic("b", 2)])
    assert image.topic("a") is image.topic_by_id((1).to_bytes(16, "big"))
    assert image.topic("c") is None
    assert image.topic_by_id(b"?" * 16) is None
    assert image.partition("a", 0) == image.topics["a"].partitions[0]
    assert image.partition("a", 1) is None
    assert image.partition("a", -1) is None
    assert image.partition("c", 0) is None


def test_an_image_never_changes() -> None:
    """A reader of an older image sees no later change."""
    before = ClusterImage().with_topics([topic("a", 1)])
    after = before.with_topics([topic("b", 2)], deleted=["a"])
    assert (list(before.topics), list(after.topics)) == (["a"], ["b"])
    assert (len(before.topic_names), len(after.topic_names)) == (1, 1)


def test_a_changed_topic_shares_everything_else() -> None:
    """A new leader copies one mapping; the other partitions and topics are the same objects."""
    before = ClusterImage().with_topics([topic("a", 1), topic("b", 2)])
    after = before.with_topics([topic("a", 1, partitions=2)])
    assert after.topic_names is before.topic_names
    assert after.topics["b"] is before.topics["b"]
    assert len(after.topics["a"].partitions) == 2


def test_recreated_topic_has_only_its_new_id() -> None:
    """The id of the deleted topic is not found."""
    before = ClusterImage().with_topics([topic("a", 1)])
    for after in (
        before.with_topics([topic("a", 2)]),
        before.with_topics([topic("a", 2)], deleted=["a", "never"]),
    ):
        assert after.topic_by_id((1).to_bytes(16, "big")) is None
        assert after.topic_by_id((2).to_bytes(16, "big")) is after.topics["a"]


def test_topics_without_an_id_are_not_found_by_id() -> None:
    """The zero id of old topics finds none of them."""
    image = ClusterImage().with_topics([topic("a", 0), topic("b", 0)])
    assert image.topic_by_id(ZERO_UUID) is None


def test_partitions_are_replaced_and_appended_in_order() -> None:
    """New partitions are appended at the end."""
    two = topic("a", 1, partitions=2)
    moved = PartitionImage(1, 2, 5, (2,), (1, 2))
    added = PartitionImage(2, 1, 0, (1,), (1, 2))
    changed = two.with_partitions([added, moved])
    assert changed.partitions == (two.partitions[0], moved, added)


def test_states_for_replicas_agree_with_the_image() -> None:
    """The controller's message to a replica has ids and epochs of the image."""
    (state,) = topic("a", 1).states(is_new=True)
    assert (state.topic, state.partition, state.leader, state.isr) == ("a", 0, 1, (1,))
    assert state.topic_id == (1).to_bytes(16, "big")
    assert state.is_new


def test_brokers_are_ordered_by_id() -> None:
    """Responses list brokers by id, in whatever order they registered."""
    image = ClusterImage().with_brokers(BrokerImage(item, "h", item) for item in (3, 1, 2))
    assert list(image.brokers) == [1, 2, 3]
    later = image.with_brokers([BrokerImage(2, "other", 9)], removed=[1, 7])
    assert list(later.brokers) == [2, 3]
    broker = later.broker(2)
    assert broker is not None
    assert broker.host == "other"
    assert later.broker(1) is None


def test_one_topic_among_ten_thousand_is_changed_in_less_than_a_millisecond() -> None:
    """A cluster may have many topics, and many elections one after the other."""
    image = ClusterImage().with_topics(topic(f"t{number}", number + 1) for number in range(10_000))
    best = min(
        timeit.repeat(lambda: image.with_topics([topic("t5", 6)]), number=1, repeat=20)
        + timeit.repeat(lambda: image.with_topics([topic("new", 99_999)]), number=1, repeat=20)
    )
    assert best < 0.001


def test_cluster_id_and_controller_are_part_of_the_image() -> None:
    """Each of them changes without the rest."""
    image = ClusterImage("c").with_controller(2, 9)
    assert (image.cluster_id, image.controller_id, image.controller_epoch) == ("c", 2, 9)


def test_reassignment_has_its_original_and_target_replicas() -> None:
    """Completing drops the removing replicas, cancelling drops the added ones."""
    moving = ReplicaAssignment((3, 1, 2), adding_replicas=(3,), removing_replicas=(2,))
    assert moving.target_replicas == (3, 1)
    assert moving.original_replicas == (1, 2)
