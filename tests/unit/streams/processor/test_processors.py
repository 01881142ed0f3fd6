"""Processors with the API of Kafka Streams: suppliers, punctuators, extractors and partitioners."""

from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pytest

from ottla.streams import (
    ContextualProcessor,
    FailOnInvalidTimestamp,
    FixedKeyProcessor,
    LogAndSkipOnInvalidTimestamp,
    MockProcessorContext,
    Processor,
    ProcessorContext,
    ProcessorSupplier,
    PunctuationType,
    Record,
    RecordContext,
    Serdes,
    Stores,
    StreamsBuilder,
    StreamsError,
    TimestampedRecord,
    TopologyError,
    TopologyTestDriver,
    UsePartitionTimeOnInvalidTimestamp,
    WallclockTimestampExtractor,
)
from ottla.streams.driver.mock_context import CapturedForward
from ottla.streams.model.raw import TopicRecord
from ottla.streams.stores.builders import StoreBuilder
from ottla.streams.task.task import TaskSettings


class Counting(ContextualProcessor[str, Any, str, int]):
    """Count the records of each key."""

    def process(self, record: Record[str, Any]) -> None:
        """Count the record."""
        store = self.context.get_state_store("counts")
        store.put(record.key, (store.get(record.key) or 0) + 1)
        self.context.forward(record.with_value(store.get(record.key)))


class CountingSupplier(ProcessorSupplier[str, Any, str, int]):
    """A supplier with its store."""

    def get(self) -> Counting:
        """Return a new processor."""
        return Counting()

    def stores(self) -> Iterable[StoreBuilder]:
        """Return the store."""
        return [Stores.key_value("counts")]


def test_a_supplier_creates_processors_and_their_stores() -> None:
    """The methods are `ProcessorSupplier.get` and `stores` (KIP-401)."""
    builder = StreamsBuilder()
    builder.stream("in").process(CountingSupplier()).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_key_value_list([("a", 1), ("b", 1), ("a", 1)])
        assert driver.create_output_topic("out").read_values_to_list() == [1, 1, 2]


class StoresAsMethod(Counting):
    """A processor that wrongly has a method `stores`, like a supplier."""

    def stores(self) -> Any:  # type: ignore[override]
        """Return nothing."""


@pytest.mark.parametrize(
    ("supplier", "sentence"),
    [
        (CountingSupplier, r"takes an instance of the supplier: CountingSupplier\(\)"),
        (Counting(), "each task has one of its own; not <"),
        (StoresAsMethod, "the stores of StoresAsMethod must be a list in its class"),
    ],
)
def test_an_invalid_supplier_is_rejected(supplier: Any, sentence: str) -> None:
    """The step raises, before the first record."""
    with pytest.raises(TopologyError, match=sentence):
        StreamsBuilder().stream("in").process(supplier)


def scheduled(start: int | datetime, clock: PunctuationType) -> list[int]:
    """Return the times at which a punctuator of 10 ms ran; the driver's clock starts at 25."""
    called: list[int] = []

    class Scheduling(Processor[Any, Any, Any, Any]):
        def init(self, context: ProcessorContext) -> None:
            super().init(context)
            context.schedule(10, clock, called.append, start=start)

        def process(self, record: Record[Any, Any]) -> None:
            """Ignore the record."""

    builder = StreamsBuilder()
    builder.stream("in").process(Scheduling)
    with TopologyTestDriver(builder.build(), start=25) as driver:
        topic = driver.create_input_topic("in")
        for time in (30, 36, 44, 57):
            topic.pipe_input("a", 1, timestamp=time)
        for _ in range(4):
            driver.advance_wall_clock_time(6)
    return called


def test_a_punctuator_can_have_a_start_time() -> None:
    """It runs at whole intervals from the start time, which may be in the past (KIP-1146)."""
    assert scheduled(36, PunctuationType.STREAM_TIME) == [36, 57]
    assert scheduled(33, PunctuationType.WALL_CLOCK_TIME) == [37, 43]
    past = datetime.fromtimestamp(0.004, UTC)
    assert scheduled(past, PunctuationType.WALL_CLOCK_TIME) == [37, 49]


