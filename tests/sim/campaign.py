"""Plays many seeds of the cluster scenarios, and shrinks the schedule of each seed that fails.

    python -m tests.sim.campaign run 5000         # seeds in all, over the scenarios in turn
    python -m tests.sim.campaign replay power 17  # one run: its digest and its problems
    python -m tests.sim.campaign shrink power 17  # a shorter schedule that fails, too

`OTTLA_SIM_FIRST_SEED` is the first seed (default 0), `OTTLA_SIM_PROCESSES` the number of processes
(default 2).
"""

import logging
import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ottla.testing.sim.cluster.run import Result, simulate
from ottla.testing.sim.cluster.scenario import Schedule, load
from ottla.testing.sim.cluster.shrink import shrink

SCENARIOS = Path(__file__).parent / "scenarios"
NAMES = sorted(path.stem for path in SCENARIOS.glob("*.toml"))
FIRST_SEED = int(os.environ.get("OTTLA_SIM_FIRST_SEED", "0"))
PROCESSES = int(os.environ.get("OTTLA_SIM_PROCESSES", "2"))


class Run(NamedTuple):
    """One seed of one scenario."""

    scenario: str
    seed: int


def runs(count: int, first_seed: int = FIRST_SEED) -> Iterator[Run]:
    """Yield runs: each seed with every scenario, then the next seed."""
    for number in range(count):
        yield Run(NAMES[number % len(NAMES)], first_seed + number // len(NAMES))


def play(run: Run, schedule: Schedule | None = None, *, keep_trace: int = 0) -> Result:
    """Play one run."""
    scenario = load(SCENARIOS / f"{run.scenario}.toml")
    return simulate(scenario, run.seed, schedule, keep_trace=keep_trace)


def shortest(run: Run) -> Result:
    """Return the result of a failing run with a schedule as short as possible."""
    schedule = shrink(play(run).schedule, lambda shorter: not play(run, shorter).is_good)
    return play(run, schedule)


def _quiet() -> None:
    logging.disable(logging.CRITICAL)


def _play_in_worker(run: Run) -> tuple[Run, Result]:
    return run, play(run)


def campaign(count: int) -> int:
    """Play `count` runs in several processes; return the number of those that failed."""
    failed: list[tuple[Run, Result]] = []
    faults: Counter[str] = Counter()
    slowest, acknowledged = 0.0, 0
    with multiprocessing.get_context("spawn").Pool(PROCESSES, _quiet) as pool:
        for number, (run, result) in enumerate(
            pool.imap_unordered(_play_in_worker, runs(count)), 1
        ):
            faults.update(result.applied)
            slowest = max(slowest, result.recovery_seconds)
            acknowledged += result.acknowledged
            if not result.is_good:
                failed.append((run, result))
                _write(f"FAILED {run.scenario} {run.seed}: {result.problems[0][:300]}")
            if number % 100 == 0:
                _write(f"{number} of {count} runs, {len(failed)} failed")
    for run, _ in failed[:5]:
        _write(f"\n{run.scenario}: {shortest(run).report()}")
    _write(
        f"{count} runs, {len(failed)} failed; {acknowledged} acknowledgements; slowest recovery"
        f" {slowest:.1f} simulated seconds; faults: {dict(sorted(faults.items()))}"
    )
    return len(failed)


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    """Perform one of the commands above; return the exit status."""
    _quiet()
    command, *rest = arguments
    if command == "run":
        return int(campaign(int(rest[0])) > 0)
    run = Run(rest[0], int(rest[1]))
    result = play(run) if command == "replay" else shortest(run)
    _write(f"{result.digest} {result.acknowledged} {result.polled}")
    if not result.is_good:
        _write(result.report())
    return int(not result.is_good)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
