"""The tests that have failed in a run, and those that passed when they were repeated."""

import json
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

FAILURES_FILE = "failures.json"
FLAKY_FILE = "flaky.json"


@dataclass
class Failures:
    """The first failure's message of each test, and the folders that exceed their budgets."""

    tests: dict[str, str] = field(default_factory=dict)
    budgets: list[str] = field(default_factory=list)

    def add(self, nodeid: str, text: str) -> None:
        """Add the last line of a failure's text; the first failure of a test is kept."""
        self.tests.setdefault(nodeid, message_of(text))

    def save(self, folder: Path) -> None:
        """Write the failures of a run below its folder."""
        folder.mkdir(parents=True, exist_ok=True)
        rows = {"tests": self.tests, "budgets": self.budgets}
        (folder / FAILURES_FILE).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def load(folder: Path) -> Failures:
    """Return the failures of the run with this folder; nothing if it has not written any."""
    try:
        rows = json.loads((folder / FAILURES_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Failures()
    return Failures(rows["tests"], rows["budgets"])


def forget(folder: Path) -> None:
    """Remove the failures of an earlier run."""
    (folder / FAILURES_FILE).unlink(missing_ok=True)


def message_of(text: str) -> str:
    """Return the line of a failure's text that says what failed.

    pytest marks the lines of the exception with `E`; the first one has its type and message.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    marked = [line[1:].strip() for line in lines if line.startswith("E  ")]
    return (marked or lines[-1:] or ["no message"])[0][:300]


def append_flaky(folder: Path, messages: Mapping[str, str]) -> None:
    """Append tests with their first failure to the file of all flaky tests that were seen."""
    path = folder / FLAKY_FILE
    rows = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    seen = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "machine": platform.node(),
    }
    rows += [{**seen, "test": test, "message": message} for test, message in messages.items()]
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def _commit() -> str:
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout.strip()
