"""Samples and their differences."""

from dataclasses import replace

from ottla.client.admin.cluster import Broker
from ottla.client.admin.topics import Partition, Topic
from ottla.console.timeline.spans import (
    ClusterState,
    Controller,
    Leadership,
    compare,
    merge,
    missed_epochs,
    state_of,
)
from ottla.operations.survey.metadata import Metadata

KEY = ("orders", 0)
LED = Leadership("a1", 1, 5, (1, 2, 3), (1, 2, 3))


def state(led: Leadership = LED, brokers: tuple[int, ...] = (1, 2, 3)) -> ClusterState:
    """Return a sample of a cluster with one partition."""
    return ClusterState(1000, Controller(1, 7), brokers, {KEY: led})


def test_a_sample_is_read_from_metadata() -> None:
    """The ISR is sorted, the order of replicas stays, and partitions beyond the limit are left out."""
    partitions = tuple(Partition(n, 2, 4, (3, 2), (3, 2), ()) for n in range(3))
    topic = Topic("orders", b"\x01", False, partitions)
    nodes = {2: Broker(2, "h", 1, None), 3: Broker(3, "h", 2, None)}
    metadata = Metadata("id", 2, nodes, {"orders": topic}, 1000)
    state = state_of(metadata, Controller(2, None), 2)
    assert state.brokers == (2, 3)
    assert state.partitions == {
        ("orders", n): Leadership("01", 2, 4, (2, 3), (3, 2)) for n in (0, 1)
    }


def test_equal_partitions_of_a_topic_share_their_state() -> None:
    """The state of 10 000 partitions is kept from one sample to the next."""
    partitions = tuple(Partition(n, 2 + n % 2, 4, (3, 2), (3, 2), ()) for n in range(4))
    metadata = Metadata("id", 2, {}, {"orders": Topic("orders", b"1", False, partitions)}, 1000)
    states = state_of(metadata, Controller(2, None), 10).partitions
    assert states["orders", 0] is states["orders", 2]
    assert (states["orders", 0].leader, states["orders", 1].leader) == (2, 3)


def test_equal_samples_have_no_changes() -> None:
    """A quiet cluster has an empty difference."""
    assert compare(state(), state()).is_empty


def test_leaders_isr_brokers_and_deletions_are_changes() -> None:
    """Each kind of change is reported once."""
    shrunk = replace(LED, leader=2, leader_epoch=6, isr=(2, 3))
    differences = compare(state(), replace(state(shrunk, (2, 3)), controller=Controller(2, 8)))
    assert differences.partitions == {KEY: shrunk}
    assert (differences.stopped, differences.started) == ((1,), ())
    assert differences.controller == Controller(2, 8)
    assert compare(state(), replace(state(), partitions={})).deleted == (KEY,)


def test_metadata_of_an_outdated_broker_is_ignored() -> None:
    """A lower leader epoch of the same topic is old; the state before it is kept."""
    old = state(replace(LED, leader=3, leader_epoch=4))
    assert compare(state(), old).is_empty
    assert merge(state(), old).partitions[KEY] == LED
    # A topic that was deleted and created again counts from the beginning.
    again = state(replace(LED, topic_id="b2", leader_epoch=0))
    assert compare(state(), again).partitions == again.partitions
    assert merge(state(), again).partitions == again.partitions


def test_elections_between_samples_are_counted_by_the_epoch() -> None:
    """The next epoch misses none; a new topic has no epochs before it."""
    assert missed_epochs(None, LED) == 0
    assert missed_epochs(LED, replace(LED, leader_epoch=6)) == 0
    assert missed_epochs(LED, replace(LED, leader_epoch=9)) == 3
    assert missed_epochs(LED, replace(LED, topic_id="b2", leader_epoch=9)) == 0
