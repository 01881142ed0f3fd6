"""The topics that a statement reads, and the range of `_time` that it needs of each. Pure.

The input is DuckDB's own syntax tree (`json_serialize_sql`). A range only ever leaves out records
that the conditions of the statement leave out, too: DuckDB evaluates all of them again.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Node = Mapping[str, Any]
Evaluate = Callable[[Node], int | None]
"""Returns a constant expression as milliseconds since 1970, or None if it is no time."""

_TIME = "_time"
_LOWER = ("COMPARE_GREATERTHAN", "COMPARE_GREATERTHANOREQUALTO")
_UPPER = ("COMPARE_LESSTHAN", "COMPARE_LESSTHANOREQUALTO")
_EQUAL = "COMPARE_EQUAL"
_MIRRORED = dict(zip((*_LOWER, *_UPPER, _EQUAL), (*_UPPER, *_LOWER, _EQUAL), strict=True))
# A hostile statement nests deeper than anyone writes.
_DEPTH_MAX = 200


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Milliseconds from `start_ms` up to, but not including, `end_ms`; None is unbounded."""

    start_ms: int | None = None
    end_ms: int | None = None

    def union(self, other: "TimeRange") -> "TimeRange":
        """Return the smallest range that contains both."""
        starts, ends = (self.start_ms, other.start_ms), (self.end_ms, other.end_ms)
        known_starts = [start for start in starts if start is not None]
        known_ends = [end for end in ends if end is not None]
        return TimeRange(
            min(known_starts) if len(known_starts) == 2 else None,
            max(known_ends) if len(known_ends) == 2 else None,
        )

    def intersection(self, other: "TimeRange") -> "TimeRange":
        """Return the range that both contain."""
        starts = [start for start in (self.start_ms, other.start_ms) if start is not None]
        ends = [end for end in (self.end_ms, other.end_ms) if end is not None]
        return TimeRange(max(starts, default=None), min(ends, default=None))


class TooDeep(ValueError):
    """A statement nests too deep."""


def ranges_of(tree: Node, evaluate: Evaluate) -> dict[str, TimeRange]:
    """Return the range of each table that a statement names, in the order of their names.

    Names of common table expressions are among them.
    """
    ranges: dict[str, TimeRange] = {}
    for select in _nodes(tree):
        if "from_table" not in select:
            continue
        tables = list(_tables(select["from_table"]))
        is_single = len(tables) == 1
        for table in tables:
            if table.get("type") != "BASE_TABLE":
                continue
            name = str(table.get("table_name", ""))
            names = {name, str(table.get("alias") or name)}
            value_range = _range(select.get("where_clause"), names, is_single, evaluate)
            ranges[name] = ranges[name].union(value_range) if name in ranges else value_range
    return dict(sorted(ranges.items()))


def _nodes(value: Any, depth: int = 0) -> Iterator[Node]:
    """Yield every object of a tree."""
    if depth > _DEPTH_MAX:
        raise TooDeep("the statement nests too deep")
    if isinstance(value, Mapping):
        yield value
        for item in value.values():
            yield from _nodes(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _nodes(item, depth + 1)


def _tables(node: Node | None) -> Iterator[Node]:
    """Yield the tables and subqueries of a FROM clause."""
    if node is None:
        return
    if node.get("type") == "JOIN":
        yield from _tables(node.get("left"))
        yield from _tables(node.get("right"))
    else:
        yield node


def _range(
    condition: Node | None, names: set[str], is_single: bool, evaluate: Evaluate
) -> TimeRange:
    """Return the range that a condition leaves; only AND is looked into."""
    if condition is None:
        return TimeRange()
    kind = condition.get("type")
    if kind == "CONJUNCTION_AND":
        result = TimeRange()
        for child in condition.get("children", ()):
            result = result.intersection(_range(child, names, is_single, evaluate))
        return result
    if kind == "COMPARE_BETWEEN":
        if not _is_time(condition.get("input"), names, is_single):
            return TimeRange()
        lower = _compared(_LOWER[1], condition.get("lower"), evaluate)
        return lower.intersection(_compared(_UPPER[1], condition.get("upper"), evaluate))
    if kind not in _MIRRORED:
        return TimeRange()
    left, right = condition.get("left"), condition.get("right")
    if _is_time(left, names, is_single):
        return _compared(kind, right, evaluate)
    if _is_time(right, names, is_single):
        return _compared(_MIRRORED[kind], left, evaluate)
    return TimeRange()


def _compared(kind: str, constant: Node | None, evaluate: Evaluate) -> TimeRange:
    """Return the range of `_time` that compares with a constant; whole milliseconds outwards."""
    if constant is None or not _is_constant(constant):
        return TimeRange()
    at_ms = evaluate(constant)
    if at_ms is None:
        return TimeRange()
    start_ms = at_ms if kind in (*_LOWER, _EQUAL) else None
    end_ms = at_ms + 1 if kind in (*_UPPER, _EQUAL) else None
    return TimeRange(start_ms, end_ms)


def _is_time(node: Node | None, names: set[str], is_single: bool) -> bool:
    if node is None or node.get("class") != "COLUMN_REF":
        return False
    path = [str(part).lower() for part in node.get("column_names", ())]
    if path == [_TIME]:
        return is_single
    return len(path) == 2 and path[1] == _TIME and path[0] in {name.lower() for name in names}


def _is_constant(node: Node) -> bool:
    """Return True for an expression without columns, subqueries and parameters."""
    varying = ("COLUMN_REF", "SUBQUERY", "PARAMETER", "STAR", "WINDOW", "LAMBDA")
    return not any(item.get("class") in varying for item in _nodes(node))
