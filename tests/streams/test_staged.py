"""Stages over state pages, as on Spark, write the same records as Apache Kafka Streams."""

import random

import pytest

from ottla.streams.layout.layout import Application
from ottla.streams.task.task import ProducedRecord
from tests.streams.playing import (
    driver_of,
    parse_scenario,
    play_event,
    record_of,
    settings_of,
    topology_of,
)
from tests.streams.recorded import inputs
from tests.streams.recorded.shaped import SHAPED
from tests.streams.staged import StagedRun
from tests.streams.transcripts import (
    FOUND_NAMES,
    NAMES,
    found_transcript,
    is_compared,
    line,
    transcript,
)

_SHAPED_NAMES = sorted(SHAPED)
_UNCACHED = [each for each in FOUND_NAMES if "cache=1" not in found_transcript(each)[0]]
TOPICS = {"in": 1, "in-two": 1, "other": 1, "third": 1}


def _play(staged: StagedRun, event: str, now: int) -> list[str]:
    fields = event.split(" ")
    staged.produced.clear()
    if fields[0] == "clock":
        staged.tick(now + int(fields[1]))
    else:
        staged.pipe(fields[1], record_of(event))
    return _lines(staged.produced)


def _lines(produced: dict[str, list[ProducedRecord]]) -> list[str]:
    return [
        line(record)
        for topic in sorted(filter(is_compared, produced))
        for record in produced[topic]
    ]


def _replayed(scenario: str, steps: list[tuple[str, list[str]]]) -> list[tuple[str, list[str]]]:
    """Play a scenario's events; return them with the records that each writes."""
    topology = topology_of(scenario)
    sources = [part for node in topology.nodes.values() for part in getattr(node, "topics", ())]
    application = Application(topology, settings_of(scenario))
    staged = StagedRun(application, topics=TOPICS | dict.fromkeys(sources, 1))
    # Kafka's driver starts at 0.
    staged.tick(0)
    now = 0
    values = []
    for event, _ in steps:
        values.append((event, _play(staged, event, now)))
        now += int(event.split(" ")[1]) if event.startswith("clock") else 0
    return values


@pytest.mark.parametrize("name", NAMES)
def test_micro_batches_of_one_record_write_the_same_as_kafka(name: str) -> None:
    """Tasks are created again for each record and restore their whole state, with all stores."""
    _, steps = transcript(name)
    assert _replayed(name, steps) == steps


@pytest.mark.parametrize("name", _UNCACHED)
def test_inputs_that_once_differed_yield_the_same_as_in_kafka(name: str) -> None:
    """Scenarios with caches are excluded, because these are flushed once per micro-batch."""
    scenario, _, steps = found_transcript(name)
    assert _replayed(scenario, steps) == steps


def _generated(seed: int) -> tuple[str, list[str]]:
    """Return a scenario without operators whose order or time differs in micro-batches."""
    rng = random.Random(seed)
    while True:
        scenario, events = inputs.scenario(rng.choice(_SHAPED_NAMES), rng)
        # Responses of foreign keys come later, and each task has its own stream time for
        # punctuators.
        ops = parse_scenario(scenario)[1].get("ops")
        if "by=foreign" not in scenario and not set(ops) & set("XYP"):
            # Caches are flushed once per micro-batch, where the extractor's partition time
            # restarts, too.
            plain = scenario.replace(" cache=1", "").replace("source=extracted", "source=stream")
            return plain, events


@pytest.mark.parametrize("seed", range(60))
def test_generated_topologies_write_the_same_as_on_the_driver(seed: int) -> None:
    """Operators in any order process random records, as in recorded/compare.py."""
    scenario, events = _generated(seed)
    with driver_of(scenario) as driver:
        steps = [(event, play_event(driver, event)) for event in events]
    assert _replayed(scenario, steps) == steps
