"""The counts of dropped records are sent from tasks to the driver."""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ottla.streams import Processor, Record, Serdes, Stores, StreamsBuilder
from ottla.streams.layout.layout import Application, Layout, lay_out
from ottla.streams.model.errors import DeserializationError
from ottla.streams.settings.handlers import (
    ErrorHandlerContext,
    ExceptionHandlers,
    LogAndContinueExceptionHandler,
    Response,
)
from ottla.streams.spark.connector.sink_counts import SinkCounts, append_counts
from ottla.streams.spark.layout.envelopes import (
    DROPPED_TOPIC,
    MISPLACED_TOPIC,
    RECORDS,
    SINK,
    Slots,
)
from ottla.streams.spark.stages.dropped_counts import DroppedCounts
from ottla.streams.spark.stages.tasks import SourceStage, Stage
from ottla.streams.task.task import Task, TaskSettings, TopicRecord
from tests.streams.staged import StagedRun


def _layout() -> Layout:
    builder = StreamsBuilder()
    builder.stream("words").group_by(lambda word: word or None).count()
    return lay_out([Application(builder.build(), TaskSettings("app"))], {"words": 2})


def _batch(*values: bytes | None) -> pa.RecordBatch:
    row = {"partition": 1, "timestamp": 0, "key": None, "headers": None}
    rows = [{**row, "offset": number, "value": each} for number, each in enumerate(values)]
    return pa.RecordBatch.from_pylist(rows, schema=RECORDS)


class _Pages(dict[str, bytes]):
    """The pages of a task, in memory."""

    def put(self, name: str, page: bytes) -> None:
        self[name] = page

    def remove(self, name: str) -> None:
        del self[name]


