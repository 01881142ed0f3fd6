"""A topology writes the same records on Spark as on the test driver and in Kafka Streams."""

from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ottla.streams.spark.query.compile import QuerySettings
from ottla.streams.spark.query.query import start_together
from ottla.streams.task.task import ProducedRecord, TopicRecord
from ottla.testing.cluster import Cluster
from tests.spark import scenarios
from tests.streams.staged import CLOCK, StagedRun
from tests.streams.transcripts import NAMES, line, transcript

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.alone]

# A micro-batch of all scenarios takes 2 s of CPU. The first records are processed one by one, most
# of the others at once, and the last ones after a restart. tests/streams/test_staged.py replays all
# of them one by one without Spark.
_SINGLE_RECORDS = 3
# These are stateless, so each topic is processed independently.
_UNORDERED = ("merge", "pattern")
# Its buffer counts bytes, including the topic's name, and our names are longer.
_COUNTS_BYTES = "suppress_bytes"
# Otherwise a query would wait up to a tenth of a second, three times for each micro-batch.
_TRIGGER = {"processingTime": "10 milliseconds"}


def _parts(name: str) -> list[dict[str, list[TopicRecord]]]:
    """Return a scenario's input by micro-batch; the last one is processed after a restart."""
    records = scenarios.inputs(name)
    ends = [*range(_SINGLE_RECORDS + 1), len(records) * 2 // 3, len(records)]
    return [scenarios.by_topic(records[first:end]) for first, end in pairwise(ends)]


def _tick(number: int) -> TopicRecord:
    return TopicRecord(b"", b"", 1000 * (number + 1))


@cache
def _expected(name: str) -> dict[str, list[ProducedRecord]]:
    """Return the records that the stages write without Spark, in the same micro-batches."""
    staged = StagedRun(scenarios.application(name), topics=scenarios.topics_of(name))
    for number, part in enumerate(_parts(name)):
        batch = {(topic, 0): rows for topic, rows in part.items()}
        staged.run({**batch, (CLOCK, 0): [_tick(number)]})
    return staged.produced


def _prepare(broker: Cluster, expected: dict[str, dict[str, list[ProducedRecord]]]) -> None:
    topics = {topic for name in expected for topic in scenarios.topics_of(name)}
    topics.update(topic for produced in expected.values() for topic in produced)
    with broker.admin() as brokers:
        known = set(broker.topics())
        for topic in sorted(topics | {CLOCK} - known):
            scenarios.create(brokers, topic)


@pytest.mark.timeout(240)
def test_all_recorded_scenarios_in_one_query(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """All operators, late records, tombstones and equal times are covered, and a restart."""
    expected = {name: _expected(name) for name in NAMES}
    _prepare(broker, expected)
    applications = [scenarios.application(name) for name in NAMES]
    settings = QuerySettings(broker.bootstrap, str(tmp_path), clock_topic=CLOCK, trigger=_TRIGGER)
    batches = [{CLOCK: [_tick(number)]} for number in range(_SINGLE_RECORDS + 2)]
    for name in NAMES:
        for batch, part in zip(batches, _parts(name), strict=True):
            batch.update(part)
    with broker.admin() as brokers:
        for group in (batches[:-1], batches[-1:]):
            with start_together(applications, spark, settings) as query:
                for batch in group:
                    scenarios.produce_together(brokers, batch)
                    query.process_all_available()
    wrong = {}
    for name, produced in expected.items():
        for topic, rows in produced.items():
            actual = scenarios.read(broker.bootstrap, topic)
            known = [TopicRecord(row.key, row.value, row.timestamp) for row in rows]
            if name in _UNORDERED:
                actual, known = sorted(actual, key=repr), sorted(known, key=repr)
            if actual != known:
                wrong[topic] = known, actual
    assert not wrong
    assert not _differences_from_kafka(broker, _unclocked(), _SINGLE_RECORDS)


def _record_of(name: str, event: str) -> tuple[str, TopicRecord]:
    """Return the record of an event and its topic."""
    fields = event.split(" ")
    key, value = (None if field == "-" else field.encode() for field in (fields[2], fields[4]))
    return f"{name}.{fields[1]}", TopicRecord(key, value, int(fields[3]))


def _unclocked() -> dict[str, list[str]]:
    """Return the events of each scenario whose output does not depend on the wall clock."""
    events = {name: [event for event, _ in transcript(name)[1]] for name in NAMES}
    steps = {name: own for name, own in events.items() if not any("clock" in each for each in own)}
    del steps[_COUNTS_BYTES]
    assert len(steps) > 80
    return steps


def _lines_by_topic(name: str, count: int | None) -> dict[str, list[str]]:
    """Return the lines that Kafka Streams wrote for a scenario's first events, by our topics."""
    entries: dict[str, list[str]] = {}
    for _, lines in transcript(name)[1][:count]:
        for text_line in lines:
            topic = text_line.split(" ")[1]
            ours = f"{name}-{topic[5:]}" if topic.startswith("test-") else f"{name}.{topic}"
            entries.setdefault(ours, []).append(text_line.replace(topic, ours, 1))
    return entries


def _differences_from_kafka(
    broker: Cluster, names: Iterable[str], count: int | None = None
) -> dict[str, tuple[list[str], list[str]]]:
    """Compare the records of the first events, or of all, with the records of Kafka's transcripts."""
    wrong = {}
    for name in names:
        for topic, lines in _lines_by_topic(name, count).items():
            records = scenarios.read(broker.bootstrap, topic)[: count and len(lines)]
            results = [line(ProducedRecord(topic, *record[:3], ())) for record in records]
            if results != lines:
                wrong[topic] = lines, results
    return wrong


@pytest.mark.nightly("tests/spark/test_equality.py::test_all_recorded_scenarios_in_one_query")
@pytest.mark.timeout(3600)
def test_spark_writes_the_same_as_kafka_streams_event_by_event(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Kafka's transcripts are replayed exactly, in micro-batches of one record per scenario."""
    steps = _unclocked()
    with Cluster() as broker:
        _prepare(broker, {name: _expected(name) for name in steps})
        applications = [scenarios.application(name) for name in steps]
        settings = QuerySettings(broker.bootstrap, str(tmp_path), trigger=_TRIGGER)
        with (
            start_together(applications, spark, settings) as query,
            broker.admin() as brokers,
        ):
            for events in zip(*steps.values(), strict=True):
                batch = (_record_of(*pair) for pair in zip(steps, events, strict=True))
                scenarios.produce_together(brokers, scenarios.by_topic(batch))
                query.process_all_available()
        assert not _differences_from_kafka(broker, steps)
