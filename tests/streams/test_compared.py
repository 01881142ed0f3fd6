"""Some generated topologies, compared with Kafka Streams' test driver if Java is installed."""

import random

import pytest

from tests.streams.recorded import inputs
from tests.streams.recorded.compare import Java, Scenario, difference, smallest
from tests.streams.recorded.shaped import SHAPED


@pytest.mark.compat
@pytest.mark.slow
@pytest.mark.needs("java")
def test_generated_inputs_yield_the_same_as_in_kafka() -> None:
    """Each topology with parameters runs with random parameters and records from a seed."""
    seed = "test"
    with Java() as kafka:
        for name in sorted(SHAPED):
            rng = random.Random(f"{seed} of {name}")
            scenario = Scenario(*inputs.scenario(name, rng))
            assert difference(kafka, scenario) is None, scenario


def test_a_difference_is_minimized() -> None:
    """Events that are not needed for the difference are removed."""
    scenario = Scenario("filter", [f"pipe in a {number} x" for number in range(20)])
    needed = {scenario.events[3], scenario.events[11]}
    actual = smallest(scenario, lambda number: needed <= set(number.events))
    assert set(actual.events) == needed
