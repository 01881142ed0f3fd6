"""Where the time of a run of the tests goes: the file `out/durations.json`, tables, and budgets.

    python -m tests.durations                  # the tables of the last run
    python -m tests.durations OLD NEW          # compare two runs, folder by folder and test by test
    python -m tests.durations --record-order   # store the seconds of files: the longest start first

Seconds cover set-up, test and tear-down, with the waiting in them; processor seconds are measured
for the test's process and of all its children.
"""

import json
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.runs import scheduler
from tests.runs.processor_time import REFERENCE_LOOP_SECONDS

OUT = Path("out")
FILE = OUT / "durations.json"
BUDGETS_FILE = Path(__file__).parent / "budgets.toml"

# A folder may exceed its budget by a quarter.
TOLERANCE = 1.25

# Files below these folders belong to the folder below it: `unit/storage`, not `unit`.
_DIVIDED = ("unit", "integration")
_ORDERED_SECONDS_MIN = 3.0
_SLOWEST = 20


@dataclass
class Cost:
    """The time that some tests have taken."""

    tests: int = 0
    seconds: float = 0.0
    processor_seconds: float = 0.0

    def add(self, other: "Cost") -> None:
        """Add the time of other tests."""
        self.tests += other.tests
        self.seconds += other.seconds
        self.processor_seconds += other.processor_seconds