def test_wrong_arguments_of_schedule_are_rejected() -> None:
    """In Kafka the start is the second argument; here it is a keyword argument."""

    class Scheduling(Processor[Any, Any, Any, Any]):
        def init(self, context: Any) -> None:
            context.schedule(0, 10, lambda now: None)

    builder = StreamsBuilder()
    builder.stream("in").process(Scheduling)
    with pytest.raises(TypeError, match=r"scheduled with \(interval, PunctuationType, function"):
        TopologyTestDriver(builder.build())


def test_a_topic_can_be_computed_from_the_record_context() -> None:
    """A TopicNameExtractor receives key, value and the origin of the record, as in Kafka."""
    seen: list[RecordContext] = []

    def named(key: str, value: str, context: RecordContext) -> str:
        seen.append(context)
        return f"{context.topic}-{key}"

    builder = StreamsBuilder()
    builder.stream("in").map_values(str).to(named)
    with TopologyTestDriver(builder.build()) as driver:
        headers = [("trace", b"1")]
        driver.create_input_topic("in").pipe_input("a", 7, timestamp=5, headers=headers)
        assert driver.create_output_topic("in-a").read_value() == "7"
    assert seen == [RecordContext("in", 0, 0, 5, headers, b'"a"', b"7")]


def test_a_partitioner_chooses_one_several_or_no_partitions() -> None:
    """A set of partitions multicasts a record, and an empty set drops it (KIP-837)."""
    builder = StreamsBuilder()
    chosen = {"one": 2, "both": {0, 1}, "none": set(), "any": None}
    stream = builder.stream("in")
    stream.to("out", partitioner=lambda topic, key, value, count: chosen[key])
    with TopologyTestDriver(builder.build(), settings=TaskSettings("app", partitions=3)) as driver:
        driver.create_input_topic("in").pipe_key_value_list([(each, 1) for each in chosen])
        rows = [(record.key, record.partition) for record in driver.produced("out")]
    assert rows == [(b'"one"', 2), (b'"both"', 0), (b'"both"', 1), (b'"any"', None)]


def times(extractor: Any, *timestamps: int) -> list[int]:
    """Return the times of the records after a source with an extractor."""
    builder = StreamsBuilder()
    builder.stream("in", timestamp=extractor).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        for time in timestamps:
            driver.pipe("in", TopicRecord(b"1", b"1", time))
        return [record.timestamp for record in driver.produced("out")]


def test_kafkas_extractors_handle_an_invalid_time() -> None:
    """Each can be passed as a class or an object."""
    assert times(LogAndSkipOnInvalidTimestamp, 5, -1, 3) == [5, 3]
    assert times(UsePartitionTimeOnInvalidTimestamp(), 5, 3, -1) == [5, 3, 5]
    assert min(times(WallclockTimestampExtractor, 5, -1)) > 1_700_000_000_000
    for extractor in (FailOnInvalidTimestamp, UsePartitionTimeOnInvalidTimestamp, None):
        with pytest.raises(StreamsError, match="has no valid timestamp \\('-1'\\)"):
            times(extractor, -1)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        ("soon", r"returned 'soon', of type str, .*parse it, for example with int\(value\)"),
        (1.5, r"returned 1\.5, of type float, .*int\(value \* 1000\) if it is in seconds"),
        (datetime(2026, 1, 2, tzinfo=UTC), r".*of type datetime, .*value\.timestamp\(\) \* 1000"),
        (date(2026, 1, 2), ".*of type date, .*convert it to a datetime"),
        (None, r"returned None, .*return record\.timestamp"),
        (True, "returned True, of type bool, .*return an int"),
        (-5, "returned the negative timestamp '-5' .*LogAndSkipOnInvalidTimestamp"),
    ],
)
def test_an_extractor_that_returns_no_valid_timestamp_fails(found: Any, sentence: str) -> None:
    """The error names the extractor, the value, the record and the fix."""

    def at(_record: TimestampedRecord) -> Any:
        return found

    with pytest.raises(StreamsError, match=f"extractor 'at' {sentence}") as raised:
        times(at, 5)
    assert "the record of in-0 at offset 0: a timestamp is" in str(raised.value)


def test_an_extractor_can_return_an_integer_of_numpy() -> None:
    """Any object with __index__ is converted to an int."""
    (time,) = times(lambda _: np.int64(7), 5)
    assert (time, type(time)) == (7, int)


