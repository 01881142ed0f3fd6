"""Our driver does what Apache Kafka Streams did: the transcripts of tests/streams/recorded, replayed."""

import re

import pytest

from ottla.streams import Serdes, TopologyTestDriver
from ottla.streams.runtime import TopicRecord
from tests.streams.recorded.configured import CONFIGURED, build_configured, settings
from tests.streams.recorded.topologies import build
from tests.streams.transcripts import NAMES, is_compared, line, transcript


def _written(driver: TopologyTestDriver) -> list[str]:
    lines = []
    for topic in sorted(filter(is_compared, driver.produced_topic_names)):
        queue = driver.produced(topic)
        lines += [line(queue.popleft()) for _ in range(len(queue))]
    return lines


def _play(driver: TopologyTestDriver, event: str) -> list[str]:
    words = event.split(" ")
    if words[0] == "clock":
        driver.advance_wall_clock_time(int(words[1]))
    else:
        key, value = (None if each == "-" else each.encode() for each in (words[2], words[4]))
        driver.pipe(words[1], TopicRecord(key, value, int(words[3])))
    return _written(driver)


def _described(name: str) -> str:
    return str(build(name).describe())


@pytest.mark.parametrize("name", NAMES)
def test_a_topology_describes_itself_as_in_kafka(name: str) -> None:
    """The description is Kafka's, letter by letter: names, numbers, order and sub-topologies."""
    # Java prints where its function lies in memory; record.py writes "function" for it.
    described = re.sub(r"extractor class: [^)]*", "extractor class: function", _described(name))
    assert described == transcript(name)[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_topology_writes_what_it_writes_in_kafka(name: str) -> None:
    """Every event writes the same records to topics and changelogs, at the same times."""
    interval_ms = 1000 if name.endswith("_throttled") else 0
    driver = TopologyTestDriver(
        build(name),
        default_key_serde=Serdes.string(),
        default_value_serde=Serdes.string(),
        emit_interval_ms=interval_ms,
    )
    with driver:
        for number, (event, expected) in enumerate(transcript(name)[1], 1):
            assert _play(driver, event) == expected, f"event {number}: {event}"


@pytest.mark.parametrize("name", CONFIGURED)
def test_a_configured_application_does_what_it_does_in_kafka(name: str) -> None:
    """Exception handlers, dead letters with their headers, and caches that write when a record is done."""
    driver = TopologyTestDriver(
        build_configured(name),
        default_key_serde=Serdes.string(),
        default_value_serde=Serdes.string(),
        settings=settings(name),
    )
    with driver:
        assert str(build_configured(name).describe()) == transcript(name)[0]
        for number, (event, expected) in enumerate(transcript(name)[1], 1):
            assert _play(driver, event) == expected, f"event {number}: {event}"
