"""Every module, public class and public function states its purpose; every test its expectation."""

import ast
import re
from collections.abc import Iterator

from tests.law import source


def _public(item: source.Source) -> Iterator[tuple[str, ast.AST]]:
    """Modules, public classes, public functions and public methods of public classes."""
    yield item.path, item.tree

    def walk(parent: ast.AST, prefix: str) -> Iterator[tuple[str, ast.AST]]:
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, ast.ClassDef | source.FunctionNode):
                if node.name.startswith("_"):
                    continue
                name = f"{prefix}{node.name}"
                yield f"{item.path}:{name}", node
                if isinstance(node, ast.ClassDef):
                    yield from walk(node, name + ".")

    yield from walk(item.tree, "")


def test_everything_public_has_a_docstring() -> None:
    """A reader learns meaning, units and errors without reading the body."""
    offences = {
        location: "no docstring"
        for item in source.sources()
        for location, node in _public(item)
        if not ast.get_docstring(node)  # type: ignore[arg-type]
        and not _is_overload(node)
    }
    assert source.complaints("docstrings", offences, "Say in a sentence what these are for:") == []


def _is_overload(node: ast.AST) -> bool:
    decorators = getattr(node, "decorator_list", [])
    return any(ast.unparse(item).endswith(("overload", ".setter")) for item in decorators)


def test_every_test_states_its_expectation() -> None:
    """The tests' docstrings, read in order, are the specification."""
    offences = {
        f"{item.path}:{node.name}": "no docstring"
        for item in source.sources("tests")
        for node in item.functions()
        if node.name.startswith("test_") and not ast.get_docstring(node)
    }
    assert (
        source.complaints("test-docstrings", offences, "State the expectation in one sentence:")
        == []
    )


def test_no_test_sleeps() -> None:
    """Waiting for real time makes a test slow and flaky; on the simulated loop it is free."""
    offences = {
        f"{item.path}:{node.name}": "sleeps"
        for item in source.sources("tests")
        if "ottla.testing.sim" not in item.text
        for node in item.functions()
        if re.search(r"\b(time|asyncio)\.sleep\((?!0\))", ast.unparse(node))
    }
    assert (
        source.complaints("test-sleeps", offences, "Wait for the condition, or use virtual time:")
        == []
    )
