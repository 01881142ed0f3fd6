"""Scenarios of simulated clusters: the TOML format, and the schedule that a seed draws."""

import pytest

from ottla.base.rng import SeededRng
from ottla.testing.sim.cluster.scenario import FaultKind, Workers, parse

TEXT = """
summary = "Brokers are killed."
seconds = 20
pause = [0.5, 1.0]
flush_on_ack = true
[settings]
"replica.lag.time.max.ms" = 900
[workers]
weak = 0
[faults.kill]
weight = 3
seconds = [0.1, 8]
[faults.pause]
seconds = [1, 2]
"""


def test_a_file_sets_some_fields_and_the_others_have_defaults() -> None:
    """Settings of brokers may be numbers; they are passed as text."""
    scenario = parse(TEXT)
    assert scenario.summary == "Brokers are killed."
    assert scenario.flush_on_ack
    assert scenario.brokers == 3
    assert scenario.settings == {"replica.lag.time.max.ms": "900"}
    assert scenario.workers == Workers(weak=0)
    assert scenario.faults["kill"] == FaultKind(3, (0.1, 8.0))
    assert scenario.faults["pause"] == FaultKind(1, (1.0, 2.0))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("seconds = 20", "second = 20", "unknown field 'second'"),
        ("pause = [0.5, 1.0]", "", "the field 'pause' is missing"),
        ("[faults.kill]", "[faults.murder]", "unknown fault 'murder'"),
    ],
)
def test_mistakes_in_a_file_are_named(before: str, after: str, message: str) -> None:
    """A misspelt field would otherwise have no effect."""
    with pytest.raises(ValueError, match=message):
        parse(TEXT.replace(before, after, 1))


def test_a_seed_draws_one_schedule() -> None:
    """Faults are in order of time, within their limits, and of kinds that the scenario names."""
    scenario = parse(TEXT)
    schedules = [scenario.schedule(SeededRng(seed)) for seed in (1, 1, 2)]
    assert schedules[0] == schedules[1] != schedules[2]
    for schedule in schedules:
        assert [fault.at for fault in schedule] == sorted(fault.at for fault in schedule)
        for fault in schedule:
            low, high = scenario.faults[fault.kind].seconds
            assert low <= fault.seconds <= high
            assert 0 <= fault.at < 20
            assert fault.target.split()[0] in ("broker", "leader", "controller")


def test_some_seeds_leave_out_kinds_of_faults() -> None:
    """Different seeds try different combinations."""
    scenario = parse(TEXT)
    kinds = {
        frozenset(fault.kind for fault in scenario.schedule(SeededRng(seed))) for seed in range(20)
    }
    assert {frozenset({"kill"}), frozenset({"pause"}), frozenset({"kill", "pause"})} <= kinds
