"""TopologyTestDriver: input and output records, virtual time, stores and errors."""

import re
from dataclasses import dataclass
from typing import Any

import pytest

from ottla.streams import (
    DeserializationError,
    Processor,
    PunctuationType,
    Record,
    Serdes,
    SerializationError,
    Stores,
    StreamsBuilder,
    StreamsError,
    TimeWindows,
    Topology,
    TopologyError,
    TopologyTestDriver,
)


class WordCount(Processor[str, str, str, int]):
    """Count words, and forward the counts every second of stream time."""

    stores = (Stores.key_value("Counts", Serdes.string(), Serdes.long()),)

    def init(self, context: Any) -> None:
        """Open the store."""
        super().init(context)
        self.counts = context.store("Counts")
        context.schedule("1 s", PunctuationType.STREAM_TIME, self.tell)

    def tell(self, now: int) -> None:
        """Forward every count."""
        for word, count in self.counts.all():
            self.context.forward(Record(word, count, now))

    def process(self, record: Record[str, str]) -> None:
        """Count each word."""
        for word in record.value.lower().split():
            self.counts.put(word, (self.counts.get(word) or 0) + 1)


def word_count() -> Topology:
    """Return the word count example of the Processor API."""
    topology = Topology()
    topology.add_source("Source", "lines", key=Serdes.string(), value=Serdes.string())
    topology.add_processor("Process", WordCount, "Source")
    return topology.add_sink("Sink", "counts", "Process", key=Serdes.string(), value=Serdes.long())


def test_a_processor_forwards_its_counts_on_stream_time() -> None:
    """The first record triggers the punctuator, which runs again a second of stream time later."""
    with TopologyTestDriver(word_count()) as driver:
        lines = driver.create_input_topic("lines", Serdes.string(), Serdes.string())
        counts = driver.create_output_topic("counts", Serdes.string(), Serdes.long())
        lines.pipe_input("k", "all streams lead to Kafka", 10)
        assert counts.queue_size == 5
        counts.read_records_to_list()
        lines.pipe_input("k", "to Kafka", 900)
        assert counts.is_empty()
        lines.pipe_input("k", "streams", 1000)
        assert counts.read_key_values_to_map()["kafka"] == 2
        assert driver.get_state_store("Counts").get("streams") == 2


@dataclass
class Click:
    """A visit to a page."""

    page: str
    at: int


def test_an_extractor_sets_the_time_of_records() -> None:
    """Windows use the extracted time; headers are forwarded to the sink."""
    builder = StreamsBuilder()
    clicks = builder.stream(
        "clicks", value=Serdes.json(Click), timestamp=lambda record: record.value.at
    )
    counted = (
        clicks.group_by(lambda click: click.page)
        .windowed_by(TimeWindows.of_size_with_no_grace("1 min"))
        .count()
    )
    counted.to_stream(lambda key, _: [key.key, key.window.start]).to("counts")
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("clicks", value=Serdes.json(Click))
        topic.pipe_input(None, Click("home", 61_000), 0, [("from", b"test")])
        record = driver.create_output_topic("counts", value=Serdes.long()).read_record()
    assert record == Record(["home", 60_000], 1, 61_000, [("from", b"test")])


def test_an_aggregate_that_is_modified_in_place_has_its_old_value() -> None:
    """Stores keep bytes, so a regrouped table subtracts the previous value.

    As in Kafka, the value before the first record comes from the initializer.
    """
    builder = StreamsBuilder()

    def add(value: str, seen: list[str]) -> list[str]:
        seen.append(value)
        return seen

    lists = builder.stream("in").group_by_key().aggregate(list, add)
    sizes = lists.group_by(lambda key, seen: (len(seen), key)).count()
    sizes.to_stream().to("sizes")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_key_value_list([("a", "x"), ("a", "y")])
        out = driver.create_output_topic("sizes", value=Serdes.long())
        assert out.read_key_values_to_list() == [(0, None), (1, 1), (1, 0), (2, 1)]


def test_wall_clock_punctuators_run_only_when_the_driver_advances() -> None:
    """Time does not pass until it is advanced; a cancelled punctuator does not run."""
    calls: list[int] = []

    class Ticking(Processor[Any, Any, Any, Any]):
        def init(self, context: Any) -> None:
            super().init(context)
            self.ticking = context.schedule(100, PunctuationType.WALL_CLOCK_TIME, calls.append)

        def process(self, record: Record[Any, Any]) -> None:
            self.ticking.cancel()

    topology = Topology().add_source("s", "in").add_processor("p", Ticking, "s")
    with TopologyTestDriver(topology, start=1000) as driver:
        driver.advance_wall_clock_time(99)
        driver.advance_wall_clock_time(1)
        driver.advance_wall_clock_time("1 s")
        driver.create_input_topic("in").pipe_input("value")
        driver.advance_wall_clock_time("1 s")
    assert calls == [1100, 2100]


def test_times_of_a_list_advance() -> None:
    """The records of a list have the start time and its increments."""
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in", start=5, auto_advance=2)
        topic.pipe_value_list(["a", "b"])
        topic.pipe_value_list(["c", "d"], 100, 10)
        records = driver.create_output_topic("out").read_records_to_list()
    assert [record.timestamp for record in records] == [5, 7, 100, 110]


