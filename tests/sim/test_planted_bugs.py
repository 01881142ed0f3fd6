"""The cluster simulation finds bugs that are planted in the broker, and nothing without them.

The quick tests replay the recorded seeds of a few bugs, `make test` those of all; the search for new seeds is
`python -m tests.sim.planted NAME`.
"""

import pytest

from .planted import PLANTED, SEEDS_MAX, play

QUICK = 4


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (index >= QUICK))
        for index, name in enumerate(PLANTED)
    ],
)
def test_a_planted_bug_is_found(name: str) -> None:
    """The recorded seed finds it; if the code has changed, another of the next seeds does."""
    bug = PLANTED[name]
    assert bug.seed < SEEDS_MAX
    nearby = (*range(bug.seed, bug.seed + 10), *range(bug.seed))
    assert any(not play(bug, seed).is_good for seed in nearby), f"no seed finds {name}"
