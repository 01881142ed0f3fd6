"""The cluster simulation finds bugs that are planted in the broker.

`make test` replays the recorded seeds of a few bugs, `make nightly` the seeds of all; `python -m
tests.sim.planted NAME` searches for the first seed that finds a bug.
"""

import pytest

from .planted import PLANTED, SEEDS_MAX, finding, play

pytestmark = pytest.mark.slow

# Three of a second each: replication, durability, and the end of a controller's term.
QUICK = ("truncate_to_high_watermark", "count_unflushed_records", "accept_stale_controllers")
NEARBY = 10
# The simulation is tested, not the broker: it fails if a scenario no longer finds what it should.
NIGHTLY = pytest.mark.nightly("tests/sim/test_planted_bugs.py::test_a_planted_bug_is_found")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[NIGHTLY] * (name not in QUICK)) for name in PLANTED]
)
def test_a_planted_bug_is_found(name: str) -> None:
    """The recorded seed finds the bug or, if the code has changed since, one of the next or first
    seeds.
    """
    bug = PLANTED[name]
    assert bug.seed < SEEDS_MAX
    seeds = (*range(bug.seed, bug.seed + NEARBY), *range(bug.seed))
    assert any(finding(bug, play(bug, seed)) for seed in seeds), f"no seed finds {name}"


def test_enough_bugs_are_planted() -> None:
    """At least 15 bugs are planted, so that the simulation is tested with many kinds of
    mistakes.
    """
    assert len(PLANTED) >= 15
