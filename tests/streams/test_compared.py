"""A few generated topologies beside Apache Kafka Streams' own test driver, where there is Java; recorded/compare.py plays more."""

import random

import pytest

from tests.compat import java
from tests.streams.recorded import inputs
from tests.streams.recorded.compare import Java, Scenario, difference, smallest
from tests.streams.recorded.shaped import SHAPED


@pytest.mark.compat
@pytest.mark.slow
@pytest.mark.skipif(java.why_not() is not None, reason=str(java.why_not()))
def test_generated_inputs_are_answered_as_in_kafka() -> None:
    """Each kind of topology that is made of parameters, with parameters and records out of a seed."""
    seed = "test"
    with Java() as kafka:
        for name in sorted(SHAPED):
            rng = random.Random(f"{seed} of {name}")
            scenario = Scenario(*inputs.scenario(name, rng))
            assert difference(kafka, scenario) is None, scenario


def test_a_difference_is_made_as_small_as_it_gets() -> None:
    """Events that are not needed for it are left out."""
    scenario = Scenario("filter", [f"pipe in a {each} x" for each in range(20)])
    needed = {scenario.events[3], scenario.events[11]}
    found = smallest(scenario, lambda each: needed <= set(each.events))
    assert set(found.events) == needed