def test_a_source_task_reports_the_count_of_each_batch(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The count is an envelope without records; a batch without dropped records has no envelope."""
    layout = _layout()
    entry = SourceStage(layout, Slots(layout.task_count, 2))
    counts = []
    for batch in (_batch(b'""', b'"a"', b'""'), _batch(b'"a"'), _batch(b'""')):
        rows = [
            envelope
            for envelope in entry.take("words", 1, batch)
            if envelope.topic == DROPPED_TOPIC
        ]
        counts.append([(row.task, row.origin, row.sequence, row.records) for row in rows])
    assert counts == [[(SINK, 1, 2, b"")], [], [(SINK, 1, 1, b"")]]


def test_a_stage_reports_its_own_counts_and_forwards_others() -> None:
    """The aggregation drops a null key of a repartition topic."""
    layout = _layout()
    slots = Slots(layout.task_count, 2)
    entry, stage = SourceStage(layout, slots), Stage(layout, slots, 1, lambda: 0)
    (dropped,) = entry.take("words", 1, _batch(b'""'))
    assert list(stage.handle(dropped.slot, [dropped], _Pages())) == [dropped]
    (arrived,) = entry.take("words", 1, _batch(b'"a"'))
    alone = pa.RecordBatch.from_pylist(
        [{"partition": 0, "offset": 0, "timestamp": 0, "key": None, "value": b'"a"'}],
        schema=RECORDS,
    )
    sealed = stage._outbox.envelope(arrived.task, arrived.topic, arrived.origin, 0, alone)
    (count,) = stage.handle(arrived.slot, [sealed], _Pages())
    assert (count.topic, count.task, count.origin) == (DROPPED_TOPIC, SINK, arrived.task)
    assert count.sequence == 1


@dataclass
class _Row:
    counts: list[tuple[int, int]]
    topic: str = DROPPED_TOPIC

    def json(self) -> str:
        rows = [
            {"topic": self.topic, "origin": origin, "sequence": count}
            for origin, count in self.counts
        ]
        return json.dumps({"dropped": rows})


@dataclass
class _Report:
    batch: int
    counts: list[tuple[int, int]] | None = None
    topic: str = DROPPED_TOPIC

    def batchId(self) -> int:
        return self.batch

    def observedMetrics(self) -> dict[str, _Row]:
        return {} if self.counts is None else {"ottla": _Row(self.counts, self.topic)}


@dataclass
class _Query:
    reports: list[_Report] = field(default_factory=list)

    @property
    def _jsq(self) -> Any:
        return self

    def recentProgress(self) -> list[_Report]:
        return self.reports


def test_the_driver_adds_the_counts_of_each_micro_batch_once() -> None:
    """Counts have Kafka's task ids, which are numbered across queries."""
    counts, query = DroppedCounts(_layout(), first=3), _Query()
    assert counts.take(query) == {}  # type: ignore[arg-type]
    query.reports += [_Report(0), _Report(1, [(0, 2), (3, 5)])]
    assert counts.take(query) == {"3_0": 2, "4_1": 5}  # type: ignore[arg-type]
    assert counts.take(query) == {"3_0": 2, "4_1": 5}  # type: ignore[arg-type]
    query.reports = [query.reports[-1], _Report(2, []), _Report(3, [(0, 1)])]
    assert counts.take(query) == {"3_0": 3, "4_1": 5}  # type: ignore[arg-type]


def test_the_driver_adds_the_counts_of_the_sink(tmp_path: Path) -> None:
    """The first task of the sub-topology that writes a topic counts its rejected records."""
    builder = StreamsBuilder()
    builder.stream("words").group_by(lambda word: word).count().to_stream().to("out")
    layout = lay_out([Application(builder.build(), TaskSettings("app"))], {"words": 2})
    path = str(tmp_path / "counts")
    counts, query = DroppedCounts(layout, 0, path), _Query([_Report(0, [(1, 2)])])
    append_counts(path, [SinkCounts(Counter({1: 3}), Counter({"out": 4, "elsewhere": 5}))])
    expected = {"0_0": 5, "0_1": 5, "1_0": 4}
    assert counts.take(query) == expected  # type: ignore[arg-type]
    assert counts.take(query) == expected  # type: ignore[arg-type]


def test_the_driver_adds_up_misplaced_keys_by_topic() -> None:
    """They are not dropped records; topics that the layout does not name are counted together."""
    layout = _layout()
    counts, query = DroppedCounts(layout), _Query()
    (topic, *_) = sorted(layout.routes)
    unnamed = len(layout.routes)
    query.reports += [
        _Report(0, [(0, 2), (unnamed, 1)], MISPLACED_TOPIC),
        _Report(1, [(0, 3)], MISPLACED_TOPIC),
    ]
    assert counts.take(query) == {}  # type: ignore[arg-type]
    assert counts.misplaced == {topic: 5, "": 1}


def test_a_dropped_record_of_a_global_topic_is_counted_once() -> None:
    """Every task reads it, but only the first one counts it, and writes its dead letter."""
    builder = StreamsBuilder()
    places = builder.global_table("places", key=Serdes.string(), value=Serdes.long())
    for topic in ("one", "two"):
        stream = builder.stream(topic, key=Serdes.string(), value=Serdes.string())
        joined = stream.join(places, lambda value: value, lambda one, two: one)
        joined.group_by_key().count().to_stream().to("out")
    handlers = ExceptionHandlers(
        LogAndContinueExceptionHandler(), dead_letter_queue_topic_name="dead"
    )
    settings = TaskSettings("app", exception_handlers=handlers)
    topics = {"one": 3, "two": 2, "places": 1}
    run = StagedRun(Application(builder.build(), settings), topics=topics)
    rows = [
        TopicRecord(None, b"\0" * 8, 1),
        TopicRecord(b"k", b"unreadable", 1),
        TopicRecord(b"k", b"\0" * 8, 1),
    ]
    run.run({("places", 0): rows})
    assert run.dropped == 2
    assert len(run.produced["dead"]) == 1
    run.run({("one", 2): [TopicRecord(b"a", b"k", 2)], ("two", 1): [TopicRecord(b"a", b"k", 2)]})
    assert len(run.produced["out"]) == 2


class _Counting:
    """Skips what cannot be read or processed, and notes the records."""

    def __init__(self) -> None:
        self.records: list[Any] = []

    def handle_error(self, context: ErrorHandlerContext, record: Any, error: Exception) -> Response:
        """Skip the record."""
        self.records.append((context.topic, context.offset))
        return Response.resume()


class _Refusing(Processor[Any, Any, Any, Any]):
    """A processor of a global store that takes no record."""

    def process(self, record: Record[Any, Any]) -> None:
        """Refuse a record."""
        raise ValueError("refused")


def test_an_exception_handler_sees_a_record_of_a_global_topic_once() -> None:
    """Every task reads it; as in Kafka's global thread, the handler is called for it once."""
    unreadable, refused = _Counting(), _Counting()
    builder = StreamsBuilder()
    places = builder.global_table("places", key=Serdes.string(), value=Serdes.long())
    builder.add_global_store(Stores.key_value("all"), "refused", _Refusing)
    words = builder.stream("words", key=Serdes.string(), value=Serdes.string())
    words.join(places, lambda value: value, lambda one, two: one).to("out")
    handlers = ExceptionHandlers(unreadable, refused)
    application = Application(builder.build(), TaskSettings("app", exception_handlers=handlers))
    run = StagedRun(application, topics={"words": 3, "places": 1, "refused": 1})
    rows = [
        TopicRecord(b"k", b"unreadable", 1),
        TopicRecord(b"k", b"\0" * 8, 1),
    ]
    run.run({("places", 0): rows, ("refused", 0): [TopicRecord(b'"k"', b'"v"', 1)]})
    assert unreadable.records == [("places", 0)]
    assert refused.records == [("refused", 0)]
    assert run.dropped == 2
    run.run({("words", partition): [TopicRecord(b"a", b"k", 2)] for partition in range(3)})
    assert len(run.produced["out"]) == 3


def test_an_unreadable_record_of_a_global_topic_fails_the_batch_by_default() -> None:
    """Each task that cannot read it fails, not only the first."""
    builder = StreamsBuilder()
    places = builder.global_table("places", key=Serdes.string(), value=Serdes.long())
    words = builder.stream("words", key=Serdes.string(), value=Serdes.string())
    words.join(places, lambda value: value, lambda one, two: one).to("out")
    task = Task(builder.build(), TaskSettings("app"), lambda record: None, lambda: 0)
    with pytest.raises(DeserializationError):
        task.follow("places", TopicRecord(b"k", b"unreadable", 1))
