"""The times of a task survive in the metadata of its committed offsets."""

from ottla.streams import Serdes, StreamsBuilder, TimeWindows, Topology
from ottla.streams.local import clocks
from ottla.streams.model.committed_times import decode, encode
from ottla.streams.serdes import DefaultSerdes
from ottla.streams.task.task import Task, TaskSettings, TopicRecord


def _closing() -> Topology:
    builder = StreamsBuilder()
    windows = TimeWindows.of_size_with_no_grace(10)
    builder.stream("in").group_by_key().windowed_by(windows).count().to_stream().map(
        lambda key, value: (key.key, str(value))
    ).to("out")
    return builder.build()


def test_a_task_with_restored_times_drops_late_records() -> None:
    """Without the stream time of the operator, a window that was closed would open again."""
    texts = DefaultSerdes(Serdes.string(), Serdes.string())
    first = Task(_closing(), TaskSettings("app", texts), lambda _: None, lambda: 0)
    first.add("in", TopicRecord(b"a", b"1", 100))
    first.process_next()
    second = Task(_closing(), TaskSettings("app", texts), lambda _: None, lambda: 0)
    clocks.set_times(second, decode(encode(100, clocks.times_of(first))))
    second.add("in", TopicRecord(b"a", b"1", 50))
    second.process_next()
    assert second.dropped.total == 1
