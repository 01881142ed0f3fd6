"""Functions that are called one inside the other write what a task writes."""

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from ottla.streams import Branched, Serdes, StreamsBuilder
from ottla.streams.errors import DeserializationError
from ottla.streams.handlers import ExceptionHandlers, LogAndContinueExceptionHandler
from ottla.streams.raw import TopicRecord
from ottla.streams.runtime import Task, TaskSettings
from ottla.streams.spark.envelopes import RECORDS, topic_records
from ottla.streams.spark.fused import PlainTask
from ottla.streams.spark.layout import Application, Kind, lay_out

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


def _kind(add: Callable[[StreamsBuilder], None], settings: TaskSettings) -> Kind:
    builder = StreamsBuilder()
    add(builder)
    (kind,) = lay_out([Application(builder.build(), settings)], {"in": 1}).kinds
    return kind


def _batch(rows: list[TopicRecord]) -> pa.RecordBatch:
    headers = [[{"key": k, "value": v} for k, v in each.headers] or None for each in rows]
    columns = [
        [0] * len(rows),
        list(range(len(rows))),
        [each.timestamp for each in rows],
        [each.key for each in rows],
        [each.value for each in rows],
        headers,
    ]
    arrays = [pa.array(each, one.type) for each, one in zip(columns, RECORDS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=RECORDS)


def _fused(task: PlainTask, rows: list[TopicRecord]) -> dict[str, list[tuple[Any, ...]]]:
    return {
        made.topic: [
            (place, each.key, each.value, each.timestamp, tuple(each.headers))
            for place, each in zip(made.places.tolist(), topic_records(made.records), strict=True)
        ]
        for made in task.run("in", _batch(rows))
    }


def _taken(kind: Kind, rows: list[TopicRecord]) -> dict[str, list[tuple[Any, ...]]]:
    found: dict[str, list[tuple[Any, ...]]] = {}
    made: list[Any] = []
    task = Task(kind.topology, kind.application.settings, made.append, lambda: 0)
    for place, row in enumerate(rows):
        made.clear()
        task.add("in", row)
        task.process_next()
        for each in made:
            told = (place, each.key, each.value, each.timestamp, tuple(each.headers))
            found.setdefault(each.topic, []).append(told)
    return found


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


def test_functions_write_what_a_task_writes() -> None:
    """Every step, to two topics; records that no serde reads in between; batch after batch."""
    chance = random.Random(7)
    kind = _kind(_all_steps, _GOES_ON)
    task = PlainTask(kind, lambda: 0)
    assert task._chains
    for count in (0, 1, 5, 200):
        rows = _rows(chance, count)
        assert _fused(task, rows) == _taken(kind, rows)


def test_a_record_that_cannot_be_read_ends_it() -> None:
    """With the task's own error, which names the record."""
    task = PlainTask(_kind(_all_steps, TaskSettings("app")), lambda: 0)
    rows = [TopicRecord(b"k", each, 1) for each in (b"1", b"{")]
    with pytest.raises(DeserializationError, match="in-0 at offset 1"):
        _fused(task, rows)