def test_only_an_object_with_extract_can_drop_a_record_with_a_negative_time() -> None:
    """This is Kafka's interface TimestampExtractor; for a plain function it is an error."""

    class Positive:
        def extract(self, record: TimestampedRecord, partition_time: int) -> int:
            return record.timestamp - 4

    assert times(Positive(), 3, 5) == [1]


def test_an_extractor_with_two_parameters_receives_the_partition_time() -> None:
    """The parameters are the same as of `TimestampExtractor.extract(record, partitionTime)`."""

    def next_to(record: TimestampedRecord, partition_time: int) -> int:
        return max(record.timestamp, partition_time + 1)

    assert times(next_to, 5, 3, 3) == [5, 6, 7]


def test_an_application_has_a_default_extractor() -> None:
    """It is default.timestamp.extractor; records of internal topics keep their times."""
    builder = StreamsBuilder()
    builder.stream("in").select_key(lambda v: v).repartition(name="by-value").to("out")
    builder.stream("own", timestamp=lambda record: 1).to("out")
    settings = TaskSettings("app", default_timestamp_extractor=lambda record: record.timestamp + 10)
    with TopologyTestDriver(builder.build(), settings=settings) as driver:
        for topic in ("in", "own"):
            driver.create_input_topic(topic).pipe_input("a", "x", timestamp=5)
        assert [output_record.timestamp for output_record in driver.produced("out")] == [15, 1]


class UpperCase:
    """A ValueMapper in the style of Java."""

    def apply(self, value: str) -> str:
        """Convert to upper case."""
        return value.upper()


def test_an_object_with_one_method_is_rejected_with_a_suggestion() -> None:
    """Kafka's functional interfaces are functions here, so the method must be passed."""
    stream = StreamsBuilder().stream("in", value=Serdes.string())
    with pytest.raises(TypeError, match=r"pass its method: UpperCase\(\)\.apply"):
        stream.map_values(UpperCase())  # type: ignore[call-overload]
    stream.map_values(UpperCase().apply)


def test_a_processor_is_tested_with_a_mock_context() -> None:
    """The context records forwards, punctuators and commits, and has stores and times (KIP-267)."""
    context = MockProcessorContext()
    context.add_state_store(Stores.key_value("counts"))
    context.set_record_metadata("in", 1, 2)
    context.set_current_stream_time_ms(5)
    processor = Counting()
    processor.init(context)
    processor.process(Record("a", "x", 0))
    assert context.forwarded() == [CapturedForward(Record("a", 1, 0))]
    assert context.get_state_store("counts").get("a") == 1
    scheduled = processor.context.schedule("1 s", PunctuationType.STREAM_TIME, print, start=7)
    scheduled.cancel()
    (punctuator,) = context.scheduled_punctuators
    assert (punctuator.interval, punctuator.start_time, punctuator.cancelled) == (1_000, 7, True)
    processor.context.commit()
    processor.context.forward(Record("a", 2, 0), "child")
    assert (len(context.forwarded("child")), len(context.forwarded("other"))) == (2, 1)
    assert context.committed
    context.reset_commit()
    context.reset_forwards()
    assert (context.committed, context.forwarded()) == (False, [])
    assert processor.context.record_metadata == ("in", 1, 2)
    assert processor.context.current_stream_time_ms() == 5
    with pytest.raises(StreamsError, match="call add_state_store before init"):
        context.get_state_store("other")


class Renaming(FixedKeyProcessor[str, Any, Any]):
    """A processor that changes keys, which is not allowed."""

    def process(self, record: Record[str, Any]) -> None:
        """Forward with the value as the key."""
        self.context.forward(record.with_key(record.value))


def test_a_fixed_key_processor_must_keep_keys() -> None:
    """The records after it are not repartitioned by key."""
    builder = StreamsBuilder()
    builder.stream("in").process_values(Renaming).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in")
        topic.pipe_input("a", "a")
        with pytest.raises(
            StreamsError, match="forwarded the key 'b' for a record with the key 'a'"
        ):
            topic.pipe_input("a", "b")
        assert driver.create_output_topic("out").read_key_values_to_list() == [("a", "a")]