@dataclass
class Durations:
    """The time of each test of one run.

    `wall_seconds` and `processor_seconds` cover the whole run, with collection and start-up.
    `loop_seconds` is the median time of a fixed loop during the run, which says how fast the
    machine was.
    """

    wall_seconds: float = 0.0
    processor_seconds: float = 0.0
    loop_seconds: float = REFERENCE_LOOP_SECONDS
    tests: dict[str, Cost] = field(default_factory=dict)

    def by_file(self) -> dict[str, Cost]:
        """Return the time of each file."""
        return self._sums(lambda nodeid: nodeid.partition("::")[0])

    def by_folder(self) -> dict[str, Cost]:
        """Return the time of each folder."""
        return self._sums(folder_of)

    def save(self, path: Path) -> None:
        """Write tests, files and folders as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = {
            "wall_seconds": round(self.wall_seconds, 1),
            "processor_seconds": round(self.processor_seconds, 1),
            "loop_seconds": self.loop_seconds,
            "folders": _as_json(self.by_folder()),
            "files": _as_json(self.by_file()),
            "tests": _as_json(self.tests),
        }
        path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")

    def _sums(self, key: Callable[[str], str]) -> dict[str, Cost]:
        sums: dict[str, Cost] = {}
        for nodeid, cost in self.tests.items():
            sums.setdefault(key(nodeid), Cost()).add(cost)
        return dict(sorted(sums.items(), key=lambda row: -row[1].seconds))


def folder_of(nodeid: str) -> str:
    """Return the folder of a test: `spark`, `unit/storage`; `.` for a file directly in `tests`."""
    parts = Path(nodeid.partition("::")[0]).parts[1:-1]
    if not parts:
        return "."
    return "/".join(parts[: 2 if parts[0] in _DIVIDED else 1])


def load(path: Path) -> Durations:
    """Return a stored run.

    Raises SystemExit with a sentence if the file is not one.
    """
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        tests = {nodeid: Cost(**row) for nodeid, row in rows["tests"].items()}
        return Durations(
            rows["wall_seconds"], rows["processor_seconds"], rows["loop_seconds"], tests
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SystemExit(f"cannot read durations from '{path}': {error}") from None


def table_of(durations: Durations) -> list[str]:
    """Return the table of folders and the slowest tests."""
    lines = [f"{'seconds':>9} {'processor':>9} {'tests':>6}  folder"]
    lines += [_row(name, cost) for name, cost in durations.by_folder().items()]
    total = Cost()
    for cost in durations.tests.values():
        total.add(cost)
    lines.append(_row("sum of the tests", total))
    lines.append(
        f"wall time {_minutes(durations.wall_seconds)}, processor time "
        f"{_minutes(durations.processor_seconds)} with collection; speed of the machine "
        f"{REFERENCE_LOOP_SECONDS / durations.loop_seconds:.2f} of the reference"
    )
    slowest = sorted(durations.tests.items(), key=lambda row: -row[1].seconds)[:_SLOWEST]
    lines += ["", f"{'seconds':>9} {'processor':>9}  the {len(slowest)} slowest tests"]
    lines += [
        f"{cost.seconds:9.1f} {cost.processor_seconds:9.1f}  {name}" for name, cost in slowest
    ]
    return lines


def comparison(old: Durations, new: Durations) -> list[str]:
    """Return the folders of two runs, and the tests whose time has changed most."""
    lines = [
        f"wall time {_minutes(old.wall_seconds)} -> {_minutes(new.wall_seconds)}, processor time "
        f"{_minutes(old.processor_seconds)} -> {_minutes(new.processor_seconds)}",
        "",
        f"{'seconds':>17} {'processor seconds':>19}  folder",
    ]
    lines += _changes(old.by_folder(), new.by_folder())
    lines += ["", f"{'seconds':>17} {'processor seconds':>19}  test"]
    changes = _changes(old.tests, new.tests)
    return lines + changes[:_SLOWEST]


def over_budget(
    folders: Mapping[str, Cost], budgets: Mapping[str, float], loop_seconds: float
) -> list[str]:
    """Return a sentence for each folder that exceeds its budget of processor seconds.

    Budgets apply to the reference machine: a slower machine has more, in proportion.
    """
    slowness = loop_seconds / REFERENCE_LOOP_SECONDS
    sentences = []
    for folder, cost in folders.items():
        used = cost.processor_seconds / slowness
        if folder not in budgets:
            sentences.append(
                f"'{folder}' has no budget: add its {used:.0f} processor seconds to {BUDGETS_FILE}"
            )
        elif used > budgets[folder] * TOLERANCE:
            sentences.append(
                f"'{folder}' took {used:.0f} processor seconds, and its budget is "
                f"{budgets[folder]:.0f}: make its tests cheaper, or raise the budget in "
                f"{BUDGETS_FILE} with a reason"
            )
    return sentences


def budgets() -> dict[str, float]:
    """Return the processor seconds of each folder on the reference machine."""
    return dict(tomllib.loads(BUDGETS_FILE.read_text(encoding="utf-8"))["folders"])


def _as_json(costs: Mapping[str, Cost]) -> dict[str, dict[str, float]]:
    return {
        name: {key: round(value, 3) for key, value in asdict(cost).items()}
        for name, cost in costs.items()
    }


def _row(name: str, cost: Cost) -> str:
    return f"{cost.seconds:9.1f} {cost.processor_seconds:9.1f} {cost.tests:6d}  {name}"


def _changes(old: Mapping[str, Cost], new: Mapping[str, Cost]) -> list[str]:
    """Return a line for each name of either run, the largest change of seconds first."""
    rows = [(name, old.get(name, Cost()), new.get(name, Cost())) for name in {*old, *new}]
    rows.sort(key=lambda row: (-abs(row[2].seconds - row[1].seconds), row[0]))
    return [
        f"{before.seconds:7.1f} -> {after.seconds:6.1f} "
        f"{before.processor_seconds:8.1f} -> {after.processor_seconds:7.1f}  {name}"
        for name, before, after in rows
    ]


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


def main(arguments: Sequence[str]) -> None:
    """Print the tables of one run, compare two, or store the order of the files."""
    if list(arguments) == ["--record-order"]:
        files = load(FILE).by_file()
        scheduler.write_order(
            ((file, cost.seconds) for file, cost in files.items()), _ORDERED_SECONDS_MIN
        )
    elif len(arguments) == 2:
        _print(comparison(load(Path(arguments[0])), load(Path(arguments[1]))))
    elif len(arguments) <= 1:
        _print(table_of(load(Path(arguments[0]) if arguments else FILE)))
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