def test_reading_an_empty_topic_raises() -> None:
    """The error names the topic."""
    with (
        TopologyTestDriver(word_count()) as driver,
        pytest.raises(LookupError, match="counts has no more records"),
    ):
        driver.create_output_topic("counts").read_value()


def test_a_record_that_cannot_be_deserialized_is_named() -> None:
    """The error names topic, partition and offset."""
    builder = StreamsBuilder()
    builder.stream("in", value=Serdes.json()).to("out")
    driver = TopologyTestDriver(builder.build())
    topic = driver.create_input_topic("in", value=Serdes.string())
    with pytest.raises(DeserializationError, match="in-0 at offset 0"):
        topic.pipe_input("k", "{", 0)


def test_a_store_is_accessible_only_to_connected_processors() -> None:
    """Access from any other processor raises an error that names the store."""

    class Curious(Processor[Any, Any, Any, Any]):
        def init(self, context: Any) -> None:
            context.store("Counts")

    topology = word_count().add_processor("other", Curious, "Source")
    with pytest.raises(StreamsError, match="not connected to store Counts"):
        TopologyTestDriver(topology)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda t: t.add_source("Source", "x"), "another node is named 'Source'"),
        (lambda t: t.add_source("Again", "lines"), "read by source Source already"),
        (lambda t: t.add_processor("p", WordCount, "missing"), "parent missing of p is not added"),
        (lambda t: t.add_sink("x", "y"), "x has no parent"),
        (lambda t: t.add_sink("x", "y", "Sink"), "cannot have the sink Sink as a parent"),
        (
            lambda t: t.connect_processor_and_state_stores("Process", "no"),
            "store no is not added yet",
        ),
    ],
)
def test_an_invalid_topology_is_rejected(change: Any, sentence: str) -> None:
    """Each addition is checked immediately, and the error names the nodes."""
    with pytest.raises(TopologyError, match=sentence):
        change(word_count())


def test_late_records_are_passed_to_on_late() -> None:
    """The callback receives the records that Kafka only counts."""
    late: list[Record[Any, Any]] = []
    builder = StreamsBuilder()
    windows = builder.stream("in").group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(10))
    windows.on_late(late.append).count()
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in")
        topic.pipe_input("a", 1, 25)
        topic.pipe_input("a", 2, 3)
    assert [record.value for record in late] == [2]


def test_an_unknown_input_topic_is_rejected() -> None:
    """The error lists the topics that the topology reads, so that a misspelling is obvious."""
    builder = StreamsBuilder()
    builder.stream("orders").to("out")
    builder.stream(re.compile("users-.*")).to("out")
    with (
        TopologyTestDriver(builder.build()) as driver,
        pytest.raises(ValueError, match=r"topic order; those that are read: orders, users-\.\*"),
    ):
        driver.create_input_topic("order").pipe_input("k", 1)


def _counting() -> TopologyTestDriver:
    """Return a driver whose topic `out` has a count, written as a long."""
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count().to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    driver.create_input_topic("in").pipe_input("a", "x")
    return driver


def test_an_output_topic_without_the_right_serde_says_which_to_set() -> None:
    """Counts are longs, and the default serde is JSON."""
    with _counting() as driver, pytest.raises(DeserializationError) as caught:
        driver.create_output_topic("out").read_value()
    assert str(caught.value) == (
        "the value of a record of topic 'out' cannot be read by Serdes.json: Expecting value: "
        "line 1 column 1 (char 0); it is b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01'; the output topic has "
        "no serde for values, so the default Serdes.json was used: set value=…"
    )
    with _counting() as driver, pytest.raises(DeserializationError) as caught:
        driver.create_output_topic("out", Serdes.long(), Serdes.long()).read_value()
    assert str(caught.value) == (
        "the key of a record of topic 'out' cannot be read by Serdes.long: a long has 8 bytes, not 3; "
        "it is b'\"a\"'"
    )


def test_a_time_of_the_wrong_type_is_rejected() -> None:
    """Of the driver, of its input topics and of their records."""
    with _counting() as driver:
        with pytest.raises(TypeError, match=r"milliseconds since 1970.*not '5'"):
            driver.create_input_topic("in").pipe_input("k", "x", "5")
        with pytest.raises(TypeError, match=r"milliseconds since 1970.*not 1.5"):
            driver.create_input_topic("in", start=1.5)


def test_an_input_topic_without_the_right_serde_says_which_to_set() -> None:
    """The record is not piped."""
    with _counting() as driver:
        with pytest.raises(SerializationError) as caught:
            driver.create_input_topic("in", value=Serdes.long()).pipe_input("k", "x")
        assert str(caught.value) == (
            "the value of a record for topic 'in' cannot be written by Serdes.long: required argument "
            "is not an integer; its type is str"
        )
        with pytest.raises(SerializationError) as caught:
            driver.create_input_topic("in").pipe_input(object(), "x")
        assert str(caught.value) == (
            "the key of a record for topic 'in' cannot be written by Serdes.json: object cannot be "
            "written as JSON; use a serde for this type; its type is object; the input topic has no "
            "serde for keys, so the default Serdes.json was used: set key=…"
        )
