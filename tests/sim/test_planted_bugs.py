"""The cluster simulation finds bugs that are planted in the broker.

The quick tests replay the recorded seeds of a few bugs, `make campaign` those of all; `python -m
tests.sim.planted NAME` searches for the first seed that finds a bug.
"""

import os

import pytest

from .planted import PLANTED, SEEDS_MAX, finding, play

pytestmark = pytest.mark.slow

# Three of a second each: replication, durability, and the fence between controllers.
QUICK = ("truncate_to_high_watermark", "count_unflushed_records", "accept_stale_controllers")
NEARBY = 10
IN_CAMPAIGN = pytest.mark.skipif(
    "OTTLA_CAMPAIGN" not in os.environ, reason="takes 3 s of CPU: part of `make campaign`"
)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[IN_CAMPAIGN] * (name not in QUICK)) for name in PLANTED]
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
