"""The routes of records of topics whose partition count differs from the number of tasks."""

import pyarrow as pa
import pytest

from ottla.streams import StreamsBuilder
from ottla.streams.layout.layout import Application, lay_out
from ottla.streams.spark.layout.envelopes import RECORDS, Slots, topic_records
from ottla.streams.spark.stages.tasks import SourceStage
from ottla.streams.task.task import TaskSettings
from ottla.wire.records.columnar_partitioner import partitions_of

KEYS = [b"%d" % number for number in range(20)]


def _entry() -> SourceStage:
    builder = StreamsBuilder()
    builder.stream("words").group_by_key().count()
    layout = lay_out([Application(builder.build(), TaskSettings("app"))], {"words": 2})
    return SourceStage(layout, Slots(layout.task_count, 2))


def _batch(partition: int, count: int) -> pa.RecordBatch:
    """The records of a partition, partitioned by a producer with `count` partitions."""
    chosen = partitions_of(pa.array(KEYS), count, 0).tolist()
    keys = [key for key, each in zip(KEYS, chosen, strict=True) if each == partition]
    row = {"partition": partition, "timestamp": 0, "value": b"x", "headers": None}
    rows = [{**row, "offset": number, "key": key} for number, key in enumerate(keys)]
    return pa.RecordBatch.from_pylist(rows, schema=RECORDS)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_a_key_stays_with_its_task(count: int) -> None:
    """The task has the key's state, even if the topic now has more partitions."""
    entry = _entry()
    tasks: dict[bytes | None, int] = {}
    for partition in range(count):
        batch = _batch(partition, count)
        for envelope in entry.take("words", partition, batch, count):
            actual = {record.key: envelope.task for record in topic_records(envelope.records)}
            assert {record.partition for record in topic_records(envelope.records)} == {partition}
            tasks |= actual
    expected = partitions_of(pa.array(KEYS), 2, 0).tolist()
    assert tasks == dict(zip(KEYS, expected, strict=True))
