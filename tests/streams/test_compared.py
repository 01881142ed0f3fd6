"""Generated inputs: recorded from Kafka Streams' test driver, and nightly played on it."""

import pytest

from tests.streams.recorded.compare import Java, Scenario, difference, smallest
from tests.streams.recorded.generated import Recorded, scenario_of
from tests.streams.recorded.shaped import SHAPED


@pytest.mark.parametrize("name", sorted(SHAPED))
def test_generated_inputs_yield_what_was_recorded_from_kafka(name: str) -> None:
    """Each topology with parameters runs with random parameters and records from a seed."""
    scenario = scenario_of(name)
    assert difference(Recorded(), scenario) is None, scenario


@pytest.mark.nightly(
    "tests/streams/test_compared.py::test_generated_inputs_yield_what_was_recorded_from_kafka"
)
@pytest.mark.compat
@pytest.mark.slow
@pytest.mark.needs("java")
def test_generated_inputs_yield_the_same_as_in_kafka() -> None:
    """A running Kafka Streams yields what was recorded, and so do we."""
    recorded = Recorded()
    with Java() as kafka:
        for scenario in map(scenario_of, sorted(SHAPED)):
            assert kafka.play(scenario) == recorded.play(scenario)
            assert difference(kafka, scenario) is None, scenario


def test_a_difference_is_minimized() -> None:
    """Events that are not needed for the difference are removed."""
    scenario = Scenario("filter", [f"pipe in a {number} x" for number in range(20)])
    needed = {scenario.events[3], scenario.events[11]}
    actual = smallest(scenario, lambda number: needed <= set(number.events))
    assert set(actual.events) == needed
