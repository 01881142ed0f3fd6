"""Reads the repository's own Python files for the law tests."""

import ast
import functools
import gc
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "ottla"
SCRIPTS = "ottla_scripts"
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """A Python file: its path below the root, its text and its tree."""

    path: str
    text: str
    tree: ast.Module

    @property
    def module(self) -> str:
        """Return the dotted name of the module."""
        return self.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")

    @property
    def package(self) -> str:
        """Return the package of the layers: "server" of ottla/server/node.py; "scripts" of those."""
        folder, _, rest = self.path.partition("/")
        return "scripts" if folder == SCRIPTS else rest.partition("/")[0]

    def functions(self) -> Iterator[FunctionNode]:
        """Yield every function and method, including nested ones."""
        for node in nodes(self.tree):
            if isinstance(node, FunctionNode):
                yield node


@functools.cache
def parse(text: str) -> ast.Module:
    """Return the tree of a file; the laws share it."""
    return ast.parse(text)


@functools.cache
def nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """Return all nodes of a file's tree as `ast.walk` yields them; the laws share them."""
    return tuple(ast.walk(tree))


def sources(*folders: str) -> tuple[Source, ...]:
    """Return all Python files below folders of the repository, by default of both packages."""
    return tuple(item for folder in folders or ("ottla", SCRIPTS) for item in _sources(folder))


@functools.cache
def _sources(folder: str) -> tuple[Source, ...]:
    # No part of a tree is garbage, and a collection that visits millions of nodes takes seconds.
    gc.disable()
    try:
        items = tuple(
            Source(path, text, parse(text)) for path, text in sorted(texts(folder).items())
        )
        for item in items:
            nodes(item.tree)
        gc.freeze()
        return items
    finally:
        gc.enable()


@functools.cache
def texts(folder: str) -> dict[str, str]:
    """Return the text of all Python files below a folder of the repository, by path."""
    return {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for path in (ROOT / folder).rglob("*.py")
    }


def forget() -> None:
    """Free the trees: the garbage collections of later tests would visit them."""
    for cached in (_sources, nodes, parse, texts):
        cached.cache_clear()


@functools.cache
def exceptions() -> dict[str, dict[str, str]]:
    """Return the listed exceptions: law → place → reason."""
    with (ROOT / "tests/law/exceptions.toml").open("rb") as file:
        return tomllib.load(file)


def complaints(law: str, offences: dict[str, str], remedy: str) -> list[str]:
    """Return every offence without an exception, with its remedy, and every unnecessary exception."""
    excused = exceptions().get(law, {})
    values = [
        f"{location}: {what}" for location, what in offences.items() if location not in excused
    ]
    lines = [remedy, *sorted(values)] if values else []
    for location in sorted(set(excused) - set(offences)):
        lines.append(f"unnecessary exception in tests/law/exceptions.toml [{law}]: {location}")
    return lines
