"""Compare topologies on Spark with other engines: `python -m bench.streams [--quick] [--only A,B]
[--keys N,M]`.

Six topologies (streams_topologies.py) run with a thousand, a hundred thousand and a million keys;
stateless ones with one number of keys. The contenders are Ottla on Spark, hand-written queries with
Spark's own connector, a processor that calls Spark's state for each record, Quix Streams (a process
per core) and Kafka Streams (a thread per core). All read the same records from one Ottla broker,
and their results are checked (streams_turn.py). One contender runs at a time, on all cores; each
round runs every contender with every setting, in alternating order.

The figures are medians: records per second and CPU µs per record with filled state and warm code,
the time from a record to its result at 200 records per second, the memory of all processes of a
contender, and the time from its start to its first record. The TopologyTestDriver, and source and
sink next to Spark's connector, are measured as well. Needs Java, Maven, and PyPI once. The results
are saved in bench/results/. Other load on the machine changes records per second and latency, but
hardly the CPU time.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench import servers, streams_report
from bench.streams_contenders import CONTENDERS, Contender
from bench.streams_topologies import TOPOLOGIES, WITHOUT_STATE
from bench.streams_turn import Refused, Setting, Turn

RESULTS = Path(__file__).parent / "results"
KEYS = (1_000, 100_000, 1_000_000)
_FEW_KEYS = 100_000
_RECORDS = 600_000
_QUICK_RECORDS = 200_000


def settings(names: Sequence[str], keys: Sequence[int], records: int) -> list[Setting]:
    """Return the settings to measure; the number of keys does not matter for stateless topologies."""
    few = _FEW_KEYS if _FEW_KEYS in keys else keys[0]
    return [
        Setting(name, each, records)
        for name in names
        for each in ([few] if name in WITHOUT_STATE else keys)
    ]


class Contest:
    """Runs all measurements, round after round."""

    def __init__(self, server: servers.Server, names: Sequence[str], cores: int) -> None:
        self._server = server
        self._names = names
        self._cores = cores
        self.turns: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(
            lambda: defaultdict(list)
        )

    def round(self, number: int, requested: Sequence[Setting]) -> None:
        """Run every setting with every contender; each is started again."""
        order = self._names[number % len(self._names) :] + self._names[: number % len(self._names)]
        running = {
            name: CONTENDERS[name](name, self._server.bootstrap, self._cores) for name in order
        }
        try:
            for setting in requested:
                for contender in running.values():
                    if setting.topology in contender.topologies:
                        self._turn(number, contender, setting)
        finally:
            for contender in running.values():
                contender.end()

    def _turn(self, number: int, contender: Contender, setting: Setting) -> None:
        title = f"{setting.topology}, {setting.keys:,} keys"
        begin = time.perf_counter()
        try:
            entries = asdict(Turn(contender, self._server, setting).run())
            message = f"{entries['rate']:,.0f} records/s, {entries['cpu_us']:.2f} µs"
        except (Refused, RuntimeError, OSError) as error:
            entries = {"refused": str(error)}
            message = f"refused: {error}"
            contender.kill()
        entries["load"] = os.getloadavg()[0]
        self.turns[title][contender.name].append(entries)
        took = time.perf_counter() - begin
        print(
            f"round {number + 1}: {title}, {contender.name}: {message} ({took:.0f} s)",
            file=sys.stderr,
            flush=True,
        )


def printed_by(module: str, *words: str) -> Any:
    """Run a module and return the JSON that it printed last."""
    command = [sys.executable, "-m", module, *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Run the measurements, print and save them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", type=int)
    parser.add_argument("--only", default="", help="topologies: count,processor,…; sides; driver")
    parser.add_argument("--contenders", default="", help="ottla,quix,…")
    parser.add_argument("--keys", default="")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="one round, fewer records and keys")
    options = parser.parse_args()
    keys = [int(part) for part in options.keys.split(",") if part]
    keys = keys or list(KEYS[:2] if options.quick else KEYS)
    rounds = 1 if options.quick else options.rounds
    records = options.records or (_QUICK_RECORDS if options.quick else _RECORDS)
    only = options.only.split(",") if options.only else [*TOPOLOGIES, "sides", "driver"]
    names = options.contenders.split(",") if options.contenders else list(CONTENDERS)
    unknown = {*only} - {*TOPOLOGIES, "sides", "driver"} | {*names} - {*CONTENDERS}
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    entries: dict[str, Any] = {"load before": os.getloadavg()}
    topologies = [name for name in TOPOLOGIES if name in only]
    if topologies:
        server = servers.start_ottla()
        contest = Contest(server, names, options.cores)
        try:
            for number in range(rounds):
                contest.round(number, settings(topologies, keys, records))
        finally:
            server.stop()
        entries["turns"] = contest.turns
    if "driver" in only:
        entries["driver"] = printed_by("bench.streams_driver")
    if "sides" in only:
        share = ("--share", "0.2") if options.quick else ()
        entries["sides"] = printed_by("bench.streams_connector", "--rounds", str(rounds), *share)
    report(entries, f"{rounds} rounds" if rounds > 1 else "one round", options.cores)


def report(entries: Mapping[str, Any], rounds: str, cores: int) -> None:
    """Print the tables and save them with the raw figures."""
    stamp = time.strftime("%Y-%m-%d-%H%M%S")
    turns, sides = entries.get("turns", {}), entries.get("sides", {})
    loads = [each["load"] for row in turns.values() for some in row.values() for each in some]
    load = f"; load average in the turns up to {max(loads):.1f}" if loads else ""
    lines = [
        f"# {stamp}: streams",
        "",
        f"Medians of {rounds}, {cores} cores; {platform.machine()}, Linux {platform.release()}, "
        f"Python {platform.python_version()}; load average before {entries['load before'][0]:.1f}{load}. "
        f"Command: `{' '.join(['python -m bench.streams', *sys.argv[1:]])}`.",
        "",
    ]
    if turns:
        lines += streams_report.throughput(turns)
        lines += streams_report.refusals(turns) + streams_report.contenders(turns)
    lines += streams_report.drivers(entries.get("driver", {}))
    lines += streams_report.sources_and_sinks(sides)
    lines += streams_report.aims(turns, sides)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{stamp}-streams.md").write_text("\n".join(lines))
    (RESULTS / f"{stamp}-streams.json").write_text(json.dumps(entries, indent=1))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
