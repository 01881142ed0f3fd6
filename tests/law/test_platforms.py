"""Names that only Linux has are used in one package, ottla/base/platform, with a portable form.

The list is in tests/portable/names.py: the names of Python's library that mypy's
type stubs (typeshed) define for Linux and not for macOS.
"""

import ast
import importlib
import sys
from collections.abc import Iterable
from pathlib import Path

import mypy
import pytest

from docs import platforms
from tests.law import source
from tests.portable.names import LINUX_ONLY, SYSTEM_FOLDERS

_STUBS = Path(mypy.__file__).parent / "typeshed" / "stdlib"
_HOME = "ottla/base/platform/"


def _is_true(test: ast.expr, platform: str) -> bool | None:
    """Return the value of a condition of a stub on a platform; None if it cannot be decided."""
    if isinstance(test, ast.BoolOp):
        values = [_is_true(value, platform) for value in test.values]
        deciding = isinstance(test.op, ast.Or)
        return deciding if deciding in values else (None if None in values else not deciding)
    if not isinstance(test, ast.Compare):
        return None
    left, right = ast.unparse(test.left), ast.literal_eval(test.comparators[0])
    if left == "sys.platform":
        return (platform == right) is isinstance(test.ops[0], ast.Eq)
    if left == "sys.version_info":
        return (sys.version_info[: len(right)] >= right) is isinstance(test.ops[0], ast.GtE)
    return None


def _defined(body: Iterable[ast.stmt], platform: str) -> set[str]:
    """Return the names that a stub defines on a platform."""
    names: set[str] = set()
    for node in body:
        if isinstance(node, ast.If):
            value = _is_true(node.test, platform)
            names |= _defined(node.body, platform) if value is not False else set()
            names |= _defined(node.orelse, platform) if value is not True else set()
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


@pytest.mark.skipif(sys.platform != "linux", reason="the list has the names of Linux")
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the list is that of Python 3.11")
@pytest.mark.parametrize("module", sorted(LINUX_ONLY))
def test_the_list_has_the_names_that_macos_lacks(module: str) -> None:
    """The list agrees with typeshed for each module, as far as this Python has the names."""
    path = _STUBS / f"{module}.pyi"
    tree = ast.parse((path if path.exists() else _STUBS / module / "__init__.pyi").read_text())
    names = _defined(tree.body, "linux") - _defined(tree.body, "darwin")
    existing = {name for name in names if hasattr(importlib.import_module(module), name)}
    assert existing <= set(LINUX_ONLY[module])


def _names_used(item: source.Source) -> Iterable[tuple[str, int]]:
    for node in source.nodes(item.tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = node.value.id
            if node.attr in LINUX_ONLY.get(module, ()):
                yield f"{module}.{node.attr}", node.lineno
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name in LINUX_ONLY.get(node.module or "", ()):
                    yield f"{node.module}.{alias.name}", node.lineno


def test_names_of_linux_are_in_one_package() -> None:
    """Other systems lack these names, and the folders of the kernel."""
    offences = {}
    for item in source.sources():
        if item.path.startswith(_HOME):
            continue
        for name, line in _names_used(item):
            offences[f"{item.path}:{name}"] = f"line {line}"
        for node in source.nodes(item.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
                if text.startswith(SYSTEM_FOLDERS):
                    offences[f"{item.path}:{text}"] = f"line {node.lineno}"
    assert source.complaints("platforms", offences, "Move these to ottla/base/platform:") == []


def test_modules_that_windows_lacks_are_imported_in_few_places() -> None:
    """A client on Windows imports none of these modules."""
    offences = {}
    for item in source.sources():
        for node in source.nodes(item.tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                if name in ("fcntl", "grp", "pwd", "resource", "termios"):
                    offences[f"{item.path}:{name}"] = f"line {node.lineno}"
    allowed = {place for place in offences if place.startswith(_HOME)}
    offences = {place: line for place, line in offences.items() if place not in allowed}
    assert source.complaints("unix-modules", offences, "Import these in base/platform:") == []


def test_the_list_of_wheels_has_the_locked_versions() -> None:
    """The list is recorded again with each change of the lock: `python -m docs.platforms`."""
    assert platforms.recorded()["versions"] == platforms.dependencies()
