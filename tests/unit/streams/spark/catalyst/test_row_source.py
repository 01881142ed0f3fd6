"""The source of a query in the JVM marks its records, and its sink processes the others."""

import random
from typing import Any

import pyarrow as pa
import pytest

from ottla.streams import Serdes, StreamsBuilder, col
from ottla.streams.settings.handlers import ExceptionHandlers, LogAndContinueExceptionHandler
from ottla.streams.spark.catalyst.row_source import (
    PLAIN,
    Columns,
    Finishing,
    columns_source,
    plain_bits,
)
from ottla.streams.spark.catalyst.steps import lower_layout
from ottla.streams.spark.layout.layout import Application, lay_out
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


def _to_python(columns: Columns, topic: str, value: bytes) -> pa.RecordBatch:
    """Return the record that is written for a record of a topic that the JVM leaves to Python."""
    target = -1 - columns.topic_numbers[topic]
    fields = {"target": pa.array([target], pa.int32()), "partition": pa.array([0], pa.int32())}
    fields |= {"offset": pa.array([7], pa.int64())}
    fields |= {"timestamp": pa.array([1000], pa.timestamp("us", "UTC"))}
    for name, data in (("key", b"k"), ("value", value), ("headers", None)):
        fields[name] = pa.array([data], pa.binary())
    return Finishing(columns).finish(pa.RecordBatch.from_pydict(fields))


@pytest.mark.parametrize("topic", ["one", "two"])
def test_records_left_to_python_keep_their_topic(topic: str) -> None:
    """The topics of one source have numbers of their own, which functions and dead letters need."""
    builder = StreamsBuilder()
    stream = builder.stream(["one", "two"], key=_TEXT, value=_TEXT).filter(col("value") != "x")
    stream.to(lambda key, value, context: f"from-{context.topic}", key=_TEXT, value=_TEXT)
    handlers = ExceptionHandlers(
        LogAndContinueExceptionHandler(), dead_letter_queue_topic_name="dead"
    )
    settings = TaskSettings("app", exception_handlers=handlers)
    layout = lay_out([Application(builder.build(), settings)], {"one": 1, "two": 1})
    lowered = lower_layout(layout)
    assert lowered is not None
    source_class: Any = columns_source("x", SourceSettings(ship(layout, 1)), lowered)
    sink = source_class({"kafka.bootstrap.servers": "127.0.0.1:1"}).streamWriter(None, False)
    (record,) = _to_python(sink.opened.settings, topic, b"v").to_pylist()
    assert record["topic"] == f"from-{topic}"
    (letter,) = _to_python(sink.opened.settings, topic, b"\xff").to_pylist()
    headers = {header["key"]: header["value"] for header in letter["headers"]}
    assert headers["__streams.errors.topic"] == topic.encode()
