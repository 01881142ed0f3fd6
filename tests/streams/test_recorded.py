"""Our driver does what Apache Kafka Streams did: the transcripts of tests/streams/recorded, replayed."""

import re

import pytest

from tests.streams.playing import driver_of, play_event, topology_of
from tests.streams.recorded.configured import CONFIGURED
from tests.streams.recorded.topologies import build
from tests.streams.transcripts import FOUND_NAMES, NAMES, found_transcript, transcript


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
    with driver_of(name) as driver:
        for number, (event, expected) in enumerate(transcript(name)[1], 1):
            assert play_event(driver, event) == expected, f"event {number}: {event}"


@pytest.mark.parametrize("name", CONFIGURED)
def test_a_configured_application_does_what_it_does_in_kafka(name: str) -> None:
    """Exception handlers, dead letters with their headers, and caches that write when a record is done."""
    with driver_of(name) as driver:
        assert str(topology_of(name).describe()) == transcript(name)[0]
        for number, (event, expected) in enumerate(transcript(name)[1], 1):
            assert play_event(driver, event) == expected, f"event {number}: {event}"


@pytest.mark.parametrize("name", FOUND_NAMES)
def test_an_input_that_once_differed_is_answered_as_in_kafka(name: str) -> None:
    """What recorded/compare.py found among generated topologies and inputs, as small as it gets."""
    scenario, described, steps = found_transcript(name)
    assert str(topology_of(scenario).describe()) == described
    with driver_of(scenario) as driver:
        for number, (event, expected) in enumerate(steps, 1):
            assert play_event(driver, event) == expected, f"event {number}: {event}"
