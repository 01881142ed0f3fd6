"""Plays many seeds of the cluster scenarios, and shrinks the schedule of each seed that fails.

    python -m tests.sim.campaign run 5000         # seeds in all, over the scenarios in turn
    python -m tests.sim.campaign run 300 runs.jsonl  # the same, each result added to a file;
                                                  # runs that the file has are not repeated
    python -m tests.sim.campaign report runs.jsonl results.md   # the table of such a file
    python -m tests.sim.campaign replay power 17  # one run: its digest and its problems
    python -m tests.sim.campaign shrink power 17  # a shorter schedule that fails, too

`OTTLA_SIM_FIRST_SEED` is the first seed (default 0), `OTTLA_SIM_PROCESSES` the number of processes
(default 2).
"""

import json
import logging
import multiprocessing
import os
import platform
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ottla.testing.sim.cluster.run import NOT_RECOVERED, RunResult, simulate
from ottla.testing.sim.cluster.scenario import RECOVERY_SECONDS_MAX, Schedule, load
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


def play(run: Run, schedule: Schedule | None = None, *, keep_trace: int = 0) -> RunResult:
    """Play one run."""
    scenario = load(SCENARIOS / f"{run.scenario}.toml")
    return simulate(scenario, run.seed, schedule, keep_trace=keep_trace)


def shortest(run: Run) -> RunResult:
    """Return the result of a failing run with a schedule as short as possible."""
    schedule = shrink(play(run).schedule, lambda shorter: not play(run, shorter).is_good)
    return play(run, schedule)


def _quiet() -> None:
    logging.disable(logging.CRITICAL)


def _play_in_worker(run: Run) -> tuple[Run, RunResult, float]:
    began = time.process_time()
    return run, play(run), time.process_time() - began


def campaign(count: int, saved: Path | None = None) -> int:
    """Play `count` runs in several processes; return the number of those that failed.

    Each result is added to the file `saved` as a line of JSON; runs that it already has are left
    out.
    """
    finished = _finished(saved)
    failed: list[tuple[Run, RunResult]] = []
    faults: Counter[str] = Counter()
    slowest, acknowledged = 0.0, 0
    with multiprocessing.get_context("spawn").Pool(PROCESSES, _quiet) as pool:
        for number, (run, result, cpu_seconds) in enumerate(
            pool.imap_unordered(
                _play_in_worker, (run for run in runs(count) if run not in finished)
            ),
            1 + len(finished),
        ):
            faults.update(result.applied)
            slowest = max(slowest, result.recovery_seconds)
            acknowledged += result.acknowledged
            if saved is not None:
                with saved.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(_line(run, result, cpu_seconds)) + "\n")
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


def _finished(saved: Path | None) -> set[Run]:
    if saved is None or not saved.exists():
        return set()
    lines = map(json.loads, saved.read_text(encoding="utf-8").splitlines())
    return {Run(line["scenario"], line["seed"]) for line in lines}


def _line(run: Run, result: RunResult, cpu_seconds: float) -> dict[str, object]:
    return {
        "scenario": run.scenario,
        "seed": run.seed,
        "digest": result.digest,
        "unsafe": sum(not text.startswith(NOT_RECOVERED) for text in result.problems),
        "not_recovered": sum(text.startswith(NOT_RECOVERED) for text in result.problems),
        "recovery_seconds": round(result.recovery_seconds, 3),
        "acknowledged": result.acknowledged,
        "polled": result.polled,
        "faults": sum(result.applied.values()),
        "cpu_seconds": round(cpu_seconds, 3),
    }


def report(saved: Path, target: Path) -> None:
    """Write the table of the runs in a file: one row for each scenario, and one for all."""
    runs = [json.loads(line) for line in saved.read_text(encoding="utf-8").splitlines()]
    rows = [
        _row(name, [item for item in runs if item["scenario"] == name])
        for name in sorted({item["scenario"] for item in runs})
    ]
    first = min(item["seed"] for item in runs)
    last = max(item["seed"] for item in runs)
    lines = [
        f"# {target.stem}: clusters under faults, simulated",
        "",
        f"{len(runs)} runs of the scenarios in tests/sim/scenarios, seeds {first} to {last};"
        f" Python {platform.python_version()}. Command: `make campaign SEEDS={len(runs)}`."
        f" A run recovers when every replica is in sync and every client has made progress;"
        f" it fails after {RECOVERY_SECONDS_MAX:.0f} simulated seconds.",
        "",
        "| scenario | runs | unsafe | not recovered | faults | acknowledgements | records polled"
        " | recovery p50, simulated s | most | CPU s per run |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
        *rows,
        _row("all", runs),
    ]
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _row(name: str, runs: Sequence[Mapping[str, Any]]) -> str:
    recoveries = [item["recovery_seconds"] for item in runs]
    cells = [
        len(runs),
        sum(item["unsafe"] > 0 for item in runs),
        sum(item["not_recovered"] > 0 for item in runs),
        *(f"{sum(item[key] for item in runs):,}" for key in ("faults", "acknowledged", "polled")),
        f"{statistics.median(recoveries):.1f}",
        f"{max(recoveries):.1f}",
        f"{statistics.fmean(item['cpu_seconds'] for item in runs):.1f}",
    ]
    return f"| {name} | {' | '.join(map(str, cells))} |"


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    """Perform one of the commands above; return the exit status."""
    _quiet()
    command, *rest = arguments
    if command == "run":
        return int(campaign(int(rest[0]), *map(Path, rest[1:])) > 0)
    if command == "report":
        report(*map(Path, rest))
        return 0
    run = Run(rest[0], int(rest[1]))
    result = play(run) if command == "replay" else shortest(run)
    _write(f"{result.digest} {result.acknowledged} {result.polled}")
    if not result.is_good:
        _write(result.report())
    return int(not result.is_good)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
