"""The local engine of ottla.streams on virtual time, under faults, over a model of the brokers.

`make test` runs a few seeds, `make nightly` 200. A failing test prints the seed:
`python -m tests.sim.streams.simulation CASE SEED` replays it with a log.
"""

import pytest

from tests.sim.streams.planted import PLANTED, first_complaint
from tests.sim.streams.simulation import play
from tests.sim.streams.topologies import CASES

pytestmark = pytest.mark.slow

_QUICK_SEEDS = range(1, 4)
_SEEDS, _BLOCK = 200, 20
_AT_LEAST_ONCE = ("tails", "rekeyed")


def _complaints(case: str, seeds: range, **options: bool) -> list[str]:
    runs = {seed: play(case, seed, **options).complaint for seed in seeds}
    return [f"{case} {seed}: {complaint}" for seed, complaint in runs.items() if complaint]


@pytest.mark.parametrize("case", CASES)
def test_committed_results_are_those_of_the_test_driver(case: str) -> None:
    """Kills, pauses, rebalances, aborted transactions and lost state do not change the results of a
    key.
    """
    assert _complaints(case, _QUICK_SEEDS, is_exactly_once=True) == []


@pytest.mark.parametrize("case", _AT_LEAST_ONCE)
def test_at_least_once_loses_no_record(case: str) -> None:
    """Without transactions records may be counted twice, but none is lost."""
    assert _complaints(case, _QUICK_SEEDS, is_exactly_once=False) == []


@pytest.mark.nightly(
    "tests/sim/test_local_streams.py::test_committed_results_are_those_of_the_test_driver"
)
@pytest.mark.parametrize("first", range(1, _SEEDS, _BLOCK))
@pytest.mark.parametrize("case", CASES)
def test_many_seeds_do_not_change_the_results(case: str, first: int) -> None:
    """The seed also selects the stores, the number of standbys and, of counts, the guarantee."""
    options = {} if case in _AT_LEAST_ONCE else {"is_exactly_once": True}
    assert _complaints(case, range(first, first + _BLOCK), **options) == []


@pytest.mark.parametrize("name", PLANTED)
def test_a_bug_that_is_planted_in_the_engine_is_found(name: str) -> None:
    """The recorded seed finds the bug or, if the code has changed since, one of the first seeds."""
    bug = PLANTED[name]
    assert first_complaint(bug, (bug.seed, *range(1, 100)))


def test_a_seed_repeats_its_run() -> None:
    """Two runs of a seed have the same steps at the same times."""
    first, second = play("rekeyed", 7), play("rekeyed", 7)
    assert first.digest == second.digest
    assert first.lines == second.lines


def test_a_worker_whose_transaction_has_ended_while_it_was_paused_joins_again() -> None:
    """Its records are refused when it continues: that is no error of the application."""
    run = play("tails", 2, is_exactly_once=True)
    assert any("resume" in line for line in run.lines)
    assert run.complaint == ""
