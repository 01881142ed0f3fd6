"""Compare Ottla with Apache Kafka (`make bench`); prints ratios and saves them in bench/results/.

Both servers are up during one run. Each figure is measured in rounds that alternate which server
goes first; the report has the median of the rounds, and the ratio of the medians. Run it on a
machine that does nothing else. `--page` also fills the figures of docs/performance.md. `--before`
adds another version of Ottla to the same run, to show what a change costs:
`--before ../old/.venv/bin/ottla`.
"""

import argparse
import json
import os
import platform
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from bench import servers
from bench.contest import Contest, Figures, measure_start, reported
from bench.report import BEFORE, OURS, publish, write

RESULTS = Path(__file__).parent / "results"
SUBJECTS = (
    "tiny",
    "one_in_flight",
    "small_batches",
    "large_batches",
    "fetch",
    "metadata",
    "clients",
    "cold",
    "coordination",
    "never_read",
    "many_partitions",
    "memory",
    "start",
)
Values = dict[str, dict[str, list[float]]]


def measure(starts: dict[str, Callable[[], servers.Server]], words: argparse.Namespace) -> Values:
    """Start the servers and return the values of all rounds by figure and server."""
    figures: Values = defaultdict(lambda: defaultdict(list))
    subjects = [name for name in SUBJECTS if not words.only or name in words.only.split(",")]
    running = {name: start() for name, start in starts.items()}
    try:
        contests = {name: Contest(server, words.seconds) for name, server in running.items()}
        for number in range(words.rounds):
            order = sorted(starts, reverse=bool(number % 2))
            for subject in subjects:
                for name in order:
                    print(f"round {number + 1}: {subject} of {name}", file=sys.stderr, flush=True)
                    result = _turn(subject, starts[name], contests[name])
                    for figure, value in result.items():
                        figures[figure][name].append(value)
    finally:
        for server in running.values():
            server.stop()
    return figures


def _turn(subject: str, start: Callable[[], servers.Server], contest: Contest) -> Figures:
    """Measure one subject of one server."""
    if subject == "start":
        return reported(lambda: measure_start(start))
    return reported(getattr(contest, subject))


def main() -> None:
    """Measure both servers, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--kafka", default=servers.KAFKA_VERSION)
    parser.add_argument("--only", default="", help=f"comma-separated: {','.join(SUBJECTS)}")
    parser.add_argument("--page", type=Path, help="a page to fill with the figures")
    parser.add_argument("--before", type=Path, help="the ottla command of an older version")
    options = parser.parse_args()
    peer = f"kafka {options.kafka}"
    about = {
        "peer": peer,
        "date": time.strftime("%Y-%m-%d"),
        "rounds": options.rounds,
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "linux": platform.release(),
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
        # Folders of this machine mean nothing to readers of the report.
        "arguments": " ".join(
            word.rpartition("/")[2] if word[0] == "/" else word for word in sys.argv[1:]
        ),
    }
    starts: dict[str, Callable[[], servers.Server]] = {
        OURS: servers.start_ottla,
        peer: lambda: servers.start_kafka(options.kafka),
    }
    if options.before is not None:
        starts[BEFORE] = lambda: servers.start_ottla(command=options.before)
    figures = measure(starts, options)
    RESULTS.mkdir(exist_ok=True)
    result = RESULTS / f"{time.strftime('%Y-%m-%d-%H%M%S')}.json"
    result.write_text(json.dumps({"about": about, "figures": figures}, indent=1), encoding="utf-8")
    print("\n".join(write(result)))
    if options.page is not None:
        publish(result, options.page)


if __name__ == "__main__":
    main()
