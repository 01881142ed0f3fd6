"""Keys that murmur2 would put into another partition are detected in co-partitioned topics."""

import zlib
from collections import Counter
from collections.abc import Callable

import pyarrow as pa
import pytest

from ottla.streams import StreamsBuilder, TableJoined, Topology
from ottla.streams.layout.layout import Application, lay_out
from ottla.streams.spark.layout.envelopes import MISPLACED_TOPIC, RECORDS, SINK, Slots
from ottla.streams.spark.stages.placement import SAMPLE, KeyPlacement, PartitionCounts
from ottla.streams.spark.stages.tasks import SourceStage
from ottla.streams.task.task import TaskSettings
from ottla.wire.records.murmur2 import murmur2
from tests.streams.staged import STRINGS, partition_of

_KEYS = [b"customer-%d" % number for number in range(60)]
_PARTITIONS = 3


def _murmur2(key: bytes) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % _PARTITIONS


def _crc32(key: bytes, count: int = _PARTITIONS) -> int:
    return zlib.crc32(key) % count


def _batch(partition: int, keys: list[bytes | None]) -> pa.RecordBatch:
    count = len(keys)
    columns = [[partition] * count, range(count), [0] * count, keys, [b"v"] * count, [None] * count]
    arrays = [pa.array(each, field.type) for each, field in zip(columns, RECORDS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=RECORDS)


def _foreign_key_join(*first: str) -> Topology:
    builder = StreamsBuilder()
    tables = {topic: builder.table(topic) for topic in first or ("orders", "customers")}
    orders, customers = tables["orders"], tables["customers"]
    orders.join(customers, lambda order: order, lambda one, two: two).to_stream().to("out")
    return builder.build()


def _with_partitioner() -> Topology:
    builder = StreamsBuilder()
    orders, customers = builder.table("orders"), builder.table("customers")
    joined = orders.join(
        customers,
        lambda order: order,
        lambda one, two: two,
        TableJoined(other_partitioner=lambda topic, key, value, count: len(key) % count),
    )
    joined.to_stream().to("out")
    return builder.build()


def _repartitioned() -> Topology:
    builder = StreamsBuilder()
    customers = builder.stream("customers").repartition().to_table()
    joined = builder.table("orders").join(customers, lambda order: order, lambda one, two: two)
    joined.to_stream().to("out")
    return builder.build()


def _counted() -> Topology:
    builder = StreamsBuilder()
    for topic in ("orders", "customers"):
        builder.stream(topic).group_by_key().count().to_stream().to("out")
    return builder.build()


def _merged() -> Topology:
    builder = StreamsBuilder()
    builder.stream(["orders", "customers"]).group_by_key().count().to_stream().to("out")
    return builder.build()


def _read(
    topology: Topology,
    partitioner: Callable[[bytes], int],
    counts: dict[str, int] | None = None,
    reported: Counter[str] | None = None,
) -> KeyPlacement:
    """Read both topics, whose keys are partitioned by a function; count what is sent to the driver."""
    partitions = counts or {"orders": _PARTITIONS, "customers": _PARTITIONS}
    layout = lay_out([Application(topology, TaskSettings("app", STRINGS))], partitions)
    key_placement = KeyPlacement()
    entry = SourceStage(layout, Slots(layout.task_count, 2), key_placement)
    for topic in partitions:
        for partition in range(_PARTITIONS):
            keys: list[bytes | None] = [key for key in _KEYS if partitioner(key) == partition]
            for envelope in entry.take(topic, partition, _batch(partition, keys)):
                if envelope.topic == MISPLACED_TOPIC and reported is not None:
                    assert envelope.task == SINK
                    reported[sorted(layout.routes)[envelope.origin]] += envelope.sequence
    return key_placement


@pytest.mark.parametrize("order", [("orders", "customers"), ("customers", "orders")])
def test_the_right_table_of_a_foreign_key_join_is_checked(
    order: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """Keys that librdkafka's default put elsewhere are counted; a warning names topic and fixes."""
    reported: Counter[str] = Counter()
    records = _read(_foreign_key_join(*order), _crc32, reported=reported)
    assert reported == records.misplaced
    # Rows of the left table may be in any partition, because responses go to the subscriber's
    # partition.
    assert set(records.checked) == {"customers"}
    assert 0 < records.misplaced["customers"] < records.checked["customers"] <= 3 * SAMPLE
    (warning,) = caplog.messages
    assert "Topic customers" in warning
    assert "'partitioner': 'murmur2_random'" in warning
    assert "builder.stream('customers').repartition()" in warning


@pytest.mark.parametrize(
    ("topology", "checked"),
    [
        (_foreign_key_join(), {"customers"}),
        (_merged(), {"orders", "customers"}),
        (_repartitioned(), set()),
        (_counted(), set()),
        (_with_partitioner(), set()),
    ],
    ids=["foreign key", "merged", "repartitioned", "alone", "a partitioner of its own"],
)
def test_keys_placed_by_murmur2_cause_no_warning(
    topology: Topology, checked: set[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Topics without a join, repartitioned ones, and those with a partitioner are not checked."""
    records = _read(topology, _murmur2)
    assert set(records.checked) == checked
    assert not records.misplaced
    assert not caplog.messages


def test_topics_of_different_partition_counts_are_not_checked() -> None:
    """Their records go to the task of their key from any partition."""
    records = _read(_merged(), _crc32, {"orders": _PARTITIONS, "customers": _PARTITIONS + 1})
    assert not records.checked


def _grown(
    partitioner: Callable[[bytes, int], int], partition_count: int, topology: Topology
) -> KeyPlacement:
    """Read a topic that had 3 partitions at the first start."""
    application = Application(topology, TaskSettings("app", STRINGS))
    layout = lay_out([application], {"orders": _PARTITIONS, "customers": _PARTITIONS})
    key_placement = KeyPlacement()
    entry = SourceStage(layout, Slots(layout.task_count, 2), key_placement)
    for partition in range(partition_count):
        keys: list[bytes | None] = [
            key for key in _KEYS if partitioner(key, partition_count) == partition
        ]
        list(entry.take("orders", partition, _batch(partition, keys), partition_count))
    return key_placement


def test_a_topic_with_state_is_checked_when_it_has_gained_partitions(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The warning names the topic, both numbers of partitions, and the remedies."""
    records = _grown(_crc32, _PARTITIONS + 1, _counted())
    assert 0 < records.misplaced["orders"] < records.checked["orders"]
    (warning,) = caplog.messages
    assert "Topic orders has 4 partitions, and 3 tasks have its state" in warning
    assert "a multiple of 3" in warning
    assert "ottla streams reset" in warning
    assert "builder.stream('orders').repartition()" in warning


def test_keys_in_the_partitions_of_before_are_not_misplaced() -> None:
    """Records that murmur2 placed before and after the growth are read together."""
    before = _grown(lambda key, _: partition_of(key, _PARTITIONS), _PARTITIONS + 1, _counted())
    after = _grown(partition_of, _PARTITIONS + 1, _counted())
    assert before.checked and after.checked
    assert not before.misplaced and not after.misplaced


def test_a_grown_topic_without_state_is_not_checked() -> None:
    """Nor is one whose tasks belong to its partitions, because it has a multiple of them."""
    builder = StreamsBuilder()
    builder.stream("orders").map_values(str.upper).to("out")
    assert not _grown(_crc32, _PARTITIONS + 1, builder.build()).checked
    assert not _grown(_crc32, _PARTITIONS * 2, _counted()).checked


def test_records_without_a_key_are_not_checked() -> None:
    """Keys that are too long to hash for a check are not counted either."""
    key_placement = KeyPlacement()
    for partition in range(_PARTITIONS):
        key_placement.check(
            "in", partition, pa.array([None, b"k" * 2000], pa.binary()), PartitionCounts(3, 3)
        )
    assert not key_placement.misplaced
    assert not key_placement.checked["in"]
