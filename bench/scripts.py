"""How long Apache Kafka's scripts take to start: `python -m bench.scripts [rounds]`.

Each round starts every script once with `--no-such-option`: the interpreter, the imports of the
script and its command line, without a cluster. The table has the least and the median time of the
rounds and the least processor time, which does not depend on what else runs on the machine.
"""

import resource
import statistics
import subprocess
import sys
import time

from ottla.tools.scripts.table import SCRIPTS

_PROGRAM = "from ottla.tools.scripts.entry import main; main({!r})"
_LIMIT_MS = 150
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


def main(arguments: list[str]) -> None:
    """Print the table."""
    times = measure(int(arguments[0]) if arguments else 5)
    print(f"| Script | least ms | median ms | processor ms | under {_LIMIT_MS} ms |")
    print("| --- | --- | --- | --- | --- |")
    for name, time_ms in times.items():
        elapsed = [pair[0] for pair in time_ms]
        processor = min(pair[1] for pair in time_ms)
        is_fast = "yes" if min(elapsed) < _LIMIT_MS else "NO"
        median = statistics.median(elapsed)
        print(f"| {name} | {min(elapsed):.0f} | {median:.0f} | {processor:.0f} | {is_fast} |")


if __name__ == "__main__":
    main(sys.argv[1:])
