"""Reads the imports that the code gives as text: to `deferred`, in tables, in command lines.

Every text that contains the name of a module counts, except docstrings. A name may have parts that
are constants of the file; it ends at the first part that is not.
"""

import ast
import functools
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tests.law import source

# In place of a part that only a running program knows.
UNKNOWN = "{}"
_NAME = re.compile(r"\bottla(?:_scripts)?(?:\.[a-z_][a-z0-9_]*)+")
_UNREADABLE = re.compile(r"\bottla(?:_scripts)?\.\{\}")
_ROOTS = ("ottla", source.SCRIPTS)
_IN_PACKAGE = re.compile(r"ottla(?:_scripts)?\.")
# Functions that import the module that their first argument names.
_LOADERS = re.compile(r"(?:\w+\.)?(?:load|load_module|deferred|deferred_module)|needed\.module")


class NamedImport(NamedTuple):
    """A module that a text names; `imported` ends with `UNKNOWN` if no package can be read."""

    importer: source.Source
    imported: str
    line: int
    text: str

    @property
    def place(self) -> str:
        """Return the place as in exceptions.toml."""
        return f"{self.importer.path}:{self.imported}"


class LoadedName(NamedTuple):
    """A module, and perhaps a name in it, that a call imports."""

    path: str
    line: int
    module: str
    name: str


@functools.cache
def modules() -> Mapping[str, source.Source]:
    """Return the package's files by the names of their modules."""
    return {item.module: item for item in source.sources()}


def named_imports() -> list[NamedImport]:
    """Return the modules that are named in texts, other than the file itself and its packages."""
    rows = []
    for item in source.sources():
        if not _IN_PACKAGE.search(item.text) and "__package__" not in item.text:
            continue
        for line, text in _texts(item):
            for imported in _modules_in(text):
                if not f"{item.module}.".startswith(f"{imported}."):
                    rows.append(NamedImport(item, imported, line, text))
    return rows


def loaded_names() -> Iterator[LoadedName]:
    """Yield the names that are loaded from modules of the package, as far as they can be read."""
    for item in source.sources():
        constants = _constants(item)
        for node in source.nodes(item.tree):
            if not (isinstance(node, ast.Call) and _LOADERS.fullmatch(ast.unparse(node.func))):
                continue
            words = [_text(argument, constants) for argument in node.args[:2]]
            if words and _IN_PACKAGE.match(words[0]) and UNKNOWN not in words[0]:
                name = words[1].replace(UNKNOWN, "") if len(words) > 1 else ""
                yield LoadedName(item.path, node.lineno, words[0], name)


def _modules_in(text: str) -> Iterator[str]:
    """Yield the modules in a text: of `ottla.base.files.FileSystem`, ottla.base.files."""
    for name in _NAME.findall(text):
        module = name
        while module not in modules():
            module = module.rpartition(".")[0]
        # The first part of other names is "ottla", too: the names of headers and options.
        if module not in _ROOTS:
            yield module
    yield from _UNREADABLE.findall(text)


def _texts(item: source.Source) -> Iterator[tuple[int, str]]:
    """Yield the texts of a file with their lines, without docstrings."""
    constants = _constants(item)
    skipped = {id(node.value) for node in source.nodes(item.tree) if isinstance(node, ast.Expr)} | {
        id(part)
        for node in source.nodes(item.tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    for node in source.nodes(item.tree):
        if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in skipped:
            text = _text(node, constants)
            if _IN_PACKAGE.search(text):
                yield node.lineno, text


def _text(node: ast.AST, constants: Mapping[str, str]) -> str:
    """Return the text of an expression, as far as the file has it."""
    if isinstance(node, ast.Constant):
        value = node.value
        return value.decode("latin-1") if isinstance(value, bytes) else str(value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, constants) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return _text(node.value, constants)
    return constants.get(node.id, UNKNOWN) if isinstance(node, ast.Name) else UNKNOWN


def _constants(item: source.Source) -> dict[str, str]:
    """Return the texts that names of the file have."""
    is_package = item.path.endswith("/__init__.py")
    package = item.module if is_package else item.module.rpartition(".")[0]
    constants = {"__package__": package, "__name__": item.module}
    for node in item.tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            text = _text(node.value, constants)
            if UNKNOWN not in text:
                constants[node.targets[0].id] = text
    return constants
