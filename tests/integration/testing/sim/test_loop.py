"""The event loop on virtual time, in another process."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from ottla.base.rng import SeededRng
from ottla.testing.sim.loop import (
    SimLoop,
)
from tests.unit.testing.sim.test_loop import order_of_tasks


@pytest.fixture
def loop() -> Iterator[SimLoop]:
    """Return a loop with one seed."""
    with SimLoop(SeededRng(3)) as sim_loop:
        yield sim_loop


def test_trace_is_the_same_in_another_process() -> None:
    """The order depends neither on addresses nor on the hash seed of the process."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from tests.unit.testing.sim.test_loop import order_of_tasks;"
        "print(order_of_tasks(7))"
    )
    root = __file__.rpartition("/tests/")[0]
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program, root],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert outputs == {f"{order_of_tasks(7)}\n"}
