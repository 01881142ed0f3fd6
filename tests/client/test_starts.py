"""Offsets that were chosen are positions before the first record, and survive other changes."""

from collections.abc import Iterable, Mapping

import pytest

from ottla.client import Consumer, OffsetAndMetadata, RebalanceListener, TopicPartition
from ottla.client.errors import ClientError
from ottla.testing import Cluster
from tests.client.test_consumer import consumer_of, fill, poll_until, read, values_of

pytestmark = pytest.mark.slow

ASSIGNORS = ["range", "cooperative-sticky", "sticky"]


class Offsets:
    """An offset store with the same offset for every partition."""

    def __init__(self, offset: int) -> None:
        self._offset = offset

    def load(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return the offset."""
        return dict.fromkeys(partitions, self._offset)


def test_offset_of_an_assignment_replaces_a_stored_one(cluster: Cluster, topic: str) -> None:
    """The store only fills in partitions without an offset."""
    fill(cluster, topic, [b"%d" % number for number in range(12)])
    with consumer_of(cluster, offset_store=Offsets(2)) as consumer:
        consumer.assign({(topic, 0): 3})
        assert values_of(read(consumer, 1)) == [b"9"]
        consumer.assign([(topic, 0)])
        assert values_of(read(consumer, 2)) == [b"6", b"9"]


@pytest.mark.parametrize("strategy", ASSIGNORS)
def test_sought_offset_is_committed_before_its_first_record(
    cluster: Cluster, topic: str, strategy: str
) -> None:
    """A rewound position replaces a higher one that was committed before."""
    fill(cluster, topic, [b"%d" % number for number in range(9)])
    settings = {"group_id": topic, "partition_assignment_strategy": strategy}
    with consumer_of(cluster, topic, **settings) as consumer:
        read(consumer, 9)
        consumer.commit()
        consumer.pause()
        key = TopicPartition(topic, 0)
        consumer.seek(key, 1)
        assert consumer.poll(0.1) == []
        assert consumer.positions()[key] == 1
        assert consumer.commit()[key] == OffsetAndMetadata(1)
        assert consumer.committed()[key] == OffsetAndMetadata(1)
        consumer.resume()
        assert values_of(read(consumer, 2)) == [b"3", b"6"]
        assert consumer.positions()[key] == 3


def test_offset_of_an_assignment_is_a_position(cluster: Cluster, topic: str) -> None:
    """Also if the partition has no more records, or had another position."""
    fill(cluster, topic, [b"%d" % number for number in range(9)])
    with consumer_of(cluster, group_id=topic) as consumer:
        consumer.assign({(topic, 0): 3, (topic, 1): 1})
        assert values_of(read(consumer, 2)) == [b"4", b"7"]
        assert consumer.positions() == {(topic, 0): 3, (topic, 1): 3}
        consumer.assign({(topic, 0): 2, (topic, 2): 3})
        consumer.pause()
        assert consumer.poll(0.1) == []
        assert consumer.positions() == {(topic, 0): 2, (topic, 2): 3}
        assert len(consumer.commit()) == 2
    with consumer_of(cluster, group_id=topic) as consumer:
        offsets = consumer.committed([(topic, 0), (topic, 1), (topic, 2)])
        assert {key.partition: row.offset for key, row in offsets.items()} == {0: 2, 2: 3}


def test_committed_offsets_are_starts(cluster: Cluster, topic: str) -> None:
    """`assign` and `seek` take what `committed` returns; negative offsets are refused, as in Java."""
    fill(cluster, topic, [b"%d" % number for number in range(9)])
    key = TopicPartition(topic, 0)
    with consumer_of(cluster, group_id=topic) as consumer:
        consumer.assign([key])
        consumer.commit({key: OffsetAndMetadata(1, "one")})
        consumer.assign(consumer.committed())
        assert values_of(read(consumer, 2)) == [b"3", b"6"]
        consumer.seek(key, consumer.committed()[key])
        assert values_of(read(consumer, 2)) == [b"3", b"6"]
        for call in (consumer.commit, consumer.assign):
            with pytest.raises(ClientError, match="-5 is not an offset of"):
                call({key: -5})


@pytest.mark.parametrize("kind", [*ASSIGNORS, "consumer"])
def test_group_that_has_found_no_records_commits_its_positions(
    cluster: Cluster, topic: str, kind: str
) -> None:
    """As in Java: records that arrive while no member runs are read by the next one."""
    settings = {"group_id": topic, "auto_offset_reset": "latest"}
    name = "group_protocol" if kind == "consumer" else "partition_assignment_strategy"
    fill(cluster, topic, [b"old"])
    with consumer_of(cluster, topic, **settings, **{name: kind}) as consumer:
        poll_until(consumer, lambda: len(consumer.positions()) == 3)
        assert consumer.positions() == {(topic, 0): 1, (topic, 1): 0, (topic, 2): 0}
    fill(cluster, topic, [b"1", b"2", b"3"])
    with consumer_of(cluster, topic, **settings, **{name: kind}) as consumer:
        assert values_of(read(consumer, 3)) == [b"1", b"2", b"3"]


def test_sought_end_is_a_position(cluster: Cluster, topic: str) -> None:
    """A group skips what it has not read yet, and commits that."""
    fill(cluster, topic, [b"%d" % number for number in range(9)])
    with consumer_of(cluster, topic, group_id=topic) as consumer:
        read(consumer, 9)
        consumer.seek_to_beginning()
        read(consumer, 1)
        consumer.seek_to_end()
        poll_until(consumer, lambda: sum(consumer.positions().values()) == 9)
        assert {row.offset for row in consumer.commit().values()} == {3}


class StartsAt2(RebalanceListener):
    """Begins an assignment at offset 2, paused."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """Seek and pause all."""
        for key in partitions:
            self._consumer.seek(key, 2)
        self._consumer.pause(partitions)


@pytest.mark.parametrize("strategy", ASSIGNORS)
def test_a_seek_right_after_the_assignment_keeps_the_starts_of_others(
    cluster: Cluster, topic: str, strategy: str
) -> None:
    """librdkafka cannot seek yet, so the partitions are assigned again; paused ones stay paused."""
    fill(cluster, topic, [b"%d" % number for number in range(9)])
    settings = {"group_id": topic, "partition_assignment_strategy": strategy}
    with consumer_of(cluster, **settings) as consumer:
        consumer.subscribe(topic, listener=StartsAt2(consumer))
        poll_until(consumer, lambda: len(consumer.assignment) == 3)
        rows = sorted(consumer.assignment)
        # librdkafka refuses to seek partitions that it was assigned a moment ago.
        consumer._membership._assign_again({rows[1]: 2})
        consumer.seek(rows[0], 1)
        assert consumer.poll(0.3) == []
        assert consumer.positions() == {rows[0]: 1, rows[1]: 2, rows[2]: 2}
        consumer.resume()
        assert values_of(read(consumer, 4)) == [b"3", b"6", b"7", b"8"]


@pytest.mark.parametrize("strategy", ASSIGNORS)
def test_pause_in_a_loop_holds_back_what_was_fetched(
    cluster: Cluster, topic: str, strategy: str
) -> None:
    """Records of the last poll that iteration has not reached are returned after `resume`."""
    fill(cluster, topic, [b"%d" % number for number in range(9)])
    settings = {"group_id": topic, "partition_assignment_strategy": strategy}
    with consumer_of(cluster, topic, **settings) as consumer:
        poll_until(consumer, lambda: len(consumer.assignment) == 3)
        consumer.seek_to_beginning()
        values = []
        key = TopicPartition(topic, 0)
        for record in consumer:
            values.append(record.value)
            if record.value == b"0":
                consumer.pause([key])
                assert consumer.positions()[key] == 1
            if {b"0", b"7", b"8"} <= set(values):
                break
        assert sorted(values) == [b"0", b"1", b"2", b"4", b"5", b"7", b"8"]
        assert consumer.poll(0.1) == []
        consumer.resume()
        assert values_of(read(consumer, 2)) == [b"3", b"6"]
