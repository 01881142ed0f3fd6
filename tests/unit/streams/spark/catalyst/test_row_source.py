"""The source of a query in the JVM marks its records, and its sink processes the others."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from ottla.streams import Serdes, StreamsBuilder, col
from ottla.streams.layout.layout import Application, lay_out
from ottla.streams.settings.handlers import ExceptionHandlers, LogAndContinueExceptionHandler
from ottla.streams.spark.catalyst.row_source import (
    PLAIN,
    Columns,
    Finishing,
    columns_source,
    plain_bits,
)
from ottla.streams.spark.catalyst.steps import lower_layout
from ottla.streams.spark.stages.shipping import ship
from ottla.streams.spark.stages.topology_source import SourceSettings
from ottla.streams.task.task import TaskSettings

_TEXT = Serdes.string()
_WORDS = (None, b"", b"a", b"\xff", b"ab\x80c", b"\x7f", "é".encode())


def test_ascii_keys_and_values_are_marked() -> None:
    """Each is marked independently of its neighbours; a missing one counts as ASCII."""
    chance = random.Random(1)
    for _ in range(200):
        count = chance.randrange(9)
        keys, values = ([chance.choice(_WORDS) for _ in range(count)] for _ in range(2))
        # A slice of a larger array, like real batches.
        cut = pa.array([b"\xff", *keys, b"\xff"], pa.binary()).slice(1, count)
        expected = [
            PLAIN["key"] * (key or b"").isascii() + PLAIN["value"] * (value or b"").isascii()
            for key, value in zip(keys, values, strict=True)
        ]
        assert plain_bits(cut, pa.array(values, pa.binary())).to_pylist() == expected


def _to_python(
    columns: Columns,
    topic: str,
    value: bytes,
    partitions: Sequence[int] = (0,),
    dropped: Counter[int] | None = None,
) -> pa.RecordBatch:
    """Return what is written for a record in each partition of a topic if the JVM leaves it to
    Python.
    """
    count = len(partitions)
    targets = [-1 - columns.topic_numbers[topic]] * count
    fields = {"target": pa.array(targets, pa.int32())}
    fields["partition"] = pa.array(partitions, pa.int32())
    fields["offset"] = pa.array([7] * count, pa.int64())
    fields["timestamp"] = pa.array([1000] * count, pa.timestamp("us", "UTC"))
    for name, data in (("key", b"k"), ("value", value), ("headers", None)):
        fields[name] = pa.array([data] * count, pa.binary())
    return Finishing(columns, dropped).finish(pa.RecordBatch.from_pydict(fields))


def _columns(partition_count: int = 1) -> Columns:
    """Return the settings of a query with a source of two topics; it skips unreadable records."""
    builder = StreamsBuilder()
    stream = builder.stream(["one", "two"], key=_TEXT, value=_TEXT).filter(col("value") != "x")
    stream.to(lambda key, value, context: f"from-{context.topic}", key=_TEXT, value=_TEXT)
    handlers = ExceptionHandlers(
        LogAndContinueExceptionHandler(), dead_letter_queue_topic_name="dead"
    )
    settings = TaskSettings("app", exception_handlers=handlers)
    counts = {"one": partition_count, "two": partition_count}
    layout = lay_out([Application(builder.build(), settings)], counts)
    lowered = lower_layout(layout)
    assert lowered is not None
    source_class: Any = columns_source("x", SourceSettings(ship(layout, 1)), lowered)
    sink = source_class({"kafka.bootstrap.servers": "127.0.0.1:1"}).streamWriter(None, False)
    columns: Columns = sink.opened.settings
    return columns


@pytest.mark.parametrize("topic", ["one", "two"])
def test_records_left_to_python_keep_their_topic(topic: str) -> None:
    """The topics of one source have numbers of their own, which functions and dead letters need."""
    (record,) = _to_python(_columns(), topic, b"v").to_pylist()
    assert record["topic"] == f"from-{topic}"
    (letter,) = _to_python(_columns(), topic, b"\xff").to_pylist()
    headers = {header["key"]: header["value"] for header in letter["headers"]}
    assert headers["__streams.errors.topic"] == topic.encode()


def test_dropped_records_are_counted_by_the_task_of_their_partition() -> None:
    """Records of several partitions keep their order."""
    dropped: Counter[int] = Counter()
    columns = _columns(partition_count=3)
    letters = _to_python(columns, "two", b"\xff", [2, 0, 2], dropped).to_pylist()
    assert dropped == {0: 1, 2: 2}
    partitions = [
        header["value"]
        for letter in letters
        for header in letter["headers"]
        if header["key"] == "__streams.errors.partition"
    ]
    assert partitions == [b"2", b"0", b"2"]
    written = _to_python(columns, "two", b"v", [2, 0, 2], dropped)
    assert written.num_rows == 3
    assert dropped == {0: 1, 2: 2}
