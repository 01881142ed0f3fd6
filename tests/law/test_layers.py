"""The layers are the same in README.md, the package docstring and .importlinter, and imports
respect them.
"""

import os
import re
import subprocess
import sys

import ottla
from tests.law import source

_LAYER = re.compile(r"^\s*layer \d.*$", re.MULTILINE)


def _layers(text: str) -> list[str]:
    return [" ".join(line.split()) for line in _LAYER.findall(text)]


def test_the_readme_and_the_package_show_the_same_layers() -> None:
    """README.md and the docstring of the package contain the same six lines."""
    readme = (source.ROOT / "README.md").read_text(encoding="utf-8")
    assert _layers(readme) == _layers(ottla.__doc__ or "")
    assert len(_layers(readme)) == 6


def test_the_contracts_name_every_package() -> None:
    """The layers of .importlinter are the packages of the diagram, no more and no fewer."""
    contracts = (source.ROOT / ".importlinter").read_text(encoding="utf-8")
    layers = contracts.split("layers =")[1].split("[importlinter")[0]
    packages = set()
    for line in _layers(ottla.__doc__ or ""):
        # "layer 3 replication | …": the first two words are the number of the layer.
        packages |= set(re.findall(r"[a-z]+", line.split(" ", 2)[2]))
    assert set(re.findall(r"[a-z]+", layers)) == packages


def test_imports_respect_the_contracts() -> None:
    """import-linter keeps every contract: layers, sides, handlers, messages, cycles, door modules."""
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
