"""Fused functions, which call each other directly, write the same records as a task."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ottla.streams import Branched, Serdes, StreamsBuilder
from ottla.streams.layout.layout import Application, SubTopology, lay_out
from ottla.streams.model.errors import DeserializationError, SerializationError
from ottla.streams.model.raw import TopicRecord
from ottla.streams.settings.handlers import (
    ExceptionHandlers,
    LogAndContinueExceptionHandler,
    LogAndContinueProductionExceptionHandler,
)
from ottla.streams.spark.layout.envelopes import RECORDS, topic_records
from ottla.streams.spark.stages.fused import PlainTask
from ottla.streams.task.task import Task, TaskSettings

_TEXT = Serdes.string()
_JSON: Any = Serdes.json()
_GOES_ON = TaskSettings(
    "app",
    exception_handlers=ExceptionHandlers(
        LogAndContinueExceptionHandler(), dead_letter_queue_topic_name=None
    ),
)


def _all_steps(builder: StreamsBuilder) -> None:
    stream = builder.stream("in", key=_TEXT, value=_JSON).filter(lambda v: v != 3)
    stream.filter_not(lambda v: v == 4).map(lambda k, v: (f"{k}!", v)).to(
        "a", key=_TEXT, value=_JSON
    )
    split = stream.select_key(lambda k, v: str(v)).split("by-")
    split.branch(
        lambda v: isinstance(v, int),
        Branched.with_consumer(lambda s: s.to("a", key=_TEXT, value=_JSON)),
    )
    rest = split.default_branch("rest")["by-rest"]
    flat = rest.flat_map(lambda k, v: [(k, v), (v, k)]).flat_map_values(lambda v: [v, None])
    flat.peek(lambda k, v: None).to("b", key=_JSON, value=_JSON)
    rest.merge(stream).map_values(lambda v: [v]).to("a", key=_JSON, value=_JSON)
    stream.foreach(lambda v: None)


def _kind(add: Callable[[StreamsBuilder], None], settings: TaskSettings) -> SubTopology:
    builder = StreamsBuilder()
    add(builder)
    (kind,) = lay_out([Application(builder.build(), settings)], {"in": 1}).sub_topologies
    return kind


def _batch(rows: list[TopicRecord]) -> pa.RecordBatch:
    headers = [[{"key": k, "value": v} for k, v in row.headers] or None for row in rows]
    columns = [
        [0] * len(rows),
        list(range(len(rows))),
        [row.timestamp for row in rows],
        [row.key for row in rows],
        [row.value for row in rows],
        headers,
    ]
    arrays = [pa.array(each, one.type) for each, one in zip(columns, RECORDS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=RECORDS)


def _fused(task: PlainTask, rows: list[TopicRecord]) -> dict[str, list[tuple[Any, ...]]]:
    return {
        output.topic: [
            (number, each.key, each.value, each.timestamp, tuple(each.headers))
            for number, each in zip(
                output.row_numbers.tolist(), topic_records(output.records), strict=True
            )
        ]
        for output in task.run("in", _batch(rows))
    }


def _taken(kind: SubTopology, rows: list[TopicRecord]) -> dict[str, list[tuple[Any, ...]]]:
    entries: dict[str, list[tuple[Any, ...]]] = {}
    output: list[Any] = []
    task = Task(kind.topology, kind.application.settings, output.append, lambda: 0)
    for index, row in enumerate(rows):
        output.clear()
        task.add("in", row)
        task.process_next()
        for each in output:
            record = (index, each.key, each.value, each.timestamp, tuple(each.headers))
            entries.setdefault(each.topic, []).append(record)
    return entries


def _rows(chance: random.Random, count: int) -> list[TopicRecord]:
    values = (None, b"1", b"3", b"4", b'"x"', b"[]", b"{", b"\xff")
    keys = (None, b"k", b"\xff", b"")
    headers = ((), (("h", b"1"), ("h", None)))
    return [
        TopicRecord(
            chance.choice(keys), chance.choice(values), chance.randrange(99), chance.choice(headers)
        )
        for _ in range(count)
    ]


def test_fused_functions_write_what_a_task_writes() -> None:
    """All steps, two sinks, unreadable records and several batches are covered."""
    chance = random.Random(7)
    kind = _kind(_all_steps, _GOES_ON)
    task = PlainTask(kind, lambda: 0)
    assert task._chains
    for count in (0, 1, 5, 200):
        rows = _rows(chance, count)
        assert _fused(task, rows) == _taken(kind, rows)


def test_an_unreadable_record_ends_the_task() -> None:
    """The error is the same as in a task and names the record."""
    task = PlainTask(_kind(_all_steps, TaskSettings("app")), lambda: 0)
    rows = [TopicRecord(b"k", value, 1) for value in (b"1", b"{")]
    with pytest.raises(DeserializationError, match="in-0 at offset 1"):
        _fused(task, rows)


_SKIPS = TaskSettings(
    "app",
    exception_handlers=ExceptionHandlers(
        LogAndContinueExceptionHandler(), production=LogAndContinueProductionExceptionHandler()
    ),
)


def _json_rows(*values: bytes) -> list[TopicRecord]:
    return [TopicRecord(b"k", value, 1) for value in values]


def test_a_function_that_raises_is_called_once() -> None:
    """Its error has a note with the record and the node; later records are not processed."""
    seen: list[Any] = []

    def divide(value: Any) -> Any:
        seen.append(value)
        return 12 // value

    def add(builder: StreamsBuilder) -> None:
        stream = builder.stream("in", key=_TEXT, value=_JSON).filter(lambda v: v != 9)
        stream.map_values(divide, named="divide").to("out", key=_TEXT, value=_JSON)

    task = PlainTask(_kind(add, TaskSettings("app")), lambda: 0)
    assert task._chains
    with pytest.raises(ZeroDivisionError) as caught:
        _fused(task, _json_rows(b"1", b"9", b"0", b"3"))
    assert seen == [1, 0]
    (note,) = caught.value.__notes__
    assert note.startswith("Raised at the record of topic in, partition 0, offset 2, in divide.")
    assert caught.traceback[-1].path == Path(__file__)


@pytest.mark.parametrize("error", [ValueError, KeyError, RuntimeError, EOFError])
def test_any_exception_ends_the_task(error: type[Exception]) -> None:
    """This includes the types that serdes raise for invalid values."""
    seen: list[Any] = []

    def fail(key: Any, value: Any) -> None:
        seen.append(value)
        raise error("mine")

    def add(builder: StreamsBuilder) -> None:
        builder.stream("in", key=_TEXT, value=_JSON).foreach(fail, named="fail")

    task = PlainTask(_kind(add, _SKIPS), lambda: 0)
    with pytest.raises(error, match="mine") as caught:
        _fused(task, _json_rows(b"1"))
    assert seen == [1]
    assert "offset 0, in fail." in caught.value.__notes__[0]


def test_a_result_that_cannot_be_serialized_is_skipped_without_another_call() -> None:
    """The other results of its record are written."""
    seen: list[Any] = []

    def add(builder: StreamsBuilder) -> None:
        stream = builder.stream("in", key=_TEXT, value=_JSON).peek(lambda v: seen.append(v))
        stream.to("text", key=_TEXT, value=_TEXT)
        stream.to("all", key=_TEXT, value=_JSON)

    kind = _kind(add, _SKIPS)
    rows = _json_rows(b"1", b'"x"', b"{", b"2")
    actual = _fused(PlainTask(kind, lambda: 0), rows)
    assert seen == [1, "x", 2]
    assert actual == _taken(kind, rows)
    assert [number for number, *_ in actual["text"]] == [1]
    assert [number for number, *_ in actual["all"]] == [0, 1, 3]


def test_a_result_that_cannot_be_serialized_ends_the_task() -> None:
    """The error has the record, the sink, and the fix."""

    def add(builder: StreamsBuilder) -> None:
        builder.stream("in", key=_TEXT, value=_JSON).to("text", key=_TEXT, value=_TEXT)

    with pytest.raises(SerializationError) as caught:
        _fused(PlainTask(_kind(add, TaskSettings("app")), lambda: 0), _json_rows(b'"x"', b"1"))
    assert "the value of a record for text cannot be written by" in str(caught.value)
    assert (
        "offset 1, in KSTREAM-SINK-0000000001. Set the serdes of the sink"
        in caught.value.__notes__[0]
    )


def test_functions_are_not_called_after_an_unreadable_record() -> None:
    """Their results would not be written."""
    seen: list[Any] = []

    def add(builder: StreamsBuilder) -> None:
        builder.stream("in", key=_TEXT, value=_JSON).foreach(lambda v: seen.append(v))

    with pytest.raises(DeserializationError):
        _fused(PlainTask(_kind(add, TaskSettings("app")), lambda: 0), _json_rows(b"1", b"{", b"2"))
    assert seen == [1]
