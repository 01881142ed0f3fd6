"""Our driver behaves like Apache Kafka Streams: it replays the transcripts of recorded/."""

import re

import pytest

from tests.streams.playing import driver_of, play_event, topology_of
from tests.streams.recorded.configured import CONFIGURED
from tests.streams.recorded.topologies import build
from tests.streams.transcripts import FOUND_NAMES, NAMES, found_transcript, transcript


def _described(name: str) -> str:
    return str(build(name).describe())


@pytest.mark.parametrize("name", NAMES)
def test_a_topology_has_kafkas_description(name: str) -> None:
    """Names, numbers, order and sub-topologies are equal, character by character."""
    # Java prints the address of its function; record.py replaces it by "function".
    described = re.sub(r"extractor class: [^)]*", "extractor class: function", _described(name))
    assert described == transcript(name)[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_topology_writes_the_same_records_as_kafka(name: str) -> None:
    """Each event writes the same records to topics and changelogs, with the same times."""
    with driver_of(name) as driver:
        for number, (event, expected) in enumerate(transcript(name)[1], 1):
            assert play_event(driver, event) == expected, f"event {number}: {event}"


@pytest.mark.parametrize("name", CONFIGURED)
def test_a_configured_application_behaves_as_in_kafka(name: str) -> None:
    """This covers exception handlers, dead letters with headers, and caches flushed at commits."""
    with driver_of(name) as driver:
        assert str(topology_of(name).describe()) == transcript(name)[0]
        for number, (event, expected) in enumerate(transcript(name)[1], 1):
            assert play_event(driver, event) == expected, f"event {number}: {event}"


@pytest.mark.parametrize("name", FOUND_NAMES)
def test_inputs_that_once_differed_yield_the_same_as_in_kafka(name: str) -> None:
    """The minimized inputs were found by recorded/compare.py."""
    scenario, described, steps = found_transcript(name)
    assert str(topology_of(scenario).describe()) == described
    with driver_of(scenario) as driver:
        for number, (event, expected) in enumerate(steps, 1):
            assert play_event(driver, event) == expected, f"event {number}: {event}"
