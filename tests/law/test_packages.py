"""Small packages and small classes; imports by name can be read."""

import ast
import re
from collections import Counter

from tests.law import source
from tests.law.named_imports import loaded_names, modules

PACKAGE_MODULES = 15
CLASS_LINES = 400
PUBLIC_METHODS = 20
# One module for each API or test subject.
_EXEMPT_PACKAGES = ("ottla/wire/messages", "ottla/server/handlers")
# Functions and modules that import by name.
_IMPORTERS = {"import_module", "importlib.import_module", "__import__", "runpy", "pkgutil"}
# Kafka's own interfaces have that many methods, and users expect them in one class.
_KAFKAS_CLASSES = re.compile(r"ottla/streams/(dsl|driver|options)/|ottla/streams/kafka_streams\.py")


def test_no_package_has_more_than_15_modules() -> None:
    """A package with more than 15 modules has several subjects."""
    sizes = Counter(
        item.path.rpartition("/")[0]
        for item in source.sources()
        if not item.path.endswith("/__init__.py")
    )
    offences = {
        folder: f"{count} modules"
        for folder, count in sizes.items()
        if count > PACKAGE_MODULES and folder not in _EXEMPT_PACKAGES
    }
    assert source.complaints("package-modules", offences, "Split these packages by subject:") == []


def test_no_class_is_longer_than_400_lines() -> None:
    """A class with more than 400 lines has several responsibilities."""
    offences = {
        f"{item.path}:{node.name}": f"{lines} lines"
        for item in source.sources()
        for node in source.nodes(item.tree)
        if isinstance(node, ast.ClassDef)
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > CLASS_LINES
        and not _KAFKAS_CLASSES.match(item.path)
    }
    assert source.complaints("class-lines", offences, "Split these classes:") == []


def test_no_class_has_more_than_20_public_methods() -> None:
    """Properties do not count, and neither do classes whose methods are Kafka's own."""
    offences = {}
    for item in source.sources():
        for node in source.nodes(item.tree):
            if not isinstance(node, ast.ClassDef) or _KAFKAS_CLASSES.match(item.path):
                continue
            names = {
                method.name
                for method in node.body
                if isinstance(method, source.FunctionNode)
                and not method.name.startswith("_")
                and not method.decorator_list
            }
            if len(names) > PUBLIC_METHODS:
                offences[f"{item.path}:{node.name}"] = f"{len(names)} public methods"
    assert source.complaints("public-methods", offences, "Split these classes:") == []


def _imported_names(tree: ast.AST) -> set[tuple[str, str]]:
    """Return the local names of imported modules, each with the module's full name."""
    names = set()
    for node in source.nodes(tree):
        for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            names.add((alias.asname or alias.name, prefix + alias.name))
    return names


def test_a_deferred_import_is_an_import_for_type_checkers() -> None:
    """`deferred_module` is called only beside the same import `if TYPE_CHECKING`, which the checks
    of layers, cycles and types read.
    """
    calls, pairs = 0, 0
    offences = {}
    for item in source.sources():
        for node in source.nodes(item.tree):
            calls += isinstance(node, ast.Call) and ast.unparse(node.func) == "deferred_module"
            if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
                continue
            imported = {pair for part in node.body for pair in _imported_names(part)}
            for part in node.orelse:
                if "deferred_module" not in ast.unparse(part):
                    continue
                match = re.fullmatch(r"(\w+) = deferred_module\('([\w.]+)'\)", ast.unparse(part))
                if match is None or match.groups() not in imported:
                    offences[f"{item.path}:{part.lineno}"] = ast.unparse(part)
                pairs += 1
    assert calls == pairs > 0
    assert (
        source.complaints("deferred-imports", offences, "Import the same, if TYPE_CHECKING:") == []
    )


def test_imports_by_name_are_readable() -> None:
    """Only base/loading.py, whose calls the laws read, imports modules by name: another function
    could hide a cycle or an upward import.
    """
    offences = {}
    for item in source.sources():
        for node in source.nodes(item.tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                words = {name for _, name in _imported_names(ast.Module([node], []))}
            elif isinstance(node, ast.Attribute | ast.Name):
                words = {node.attr if isinstance(node, ast.Attribute) else node.id}
            else:
                continue
            for word in words & _IMPORTERS:
                offences[item.path] = word
    assert source.complaints("imports-by-name", offences, "Use ottla.base.loading:") == []


def test_names_of_loaded_modules_exist() -> None:
    """A module that `load` and `deferred` name exists, and defines the name; type checkers see
    neither.
    """
    rows = list(loaded_names())
    assert len(rows) > 100
    offences = {
        f"{row.path}:{row.line}": f"{row.module} has no {row.name}"
        if row.module in modules()
        else f"{row.module} does not exist"
        for row in rows
        if row.module not in modules()
        or (row.name and row.name not in _defined(modules()[row.module]))
    }
    assert source.complaints("loaded-names", offences, "Correct these names:") == []


def _defined(item: source.Source) -> set[str]:
    """Return the names that a module defines or imports."""
    names = {name for name, _ in _imported_names(item.tree)}
    for node in item.tree.body:
        if isinstance(node, source.FunctionNode | ast.ClassDef):
            names.add(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names
