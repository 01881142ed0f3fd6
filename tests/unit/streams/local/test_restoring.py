"""Restores report to the listener, and show how much is left."""

from collections.abc import Iterable, Mapping

import pytest

from ottla.client.records import TopicPartition
from ottla.streams import Serdes, StateRestoreListener, StreamsBuilder, StreamsError
from ottla.streams.layout.layout import Application
from ottla.streams.local.inputs import Arrived, Ended
from ottla.streams.local.layout import TaskId, task_layout
from ottla.streams.local.replicas.task_states import TaskStates
from ottla.streams.local.restoring import Restorer
from ottla.streams.model.raw import TopicRecord
from ottla.streams.serdes import DefaultSerdes
from ottla.streams.stores.ordered import open_memory
from ottla.streams.task.task import TaskSettings

_DEFAULTS = DefaultSerdes(Serdes.string(), Serdes.string())
_TASK, _KEY = TaskId(0, 0), TopicPartition("app-counts-changelog", 0)


class Listener(StateRestoreListener):
    """Notes all events."""

    def __init__(self) -> None:
        self.events: list[tuple[object, ...]] = []

    def on_restore_start(
        self, partition: TopicPartition, store_name: str, start_offset: int, end_offset: int
    ) -> None:
        """Note the start."""
        self.events.append(("start", partition, store_name, start_offset, end_offset))

    def on_batch_restored(
        self, partition: TopicPartition, store_name: str, batch_end_offset: int, count: int
    ) -> None:
        """Note a batch."""
        self.events.append(("batch", batch_end_offset, count))

    def on_restore_end(self, partition: TopicPartition, store_name: str, total: int) -> None:
        """Note the end."""
        self.events.append(("end", total))

    def on_restore_suspended(self, partition: TopicPartition, store_name: str, total: int) -> None:
        """Note that the task was given up."""
        self.events.append(("suspended", total))


class Broken(StateRestoreListener):
    """Fails at the start."""

    def on_restore_start(
        self, partition: TopicPartition, store_name: str, start_offset: int, end_offset: int
    ) -> None:
        """Fail."""
        raise ValueError("no screen")


class Fixture:
    """A restore of a changelog that returns two records with each read."""

    def __init__(self, listener: StateRestoreListener, end: int) -> None:
        builder = StreamsBuilder()
        builder.stream("in").group_by_key().count(materialized="counts")
        application = Application(builder.build(), TaskSettings("app", _DEFAULTS))
        layout = task_layout(application, {"in": 1})
        self.assigned: set[TopicPartition] = set()
        self._next = 0
        self.restorer = Restorer(lambda: self, listener)  # type: ignore[arg-type, return-value]
        states = TaskStates(open_memory, frozenset(), _DEFAULTS, None, self)
        spans = {_KEY: (0, end)}
        state = states.open(_TASK, layout, spans, lambda *_: None)
        assert state is not None
        self.restorer.begin(state, layout.changelogs(_TASK), spans)

    def topic_id(self, topic: str) -> str:
        """Return the id of a topic."""
        return topic

    def add(self, starts: Mapping[TopicPartition, int]) -> None:
        """Read these partitions."""
        self.assigned |= starts.keys()

    def remove(self, keys: Iterable[TopicPartition]) -> None:
        """Stop reading partitions."""
        self.assigned -= set(keys)

    def poll(self, most: int, timeout_s: float) -> list[Arrived | Ended]:
        """Return the next two records."""
        offsets = range(self._next, self._next + 2)
        self._next += 2
        value = (1).to_bytes(8, "big")
        return [
            Arrived(_KEY, TopicRecord(b"k%d" % offset, value, 0, (), 0, offset))
            for offset in offsets
        ]


def test_a_restore_is_reported_from_its_start_to_its_end() -> None:
    """Each batch has the offset of its last record; the total counts records."""
    listener = Listener()
    run = Fixture(listener, 4)
    assert (run.restorer.left, run.restorer.total) == (4, 4)
    assert run.restorer.step(0.0) == []
    assert (run.restorer.left, run.restorer.total) == (2, 4)
    assert [state.task for state in run.restorer.step(0.0)] == [_TASK]
    assert listener.events == [
        ("start", _KEY, "counts", 0, 4),
        ("batch", 1, 2),
        ("batch", 3, 2),
        ("end", 4),
    ]


def test_a_task_that_is_given_up_suspends_its_restore() -> None:
    """The total has the records that were restored until then (KIP-869)."""
    listener = Listener()
    run = Fixture(listener, 4)
    run.restorer.step(0.0)
    run.restorer.cancel(_TASK)
    assert listener.events[-1] == ("suspended", 2)
    assert run.assigned == set()


def test_a_restore_without_records_is_reported_too() -> None:
    """As in Kafka, each changelog of an active task has a start and an end."""
    listener = Listener()
    run = Fixture(listener, 0)
    assert [state.task for state in run.restorer.step(0.0)] == [_TASK]
    assert listener.events == [("start", _KEY, "counts", 0, 0), ("end", 0)]


def test_an_error_of_a_listener_names_the_event() -> None:
    """As in Kafka, it ends the worker."""
    with pytest.raises(StreamsError, match="restore listener failed at the start"):
        Fixture(Broken(), 4)
