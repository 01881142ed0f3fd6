"""Stores of running tasks are read while they change."""

import threading
from collections.abc import Iterator

import pytest

from ottla.client.records import TopicPartition
from ottla.streams import InvalidStateStoreError, Processor, Serdes, Stores, StreamsBuilder
from ottla.streams.layout.layout import Application
from ottla.streams.local.layout import TaskId, task_layout
from ottla.streams.local.reading import LocalStores
from ottla.streams.local.running import RunningTask
from ottla.streams.local.state import TaskState
from ottla.streams.queries.store_views import KeyValueView
from ottla.streams.serdes import DefaultSerdes
from ottla.streams.stores.ordered import open_memory
from ottla.streams.task.task import TaskSettings, TopicRecord

_RECORDS, _WAIT_S = 3_000, 60.0
_IN, _TASK = TopicPartition("in", 0), TaskId(0, 0)


class _Pairs(Processor):
    """Writes each record's offset under two keys, and a key of its own."""

    def process(self, record) -> None:  # type: ignore[no-untyped-def]
        store = self.context.get_state_store("pairs")
        offset = str(self.context.record_metadata.offset)
        store.put("a-first", offset)
        store.put(f"b-{offset}", offset)
        store.put("c-last", offset)

    def init(self, context) -> None:  # type: ignore[no-untyped-def]
        self.context = context


@pytest.fixture
def running() -> Iterator[RunningTask]:
    """A task with the records of one partition."""
    builder = StreamsBuilder()
    builder.add_state_store(Stores.key_value("pairs"))
    builder.stream("in").process(_Pairs, "pairs")
    settings = TaskSettings("app", DefaultSerdes(Serdes.string(), Serdes.string()))
    layout = task_layout(Application(builder.build(), settings), {"in": 1})
    state = TaskState(_TASK, open_memory, frozenset())
    part, inputs = layout.sub_topologies[0], layout.inputs[_TASK]
    task = RunningTask(state, part, inputs, lambda _: None, lambda: 0)
    for offset in range(_RECORDS):
        task.add(_IN, TopicRecord(None, b"x", offset, (), 0, offset))
    yield task


def _view(task: RunningTask) -> KeyValueView:
    return KeyValueView("pairs", LocalStores("pairs", lambda: [task]))


def test_a_range_has_all_effects_of_a_record_or_none(running: RunningTask) -> None:
    """The task processes in a thread of its own, and lets each reader pass after a record."""
    view = _view(running)
    running.process(1)
    writer = threading.Thread(target=running.process, args=(_RECORDS,))
    writer.start()
    seen = []
    while writer.is_alive() or not seen:
        rows = [(key, value) for key, value in view.all()]
        assert rows[0][1] == rows[-1][1]
        assert len(rows) == int(rows[0][1]) + 3
        seen.append(int(rows[0][1]))
    writer.join(_WAIT_S)
    assert seen == sorted(seen)
    assert view.get("c-last") == str(_RECORDS - 1)


def test_the_task_lets_a_waiting_reader_pass_before_its_next_record(running: RunningTask) -> None:
    """It does not process all of its records first."""
    started, results = threading.Event(), []
    gate = running.gate

    def read() -> None:
        started.set()
        with gate.reading():
            results.append(running.buffered(_IN))

    with gate.writing():
        reader = threading.Thread(target=read)
        reader.start()
        assert started.wait(_WAIT_S)
        while not gate.is_wanted:
            reader.join(0.001)
    running.process(_RECORDS)
    reader.join(_WAIT_S)
    assert results
    assert results[0] > 0


def test_a_store_of_a_closed_task_is_not_read(running: RunningTask) -> None:
    """The error is Kafka's, and says that the task may have moved."""
    view = _view(running)
    running.process(1)
    assert view.get("a-first") == "0"
    running.close()
    with pytest.raises(InvalidStateStoreError, match="may have moved to another instance"):
        view.get("a-first")
