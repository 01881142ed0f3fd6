"""Regular expressions where text from outside arrives: constant ones, or RE2's.

Python's engine backtracks: an expression from outside can take hours for thirty characters, and so
can a constant one of an unlucky form. The first law keeps such expressions out of the broker and
the console, the second measures the constant ones.
"""

import ast
import re
import time
from collections.abc import Iterator
from importlib import import_module

import pytest

from tests.law import source

# Users run the other packages on their own text.
EXPOSED = (
    *("base", "metrics", "wire", "net", "security", "storage", "cluster", "replication"),
    *("controller", "coordinators", "server", "console"),
)
_FUNCTIONS = frozenset(
    f"re.{name}"
    for name in (
        "compile",
        "match",
        "fullmatch",
        "search",
        "sub",
        "subn",
        "split",
        "findall",
        "finditer",
    )
)
# Below these numbers, quadratic time is still short.
_LENGTH = 4_000
_SECONDS_MAX = 0.25
_ENDS = ("", "\0", "!")
# Repeated: single characters of all classes that the expressions distinguish, and short mixtures.
_UNITS = (
    *("a", "A", "0", " ", "/", "\\", '"', "'", "=", ",", ":", ".", "-", "_", "(", "[", "{", "\n"),
    *(
        "!",
        "!/",
        "\\\\",
        "a=",
        "a,",
        ' a="',
        "a.",
        "/*",
        "//",
        "${",
        "{{a",
        "://",
        "=2C",
        "a:",
        "%s",
    ),
)


def _exposed() -> Iterator[source.Source]:
    for item in source.sources():
        if item.package in EXPOSED:
            yield item


def _called_in_functions(item: source.Source) -> Iterator[ast.Call]:
    for function in item.functions():
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in _FUNCTIONS:
                yield node


def test_expressions_from_outside_use_re2() -> None:
    """In a function, the expression of a call of `re` is a literal: others come from outside."""
    offences = {
        f"{item.path}:{ast.unparse(call)[:60]}": f"line {call.lineno}"
        for item in _exposed()
        for call in _called_in_functions(item)
        if not isinstance(call.args[0], ast.Constant | ast.BinOp)
    }
    assert source.complaints("expressions", offences, "Use ottla.base.text.patterns:") == []


def _constants() -> list[tuple[str, re.Pattern[str]]]:
    """Return the compiled expressions of the modules, and the literals in their functions."""
    found: dict[str, re.Pattern[str]] = {}
    for item in _exposed():
        if "re.compile(" in item.text:
            for name, value in vars(import_module(item.module)).items():
                if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                    found[f"{item.path}:{name}"] = value
        for call in _called_in_functions(item):
            literal = call.args[0]
            if isinstance(literal, ast.Constant) and isinstance(literal.value, str):
                found[f"{item.path}:{literal.value}"] = re.compile(literal.value)
    return sorted(found.items())


@pytest.mark.parametrize("end", _ENDS)
def test_constant_expressions_take_little_time_on_any_text(end: str) -> None:
    """Four thousand repeated characters, with an end that does not match, take no quarter second."""
    slow = []
    for place, pattern in _constants():
        for unit in _UNITS:
            text = unit * (_LENGTH // len(unit)) + end
            begin = time.thread_time()
            pattern.match(text)
            pattern.fullmatch(text)
            if time.thread_time() - begin > _SECONDS_MAX:
                slow.append(f"{place} {pattern.pattern!r} on {unit!r}")
    assert slow == []
