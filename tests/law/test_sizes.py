"""Files and functions are small, with few parameters and little nesting."""

import ast
import re
import tomllib
from collections.abc import Iterator

from tests.law import source

FILE_LINES = 600
FUNCTION_LINES = 70
PARAMETERS = 7
NESTING = 4
LINE_LENGTH = 100
# `# type: ignore[…]` and the like stay on the line that they are about.
_PRAGMA = re.compile(r"\s*# (type|noqa|fmt|pragma)\b.*$")
_FOLDERS = ("ottla", source.SCRIPTS, "tests", "bench", "demo", "examples", "docs")

_BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match)


def _nesting(node: ast.AST, depth: int = 0) -> int:
    deepest = depth
    for child in ast.iter_child_nodes(node):
        # An elif is a sibling of its if, not a deeper level.
        is_elif = isinstance(node, ast.If) and isinstance(child, ast.If) and child in node.orelse
        level = depth + (isinstance(child, _BLOCKS) and not is_elif)
        if not isinstance(child, source.FunctionNode):
            deepest = max(deepest, _nesting(child, level))
    return deepest


def _length(line: str) -> int:
    """Return the length of a line without pragmas and without the quotes that close a docstring."""
    return len(_PRAGMA.sub("", line).rstrip().removesuffix('"""'))


def _values(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the literal texts, which are not broken; docstrings are not among them."""
    docstrings = {id(node.value) for node in source.nodes(tree) if isinstance(node, ast.Expr)}
    for node in source.nodes(tree):
        is_text = isinstance(node, ast.JoinedStr) or (
            isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
        )
        if is_text and id(node) not in docstrings:
            assert isinstance(node, ast.expr)
            yield node


def test_no_line_is_longer_than_100_characters() -> None:
    """Code, comments and docstrings fit beside each other on a screen; literal texts stay whole."""
    offences = {}
    for folder in _FOLDERS:
        for item in source.sources(folder):
            lines = item.text.splitlines()
            long = [
                at
                for at, line in enumerate(lines, 1)
                if len(line) > LINE_LENGTH and _length(line) > LINE_LENGTH
            ]
            if not long:
                continue
            texts = {
                at
                for node in _values(item.tree)
                for at in range(node.lineno, (node.end_lineno or node.lineno) + 1)
            }
            offences |= {f"{item.path}:{at}": "too long" for at in long if at not in texts}
    assert source.complaints("line-length", offences, "Break these lines:") == []


def test_the_limit_of_lines_is_that_of_the_formatter() -> None:
    """`make fix` breaks code at the same length."""
    with (source.ROOT / "pyproject.toml").open("rb") as file:
        assert tomllib.load(file)["tool"]["ruff"]["line-length"] == LINE_LENGTH


def test_no_file_is_longer_than_600_lines() -> None:
    """A file with more than 600 lines has two subjects."""
    offences = {
        item.path: f"{item.text.count(chr(10))} lines"
        for item in source.sources("ottla", source.SCRIPTS, "tests", "bench", "demo")
        if item.text.count("\n") > FILE_LINES
    }
    assert source.complaints("file-lines", offences, "Split these files by subject:") == []


def test_no_function_is_longer_than_70_lines() -> None:
    """A function with more than 70 lines does several things."""
    offences = {}
    for item in source.sources():
        for node in item.functions():
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                offences[f"{item.path}:{node.name}"] = f"{lines} lines"
    assert source.complaints("function-lines", offences, "Split these functions:") == []


def test_no_function_has_more_than_7_parameters() -> None:
    """Many parameters should be a value class."""
    offences = {}
    for item in source.sources():
        for node in item.functions():
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            count = len([word for word in arguments if word.arg not in ("self", "cls")])
            if count > PARAMETERS:
                offences[f"{item.path}:{node.name}"] = f"{count} parameters"
    assert source.complaints("parameters", offences, "Gather these parameters into values:") == []


def test_no_function_nests_deeper_than_4_blocks() -> None:
    """Deep nesting hides the normal case."""
    offences = {}
    for item in source.sources():
        for node in item.functions():
            depth = _nesting(node)
            if depth > NESTING:
                offences[f"{item.path}:{node.name}"] = f"{depth} levels"
    assert source.complaints("nesting", offences, "Return early or name the inner part:") == []
