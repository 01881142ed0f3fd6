"""Clusters under faults: no acknowledged record is lost, duplicated or reordered, and every cluster
recovers.

Each scenario is a file in `scenarios/`. `make test` plays one seed of each, `make nightly` `SEEDS`
of them, and `make campaign SEEDS=5000` as many as it is given. Replay one: `python -m
tests.sim.campaign replay SCENARIO SEED`.
"""

import os
import subprocess
import sys

import pytest

from ottla.testing.sim.cluster.scenario import KINDS, RECOVERY_SECONDS_MAX, load

from .campaign import NAMES, SCENARIOS, Run, play

pytestmark = pytest.mark.slow

QUICK_SEEDS = 1
SEEDS = int(os.environ.get("OTTLA_SIM_SEEDS", "4"))
# Runs of campaigns that have found a fault: in the product, or (moves 136) in the judge.
FOUND = (
    Run("moves", 101),
    Run("moves", 136),
    Run("network", 116),
    Run("power", 122),
    Run("controllers", 1003),
    Run("disks", 4003),
)


def _marks(run: Run) -> list[pytest.MarkDecorator]:
    """Return the marks of a run: the seeds of a scenario look for the same faults."""
    if run in FOUND:
        return [pytest.mark.slow]
    return [pytest.mark.nightly(f"[{run.scenario}-0]")] * (run.seed >= QUICK_SEEDS)


RUNS = [
    pytest.param(
        run,
        id=f"{run.scenario}-{run.seed}",
        marks=_marks(run),
    )
    for run in (*(Run(name, seed) for name in NAMES for seed in range(SEEDS)), *FOUND)
]  # fmt: skip


@pytest.mark.parametrize("run", RUNS)
def test_a_cluster_under_faults_keeps_its_guarantees_and_recovers(run: Run) -> None:
    """A run fails for an anomaly in the history, for replicas that differ, and for a client without
    progress.
    """
    result = play(run)
    assert result.is_good, f"{run.scenario}: {result.report()}"
    assert result.acknowledged > 50
    assert result.polled > 50
    assert result.recovery_seconds <= RECOVERY_SECONDS_MAX


def test_every_kind_of_fault_is_in_a_scenario() -> None:
    """Every kind of fault is in a scenario, because the others are never tried."""
    named = {kind for name in NAMES for kind in load(SCENARIOS / f"{name}.toml").faults}
    assert named == set(KINDS)


def test_every_scenario_has_to_recover_in_time() -> None:
    """The time that a scenario allows for the recovery has a limit, so that slow recoveries are
    found.
    """
    limits = {load(SCENARIOS / f"{name}.toml").recovery_seconds for name in NAMES}
    assert max(limits) <= RECOVERY_SECONDS_MAX


def test_a_seed_gives_the_same_trace_in_every_process() -> None:
    """Every step and every byte on the wire and on the disk is independent of the process's hash
    seed.
    """
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.sim.campaign", "replay", "power", "3"],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for hash_seed in ("0", "1")
    ]
    outputs = {process.communicate()[0] for process in processes}
    assert [process.returncode for process in processes] == [0, 0]
    assert len(outputs) == 1
    assert len(outputs.pop().split()[0]) == 32
