"""The layers are the same in README.md, the package docstring and .importlinter, and imports
respect them.
"""

import json
import os
import re
import subprocess
import sys

import ottla
from tests.law import source
from tests.law.named_imports import UNKNOWN, named_imports

_LAYER = re.compile(r"^\s*layer \d.*$", re.MULTILINE)


def _layers(text: str) -> list[str]:
    return [" ".join(line.split()) for line in _LAYER.findall(text)]


def test_the_readme_and_the_package_show_the_same_layers() -> None:
    """README.md and the docstring of the package contain the same eight lines."""
    readme = (source.ROOT / "README.md").read_text(encoding="utf-8")
    assert _layers(readme) == _layers(ottla.__doc__ or "")
    assert len(_layers(readme)) == 8


def test_the_contracts_name_every_package() -> None:
    """The layers of .importlinter are the packages of the diagram, no more and no fewer."""
    contracts = (source.ROOT / ".importlinter").read_text(encoding="utf-8")
    layers = contracts.split("layers =")[1].split("[importlinter")[0]
    packages = set()
    for line in _layers(ottla.__doc__ or ""):
        # "layer 3 replication | …": the first two words are the number of the layer.
        packages |= set(re.findall(r"[a-z]+", line.split(" ", 2)[2]))
    # The scripts are a package of their own, which two other contracts keep above all layers.
    assert {*re.findall(r"[a-z]+", layers), "scripts"} == packages
    assert contracts.count(f"forbidden_modules =\n    {source.SCRIPTS}\n") == 1
    assert (
        contracts.count(
            f"source_modules =\n    {source.SCRIPTS}\nforbidden_modules =\n    ottla.learn"
        )
        == 1
    )


def _levels() -> dict[str, int]:
    """Return the position of each package in the layers of .importlinter, the highest first."""
    contracts = (source.ROOT / ".importlinter").read_text(encoding="utf-8")
    layers = contracts.split("layers =")[1].split("\n\n")[0].strip().splitlines()
    # `python -m ottla`, above all layers, and the scripts, beside the highest one.
    levels = {"__main__": -1, "scripts": 0}
    for level, layer in enumerate(layers):
        levels |= dict.fromkeys(re.findall(r"[a-z_]+", layer), level)
    return levels


def test_an_import_by_name_counts_as_an_import() -> None:
    """A module that is named in a text is in the same package or a lower layer."""
    levels = _levels()
    assert levels["tools"] < levels["streams"] < levels["base"]
    imports = named_imports()
    assert len(imports) > 200
    offences = {}
    for row in imports:
        if row.imported.startswith(f"{source.SCRIPTS}."):
            # The contract `scripts` names the one module that may import them.
            continue
        package = row.importer.package.removesuffix(".py")
        imported = row.imported.split(".")[1]
        if imported == UNKNOWN:
            offences[row.place] = f"line {row.line}: which package is this?"
        elif package not in ("", imported) and levels[imported] <= levels[package]:
            offences[row.place] = f"line {row.line}"
    assert source.complaints("layers-by-name", offences, "Import from a lower layer:") == []


def test_imports_respect_the_contracts() -> None:
    """import-linter keeps every contract: layers, sides, handlers, messages, cycles, door modules.

    Imports that are given as text count, apart from the listed exceptions.
    """
    excused = source.exceptions()["layers-by-name"]
    names = [
        (row.importer.module, row.imported, row.line, row.text)
        for row in named_imports()
        if row.place not in excused and UNKNOWN not in row.imported
    ]
    done = subprocess.run(
        [sys.executable, "-m", "tests.law.lint"],
        input=json.dumps(names),
        cwd=source.ROOT,
        env=os.environ | {"PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
