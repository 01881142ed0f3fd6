"""The start times of Apache Kafka's scripts: `python -m bench.scripts [ROUNDS] [--store]`.

Each round starts every script once with `--no-such-option`: the interpreter, the imports of the
script and its command line, without a cluster. The table has the least and the median time of the
rounds and the least processor time. The median must be below the limit: use an idle machine.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ottla_scripts.table import SCRIPTS

_PROGRAM = "from ottla_scripts.entry import main; main({!r})"
_LIMIT_MS = 150
_RESULTS = Path(__file__).parent / "results"
_NOTHING = "(python -c pass)"


def measure(rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Return the times and the processor times of each script in ms, measured in turns."""
    programs = {_NOTHING: "pass"} | {name: _PROGRAM.format(name) for name in SCRIPTS}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, program in programs.items():
            start, before = time.perf_counter(), _processor_ms()
            subprocess.run(
                [sys.executable, "-c", program, "--no-such-option"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                stdin=subprocess.DEVNULL,
                check=False,
            )
            elapsed_ms = (time.perf_counter() - start) * 1000
            times[name].append((elapsed_ms, _processor_ms() - before))
    return times


def _processor_ms() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


def table(times: Mapping[str, Sequence[tuple[float, float]]]) -> list[str]:
    """Return the lines of a Markdown table of the times."""
    lines = [
        f"| Script | least ms | median ms | processor ms | under {_LIMIT_MS} ms |",
        "|---|--:|--:|--:|---|",
    ]
    for name, rounds in times.items():
        elapsed = [pair[0] for pair in rounds]
        processor = min(pair[1] for pair in rounds)
        median = statistics.median(elapsed)
        is_fast = "yes" if median < _LIMIT_MS else "NO"
        lines.append(
            f"| {name} | {min(elapsed):.0f} | {median:.0f} | {processor:.0f} | {is_fast} |"
        )
    return lines


def store(times: Mapping[str, Sequence[tuple[float, float]]], rounds: int) -> Path:
    """Store the times of all rounds and the table; return the file with the table."""
    now = datetime.now(UTC)
    about = {
        "date": f"{now:%Y-%m-%d}",
        "rounds": rounds,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
    }
    target = _RESULTS / f"{now:%Y-%m-%d-%H%M%S}-scripts"
    target.with_suffix(".json").write_text(
        json.dumps({"about": about, "milliseconds": times}) + "\n", encoding="utf-8"
    )
    head = (
        f"{rounds} interleaved rounds on {about['date']}; {about['cores']} cores, Python "
        f"{about['python']}, load average {about['load']:.1f}. Command: `python -m bench.scripts "
        f"{rounds} --store`."
    )
    text = "\n".join([f"# {target.name}: start of the scripts", "", head, "", *table(times), ""])
    page = target.with_suffix(".md")
    page.write_text(text, encoding="utf-8")
    return page


def main() -> None:
    """Print the table, and store it if `--store` is given."""
    parser = argparse.ArgumentParser()
    parser.add_argument("rounds", type=int, nargs="?", default=5)
    parser.add_argument("--store", action="store_true", help="Write a result to bench/results.")
    arguments = parser.parse_args()
    times = measure(arguments.rounds)
    print("\n".join(table(times)))
    if arguments.store:
        print(store(times, arguments.rounds))


if __name__ == "__main__":
    main()
