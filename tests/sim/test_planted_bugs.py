"""The cluster simulation finds bugs that are planted in the broker, and nothing without them.

The quick tests replay the recorded seeds of a few bugs, `make test` those of all; the search for
new seeds is `python -m tests.sim.planted NAME`.
"""

import pytest

from .planted import PLANTED, SEEDS_MAX, play

QUICK = 3
KNOWN = {name: bug.seed for name, bug in PLANTED.items() if bug.seed is not None}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (index >= QUICK))
        for index, name in enumerate(KNOWN)
    ],
)
def test_a_planted_bug_is_found(name: str) -> None:
    """The recorded seed finds it; if the code has changed, another of the next seeds does."""
    seed = KNOWN[name]
    assert seed < SEEDS_MAX
    nearby = (*range(seed, seed + 10), *range(seed))
    assert any(not play(PLANTED[name], each).is_good for each in nearby), f"no seed finds {name}"


def test_enough_bugs_are_planted() -> None:
    """A simulation that finds only some kinds of mistakes proves little."""
    assert len(KNOWN) >= 15
