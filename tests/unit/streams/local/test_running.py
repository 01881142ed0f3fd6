"""A task waits for its other input partitions (KIP-695), and commits what it has processed."""

from ottla.client.records import TopicPartition
from ottla.streams import Serdes, StreamsBuilder
from ottla.streams.layout.layout import Application
from ottla.streams.local.layout import TaskId, task_layout
from ottla.streams.local.running import RunningTask
from ottla.streams.local.state import TaskState
from ottla.streams.model import committed_times
from ottla.streams.serdes import DefaultSerdes
from ottla.streams.stores.ordered import open_memory
from ottla.streams.task.task import ProducedRecord, TaskSettings, TopicRecord

_LEFT, _RIGHT = TopicPartition("left", 0), TopicPartition("right", 0)


class Fixture:
    """A running task of two topics that are merged, on a clock of its own."""

    def __init__(self, idle_ms: int = 0) -> None:
        builder = StreamsBuilder()
        builder.stream("left").merge(builder.stream("right")).to("out")
        settings = TaskSettings("app", DefaultSerdes(Serdes.string(), Serdes.string()))
        layout = task_layout(Application(builder.build(), settings), {"left": 1, "right": 1})
        self.now = 0
        self.written: list[ProducedRecord] = []
        state = TaskState(TaskId(0, 0), open_memory, frozenset())
        self.task = RunningTask(
            state,
            layout.sub_topologies[0],
            layout.inputs[TaskId(0, 0)],
            self.written.append,
            lambda: self.now,
            idle_ms,
        )

    def add(self, key: TopicPartition, offset: int, time: int) -> None:
        """Add a record whose value is its topic and offset."""
        self.task.add(key, TopicRecord(None, f"{key.topic}{offset}".encode(), time, (), 0, offset))

    @property
    def values(self) -> list[bytes | None]:
        """The values that were written."""
        return [record.value for record in self.written]


def test_a_record_waits_until_the_other_partition_is_known_to_be_empty() -> None:
    """Before the first response, an earlier record may be there."""
    run = Fixture()
    run.add(_LEFT, 0, 10)
    assert run.task.process(9) == 0
    run.task.reach_end(_RIGHT, 0)
    assert run.task.process(9) == 1


def test_records_of_two_partitions_follow_their_timestamps() -> None:
    """The right topic arrives later, and its record is earlier."""
    run = Fixture()
    run.add(_LEFT, 0, 10)
    run.task.process(9)
    run.add(_RIGHT, 0, 5)
    run.task.reach_end(_RIGHT, 1)
    run.task.reach_end(_LEFT, 1)
    run.task.process(9)
    assert run.values == [b"right0", b"left0"]


def test_an_empty_partition_is_awaited_for_the_idle_time() -> None:
    """max.task.idle.ms counts from when all other partitions had been read to their ends."""
    run = Fixture(idle_ms=100)
    run.add(_LEFT, 0, 10)
    run.task.reach_end(_RIGHT, 0)
    assert run.task.process(9) == 0
    run.now = 99
    assert run.task.process(9) == 0
    run.now = 100
    assert run.task.process(9) == 1


def test_a_task_that_never_waits_processes_at_once() -> None:
    """max.task.idle.ms=-1."""
    run = Fixture(idle_ms=-1)
    run.add(_LEFT, 0, 10)
    assert run.task.process(9) == 1


def test_the_offset_of_the_first_record_that_waits_is_committed() -> None:
    """Records that were read and not processed are read again after a restart."""
    run = Fixture()
    for offset in range(3):
        run.add(_LEFT, offset, 10 + offset)
    run.task.reach_end(_RIGHT, 7)
    run.task.process(2)
    offsets = run.task.offsets()
    assert {key: offset for key, (offset, _) in offsets.items()} == {_LEFT: 2, _RIGHT: 7}
    assert committed_times.decode(offsets[_LEFT][1])["t"] == 11
    run.task.note_committed(offsets)
    assert run.task.offsets() == {}
