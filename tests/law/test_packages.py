"""Small packages and small classes; an import by name counts as an import."""

import ast
import re
from collections import Counter

from tests.law import source

PACKAGE_MODULES = 15
CLASS_LINES = 400
PUBLIC_METHODS = 20
# One module for each API or test subject.
_EXEMPT_PACKAGES = ("ottla/wire/messages", "ottla/server/handlers")
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


def _levels() -> dict[str, int]:
    """Return the position of each package in the layers of .importlinter, the highest first."""
    contracts = (source.ROOT / ".importlinter").read_text(encoding="utf-8")
    layers = contracts.split("layers =")[1].split("\n\n")[0].strip().splitlines()
    return {
        package: level
        for level, layer in enumerate(layers)
        for package in re.findall(r"[a-z_]+", layer)
    }


def test_an_import_by_name_counts_as_an_import() -> None:
    """A module that is named in a text, for `importlib`, is in the same package or a lower layer."""
    levels = _levels()
    assert levels["tools"] < levels["streams"] < levels["base"]
    offences = {}
    for item in source.sources():
        package = [*item.module.split("."), ""][1]
        if "import_module" not in item.text or not package:
            continue
        for node in source.nodes(item.tree):
            is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
            for name in re.findall(r"^ottla\.([a-z_]+)", node.value) if is_text else ():
                if name != package and levels[name] <= levels[package]:
                    offences[f"{item.path}:{name}"] = f"line {node.lineno}"
    assert source.complaints("layers-by-name", offences, "Import from a lower layer:") == []


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


def test_imports_by_name_are_listed() -> None:
    """Each use of `importlib.import_module`, which can hide a cycle or an upward import, has a
    reason.
    """
    offences = {
        item.path: "import_module"
        for item in source.sources()
        for node in source.nodes(item.tree)
        if isinstance(node, ast.Attribute) and node.attr == "import_module"
    }
    assert source.complaints("imports-by-name", offences, "Import these at the top:") == []
