"""Checks of Spark's data types in a schema, without Spark: `bigint`, `array<struct<a: int>>`."""

import re
from collections.abc import Iterator

from ottla.streams.pipelines.problems import suggest

_NAMES = (
    "boolean byte tinyint short smallint int integer long bigint float real double string binary date "
    "timestamp timestamp_ntz timestamp_ltz decimal dec numeric variant"
)
_SIMPLE = frozenset(_NAMES.split())
_NESTED = frozenset({"array", "map", "struct"})
_SIZED = re.compile(r"(decimal|dec|numeric|char|varchar)\s*\(\s*\d+\s*(,\s*\d+\s*)?\)")


def check_type(text: str) -> str:
    """Return the problem of a data type, or an empty string if the type is valid."""
    type_name = text.strip().lower()
    if type_name in _SIMPLE or _SIZED.fullmatch(type_name):
        return ""
    name, opened, arguments = type_name.partition("<")
    name = name.strip()
    if not opened:
        return f"Unknown data type {text.strip()}. {suggest(name, _SIMPLE | _NESTED)}"
    if name not in _NESTED or not arguments.endswith(">"):
        return f"{text.strip()} is not a data type: use array<…>, map<…, …> or struct<name: …>."
    parts = list(split(arguments[:-1]))
    if name == "struct":
        return next(filter(None, (_check_field(part) for part in parts)), "")
    if len(parts) != (1 if name == "array" else 2):
        return f"{text.strip()} is not a data type: an array has one type parameter, a map has two."
    return next(filter(None, (check_type(part) for part in parts)), "")


def _check_field(text: str) -> str:
    name, result, kind = _name_and_type(text)
    return check_type(kind) if result else f"A struct field must be name: type, not {name!r}."


def _name_and_type(text: str) -> tuple[str, bool, str]:
    match = re.match(r"\s*(`[^`]+`|\w+)\s*(?::\s*|\s+)(\S.*)", text, re.DOTALL)
    return (match[1].strip("`"), True, match[2]) if match else (text.strip(), False, "")


def split(text: str) -> Iterator[str]:
    """Yield the parts between the outer commas."""
    depth, start = 0, 0
    for index, sign in enumerate(text):
        depth += (sign in "<(") - (sign in ">)")
        if sign == "," and not depth:
            yield text[start:index]
            start = index + 1
    yield text[start:]


def columns_of(schema: str) -> dict[str, str]:
    """Return names and types of `a int, b string`; ValueError names the wrong column."""
    results: dict[str, str] = {}
    for part in split(schema):
        name, is_found, kind = _name_and_type(part)
        kind = re.sub(r"(?i)\s+(not\s+null|comment\s+'.*')\s*$", "", kind).strip()
        if not is_found:
            raise ValueError(
                f"A column must be a name and a type, as in origin string, not {part.strip()!r}."
            )
        wrong = check_type(kind)
        if wrong:
            raise ValueError(f"Column {name}: {wrong}")
        if name in results:
            raise ValueError(f"Column {name} is defined twice.")
        results[name] = kind
    return results
