"""For any division into micro-batches, stages write the same records as the test driver."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ottla.streams import TopologyTestDriver
from ottla.streams.layout.layout import Application
from ottla.streams.task.task import ProducedRecord, TaskSettings, TopicRecord
from tests.streams.recorded.topologies import build
from tests.streams.staged import STRINGS, StagedRun
from tests.streams.transcripts import NAMES

pytestmark = pytest.mark.slow

TOPICS = {"in": 1, "in-two": 1, "other": 1, "third": 1}
# Responses of the right side come in the next micro-batch, as they come later in Kafka.
_ANSWERED = tuple(each for each in NAMES if each.startswith("foreign_key"))


@dataclass(frozen=True)
class _Batch:
    """Records of one topic; between topics of one micro-batch there is no order."""

    topic: int
    records: list[tuple[str, int, str, int]]


_RECORD = st.tuples(
    st.sampled_from("aabbc-"),
    st.sampled_from((0, 0, 0, 1, 2, 5, 17)),
    st.sampled_from("xyz--"),
    st.sampled_from((0, 0, 0, 1, 4, 12)),
)
_BATCHES = st.lists(
    st.builds(_Batch, st.integers(0, 2), st.lists(_RECORD, min_size=1, max_size=12)), max_size=8
)


def _inputs(name: str, batches: list[_Batch]) -> list[tuple[str, list[TopicRecord]]]:
    """Return batches of records: late ones, tombstones, records without key, equal times."""
    sources = [
        topic
        for node in build(name).nodes.values()
        for topic in getattr(node, "topics", ())
        if topic in TOPICS
    ] or ["in", "in-two"]
    now, values = 30, []
    for batch in batches:
        rows = []
        for key, step, value, late in batch.records:
            now += step
            texts = (None if each == "-" else each.encode() for each in (key, value))
            rows.append(TopicRecord(*texts, now - late))
        values.append((sources[batch.topic % len(sources)], rows))
    return values


def _run(
    name: str, batches: list[_Batch]
) -> Iterator[tuple[str, list[ProducedRecord], list[ProducedRecord]]]:
    """Yield each written topic with the records of the driver and of the stages."""
    staged = StagedRun(Application(build(name), TaskSettings("test", STRINGS)), topics=TOPICS)
    driver = TopologyTestDriver(
        build(name), default_key_serde=STRINGS.key, default_value_serde=STRINGS.value
    )
    with driver:
        for topic, rows in _inputs(name, batches):
            staged.run({(topic, 0): rows})
            for row in rows:
                driver.pipe(topic, row)
        names = driver.produced_topic_names | set(staged.produced)
        for topic in names - {each for each in names if each.endswith("repartition")}:
            expected = [record._replace(partition=None) for record in driver.produced(topic)]
            yield topic, expected, staged.produced.get(topic, [])


@pytest.mark.parametrize("name", [each for each in NAMES if each not in _ANSWERED])
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(_BATCHES)
def test_micro_batches_of_any_size_write_the_same(name: str, batches: list[_Batch]) -> None:
    """Late records, tombstones, missing keys and equal times come in runs of one topic."""
    for topic, expected, actual in _run(name, batches):
        assert actual == expected, topic


@pytest.mark.parametrize("name", _ANSWERED)
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(_BATCHES)
def test_foreign_key_joins_have_the_same_final_state(name: str, batches: list[_Batch]) -> None:
    """Responses to a value that has changed since the request are dropped."""
    for topic, expected, actual in _run(name, batches):
        if topic == "out":
            ends = [{row.key: row.value for row in rows} for rows in (expected, actual)]
            keys = ends[0] | ends[1]
            assert [ends[0].get(key) for key in keys] == [ends[1].get(key) for key in keys]
