"""The topics that a statement reads, and the part that it needs of each: ranges of `_time` and of
`_offset`, one `_key`. Pure.

The input is DuckDB's own syntax tree (`json_serialize_sql`). A range only ever leaves out records
that the conditions of the statement leave out, too: DuckDB evaluates all of them again.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Node = Mapping[str, Any]
Evaluate = Callable[[Node], int | None]
"""Returns a constant expression as a number: a time in milliseconds since 1970, an offset; or None."""
EvaluateText = Callable[[Node], str | None]
"""Returns a constant expression as a text, or None."""

TIME, OFFSET, _KEY = "_time", "_offset", "_key"
_LOWER = ("COMPARE_GREATERTHAN", "COMPARE_GREATERTHANOREQUALTO")
_UPPER = ("COMPARE_LESSTHAN", "COMPARE_LESSTHANOREQUALTO")
_EQUAL = "COMPARE_EQUAL"
_MIRRORED = dict(zip((*_LOWER, *_UPPER, _EQUAL), (*_UPPER, *_LOWER, _EQUAL), strict=True))
# A hostile statement nests deeper than anyone writes.
_DEPTH_MAX = 200


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Milliseconds from `start_ms` up to, but not including, `end_ms`; None is unbounded.

    A range of offsets is the same with offsets.
    """

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


def ranges_of(tree: Node, evaluate: Evaluate, column: str = TIME) -> dict[str, TimeRange]:
    """Return the range of each table that a statement names, in the order of their names.

    Names of common table expressions are among them.
    """
    ranges: dict[str, TimeRange] = {}
    for name, names, condition, is_single in _uses(tree):
        reference = _Reference(column, names, is_single)
        value_range = _range(condition, reference, evaluate)
        ranges[name] = ranges[name].union(value_range) if name in ranges else value_range
    return dict(sorted(ranges.items()))


def keys_of(tree: Node, evaluate: EvaluateText) -> dict[str, str]:
    """Return the key of each table of which a statement needs the records of one key only."""
    keys: dict[str, set[str | None]] = {}
    for name, names, condition, is_single in _uses(tree):
        key = _equal_to(condition, _Reference(_KEY, names, is_single), evaluate)
        keys.setdefault(name, set()).add(key)
    found = {name: next(iter(values)) for name, values in keys.items() if len(values) == 1}
    return {name: key for name, key in found.items() if key is not None}


def _uses(tree: Node) -> Iterator[tuple[str, set[str], Node | None, bool]]:
    """Yield each use of a table: its name, its names there, the condition, and True if no other
    table is in the same FROM clause.
    """
    for select in _nodes(tree):
        if "from_table" not in select:
            continue
        tables = list(_tables(select["from_table"]))
        for table in tables:
            if table.get("type") == "BASE_TABLE":
                name = str(table.get("table_name", ""))
                names = {name, str(table.get("alias") or name)}
                yield name, names, select.get("where_clause"), len(tables) == 1


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


@dataclass(frozen=True, slots=True)
class _Reference:
    """A column of a table, by the names that the table has in a SELECT."""

    column: str
    names: set[str]
    is_single: bool

    def is_at(self, node: Node | None) -> bool:
        """Return True if a node is this column."""
        if node is None or node.get("class") != "COLUMN_REF":
            return False
        path = [str(part).lower() for part in node.get("column_names", ())]
        if path == [self.column]:
            return self.is_single
        tables = {name.lower() for name in self.names}
        return len(path) == 2 and path[1] == self.column and path[0] in tables


def _range(condition: Node | None, column: _Reference, evaluate: Evaluate) -> TimeRange:
    """Return the range that a condition leaves; only AND is looked into."""
    if condition is None:
        return TimeRange()
    kind = condition.get("type")
    if kind == "CONJUNCTION_AND":
        result = TimeRange()
        for child in condition.get("children", ()):
            result = result.intersection(_range(child, column, evaluate))
        return result
    if kind == "COMPARE_BETWEEN":
        if not column.is_at(condition.get("input")):
            return TimeRange()
        lower = _compared(_LOWER[1], condition.get("lower"), evaluate)
        return lower.intersection(_compared(_UPPER[1], condition.get("upper"), evaluate))
    if kind not in _MIRRORED:
        return TimeRange()
    left, right = condition.get("left"), condition.get("right")
    if column.is_at(left):
        return _compared(kind, right, evaluate)
    if column.is_at(right):
        return _compared(_MIRRORED[kind], left, evaluate)
    return TimeRange()


def _equal_to(condition: Node | None, column: _Reference, evaluate: EvaluateText) -> str | None:
    """Return the text to which a condition compares a column; only AND is looked into."""
    if condition is None:
        return None
    if condition.get("type") == "CONJUNCTION_AND":
        texts = (_equal_to(child, column, evaluate) for child in condition.get("children", ()))
        return next((text for text in texts if text is not None), None)
    if condition.get("type") != _EQUAL:
        return None
    sides = condition.get("left"), condition.get("right")
    for one, other in (sides, sides[::-1]):
        if column.is_at(one) and other is not None and _is_constant(other):
            return evaluate(other)
    return None


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


def _is_constant(node: Node) -> bool:
    """Return True for an expression without columns, subqueries and parameters."""
    varying = ("COLUMN_REF", "SUBQUERY", "PARAMETER", "STAR", "WINDOW", "LAMBDA")
    return not any(item.get("class") in varying for item in _nodes(node))
