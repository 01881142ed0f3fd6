"""A task that is created again continues with the state of the previous one."""

import threading
from typing import Any

from ottla.streams import Processor, PunctuationType, Record, Serdes, Stores, Topology
from ottla.streams.processor.api import Cancellable
from ottla.streams.serdes import DefaultSerdes
from ottla.streams.spark.stages.task_memory import TaskMemory
from ottla.streams.task.task import ProducedRecord, Task, TaskSettings, TopicRecord

_TEXT = Serdes.string()
_SETTINGS = TaskSettings("app", DefaultSerdes(_TEXT, _TEXT))


class _Counter(Processor[str, str, str, str]):
    """A processor with fields of many types, and with punctuators."""

    stores = (Stores.key_value("seen", _TEXT, _TEXT),)
    ticking: Cancellable

    def init(self, context: Any) -> None:
        """Initialize the fields."""
        super().init(context)
        self.seen = context.store("seen")
        self.values: list[str] = []
        self.lock = threading.Lock()
        self.late: Cancellable | None = None
        self.ticking = context.schedule(10, PunctuationType.STREAM_TIME, self.tick)

    def tick(self, now: int) -> None:
        """Forward all values."""
        self.context.forward(Record("tick", ".".join(self.values), now))

    def process(self, record: Record[str, str]) -> None:
        """Store a value; some values change the punctuators."""
        self.values.append(record.value)
        if record.value == "stop":
            self.ticking.cancel()
        if record.value == "late":
            self.late = self.context.schedule(5, PunctuationType.STREAM_TIME, self.tick)


def _topology() -> Topology:
    topology = Topology().add_source("Source", "in").add_processor("Count", _Counter, "Source")
    return topology.add_sink("Sink", "out", "Count")


def _values(values: list[tuple[str, int]], *, restarts: bool) -> list[ProducedRecord]:
    """Process the records in one task, or in a new task for each record."""
    produced: list[ProducedRecord] = []
    task, remembered = None, None
    for number, (value, time) in enumerate(values):
        if task is None or restarts:
            task = Task(_topology(), _SETTINGS, produced.append, lambda: 0)
            memory = TaskMemory(task)
            if remembered is not None:
                memory.recall(remembered)
        task.add("in", TopicRecord(b"k", value.encode(), time, (), 0, number))
        while task.process_next():
            task.punctuate_stream_time()
        remembered = memory.remember()
    return [record for record in produced if record.topic == "out"]


def test_fields_and_punctuators_persist() -> None:
    """Later fields and cancelled punctuators persist, too; locks are created again."""
    values = [("a", 3), ("b", 14), ("late", 15), ("c", 21), ("stop", 26), ("d", 50)]
    expected = _values(values, restarts=False)
    assert len(expected) == 7
    assert _values(values, restarts=True) == expected
