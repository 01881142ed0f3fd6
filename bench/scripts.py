"""How long Apache Kafka's scripts take to start: `python -m bench.scripts [rounds]`.

Each round starts every script once with `--no-such-option`: the interpreter, the imports of the
script and its command line, without a cluster. The table has the least and the median of the rounds,
and the same for a Python that does nothing.
"""

import statistics
import subprocess
import sys
import time

from ottla.tools.scripts.table import SCRIPTS

_PROGRAM = "from ottla.tools.scripts.entry import main; main({!r})"
_LIMIT_MS = 150
_NOTHING = "(python -c pass)"


def measure(rounds: int) -> dict[str, list[float]]:
    """Return the times of each script in ms, measured in turns."""
    programs = {_NOTHING: "pass"} | {name: _PROGRAM.format(name) for name in SCRIPTS}
    times: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, program in programs.items():
            start = time.perf_counter()
            subprocess.run(
                [sys.executable, "-c", program, "--no-such-option"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                stdin=subprocess.DEVNULL,
                check=False,
            )
            times[name].append((time.perf_counter() - start) * 1000)
    return times


def main(arguments: list[str]) -> None:
    """Print the table."""
    times = measure(int(arguments[0]) if arguments else 5)
    print(f"| Script | least ms | median ms | under {_LIMIT_MS} ms |\n| --- | --- | --- | --- |")
    for name, found in times.items():
        is_fast = "yes" if min(found) < _LIMIT_MS else "NO"
        print(f"| {name} | {min(found):.0f} | {statistics.median(found):.0f} | {is_fast} |")


if __name__ == "__main__":
    main(sys.argv[1:])
