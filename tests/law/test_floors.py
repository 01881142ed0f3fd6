"""The floor plan in three places is one plan, and the imports keep to it."""

import os
import re
import subprocess
import sys

import ottla
from tests.law import source

_PLAN = re.compile(r"^\s*floor \d.*$", re.MULTILINE)


def _plan(text: str) -> list[str]:
    return [" ".join(line.split()) for line in _PLAN.findall(text)]


def test_the_readme_and_the_package_show_the_same_floors() -> None:
    """Whoever changes the plan changes it where people read it."""
    readme = (source.ROOT / "README.md").read_text(encoding="utf-8")
    assert _plan(readme) == _plan(ottla.__doc__ or "")
    assert len(_plan(readme)) == 6


def test_the_contracts_name_every_room_of_the_plan() -> None:
    """The layers of .importlinter are the rooms of the plan, no more and no fewer."""
    contracts = (source.ROOT / ".importlinter").read_text(encoding="utf-8")
    layers = contracts.split("layers =")[1].split("[importlinter")[0]
    rooms = set()
    for line in _plan(ottla.__doc__ or ""):
        # "floor 3 engines replication | …": two words of numbering, one of naming.
        rooms |= set(re.findall(r"[a-z]+", line.split(" ", 3)[3]))
    assert set(re.findall(r"[a-z]+", layers)) == rooms


def test_imports_keep_to_the_contracts() -> None:
    """Floors, worlds, handlers, messages, circles and doors, as import-linter sees them."""
    command = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"
    done = subprocess.run(
        [sys.executable, "-c", command],
        cwd=source.ROOT,
        env=os.environ | {"PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
