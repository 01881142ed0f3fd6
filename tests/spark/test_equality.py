"""The same topology on the same input writes the same records on Spark as in the test driver, and as in Kafka Streams."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ottla.streams.runtime import ProducedRecord, TopicRecord
from ottla.streams.spark.compile import QuerySettings
from ottla.streams.spark.query import start_together
from ottla.testing.cluster import Cluster
from tests.spark import scenarios
from tests.streams.staged import CLOCK, StagedRun
from tests.streams.transcripts import NAMES

pytestmark = pytest.mark.spark

_ROUNDS = 2
# Nothing is kept, so that each topic is worked off by itself.
_UNORDERED = ("merge", "pattern")


def _rounds(name: str) -> list[dict[str, list[TopicRecord]]]:
    """Return a scenario's input in two parts."""
    records = scenarios.inputs(name)
    middle = len(records) * 2 // 3
    return [scenarios.by_topic(part) for part in (records[:middle], records[middle:])]


def _tick(number: int) -> TopicRecord:
    return TopicRecord(b"", b"", 1000 * (number + 1))


def _expected(name: str) -> dict[str, list[ProducedRecord]]:
    """Return what the stages write without Spark, in the same micro-batches."""
    staged = StagedRun(scenarios.application(name), topics=scenarios.topics_of(name))
    for number, part in enumerate(_rounds(name)):
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
    """Every operator, late and out-of-order records, tombstones, equal times; stopped and started in between."""
    expected = {name: _expected(name) for name in NAMES}
    _prepare(broker, expected)
    applications = [scenarios.application(name) for name in NAMES]
    settings = QuerySettings(broker.bootstrap, str(tmp_path), clock_topic=CLOCK)
    for number in range(_ROUNDS):
        records = {CLOCK: [_tick(number)]}
        for name in NAMES:
            records.update(_rounds(name)[number])
        scenarios.produce(broker.bootstrap, records)
        with start_together(applications, spark, settings) as query:
            query.process_all_available()
    wrong = {}
    for name, produced in expected.items():
        for topic, rows in produced.items():
            found = scenarios.read(broker.bootstrap, topic)
            known = [TopicRecord(each.key, each.value, each.timestamp) for each in rows]
            if name in _UNORDERED:
                found, known = sorted(found, key=repr), sorted(known, key=repr)
            if found != known:
                wrong[topic] = known, found
    assert not wrong
