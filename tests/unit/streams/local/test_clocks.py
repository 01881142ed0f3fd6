"""The times of a task survive in the metadata of its committed offsets."""

import base64

from hypothesis import given
from hypothesis import strategies as st

from ottla.streams import Serdes, StreamsBuilder, TimeWindows, Topology
from ottla.streams.local import clocks
from ottla.streams.serdes import DefaultSerdes
from ottla.streams.task.task import Task, TaskSettings, TopicRecord

_INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(_INT64, st.dictionaries(st.text("abc._é", min_size=1, max_size=9), _INT64))
def test_metadata_is_read_as_it_was_written(time: int, times: dict[str, int]) -> None:
    """Also with the NUL character that librdkafka adds."""
    expected = {"t": time} | times
    assert clocks.decode(clocks.encode(time, times)) == expected
    assert clocks.decode(clocks.encode(time, times) + "\0") == expected


def test_the_form_is_that_of_kafka_streams() -> None:
    """Version 2: the partition time, the number of entries, and each name with its number."""
    data = base64.b64decode(clocks.encode(5, {"ab": 7}))
    assert data == b"\2" + (5).to_bytes(8) + (1).to_bytes(4) + (2).to_bytes(4) + b"ab" + (
        7
    ).to_bytes(8)


def test_other_metadata_has_no_times() -> None:
    """Metadata of other clients, and of version 1 of Kafka Streams, which has only a time."""
    version_1 = base64.b64encode(b"\1" + (5).to_bytes(8)).decode()
    assert [clocks.decode(text) for text in ("", "note", version_1)] == [{}, {}, {}]


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
    clocks.set_times(second, clocks.decode(clocks.encode(100, clocks.times_of(first))))
    second.add("in", TopicRecord(b"a", b"1", 50))
    second.process_next()
    assert second.dropped.total == 1
