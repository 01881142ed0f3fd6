"""Ranges of `_time` from statements, parsed by DuckDB itself."""

import json

import duckdb
import pytest

from ottla.console.sql.pushdown import Node, TimeRange, TooDeep, ranges_of

NOW_MS = 1_000_000


def evaluate(expression: Node) -> int | None:
    """Return the value of an integer, as if it were a time; None for anything else."""
    literal = expression.get("literal", {})
    return int(literal["text"]) if literal.get("kind") == "INTEGER" else None


def ranges(sql: str) -> dict[str, tuple[int | None, int | None]]:
    """Return the ranges of a statement as pairs."""
    with duckdb.connect() as parser:
        ((text,),) = parser.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchall()
    tree = json.loads(text)
    assert not tree["error"], tree
    result = ranges_of(tree["statements"][0], evaluate)
    return {name: (row.start_ms, row.end_ms) for name, row in result.items()}


@pytest.mark.parametrize(
    ("condition", "start_ms", "end_ms"),
    [
        ("_time > 5", 5, None),
        ("_time >= 5 AND _time < 9 AND price > 3", 5, 10),
        ("5 < _time AND _time <= 9", 5, 10),
        ("_time = 7", 7, 8),
        ("_time BETWEEN 5 AND 9", 5, 10),
        ("o._time > 5 AND (_time > 7 AND true)", 7, None),
        ("_TIME > 5", 5, None),
        # These do not restrict the records that are needed.
        ("_time > 5 OR price > 3", None, None),
        ("NOT (_time > 5)", None, None),
        ("_time <> 5", None, None),
        ("price > 5", None, None),
        ("_time > _offset", None, None),
        ("_time > (SELECT 5)", None, None),
        ("_time > 'soon'", None, None),
        ("other._time > 5", None, None),
    ],
)
def test_conditions_on_time_become_a_range(
    condition: str, start_ms: int | None, end_ms: int | None
) -> None:
    """Only what AND combines counts; every record that may match is inside."""
    actual = ranges(f"SELECT * FROM orders o WHERE {condition}")
    assert actual["orders"] == (start_ms, end_ms)


def test_a_topic_that_is_read_twice_has_the_union_of_its_ranges() -> None:
    """A part without a condition needs everything."""
    both = "SELECT * FROM a WHERE _time > 5 UNION ALL SELECT * FROM a WHERE _time > 3"
    assert ranges(both) == {"a": (3, None)}
    assert ranges("SELECT * FROM a WHERE _time > 5 AND _key IN (SELECT _key FROM a)") == {
        "a": (None, None)
    }


def test_joined_topics_need_the_name_of_the_table() -> None:
    """With two tables, a column without a name is ambiguous."""
    sql = "SELECT * FROM a JOIN b AS x ON a._key = x._key WHERE a._time > 5 AND x._time > 7"
    assert ranges(sql) == {"a": (5, None), "b": (7, None)}
    assert ranges("SELECT * FROM a, b WHERE _time > 5") == {"a": (None, None), "b": (None, None)}


def test_subqueries_and_common_tables_are_looked_into() -> None:
    """The range of a topic comes from the SELECT that reads it."""
    sql = "WITH c AS (SELECT * FROM a WHERE _time > 5) SELECT * FROM c, (SELECT 1 FROM b) AS d"
    assert ranges(sql) == {"a": (5, None), "b": (None, None), "c": (None, None)}


def test_a_range_is_closed_under_its_operations() -> None:
    """An unbounded side stays unbounded in a union, and yields in an intersection."""
    left, right = TimeRange(3, 9), TimeRange(None, 7)
    assert left.union(right) == TimeRange(None, 9)
    assert left.intersection(right) == TimeRange(3, 7)


def test_a_statement_that_nests_too_deep_is_refused() -> None:
    """The tree of a hostile statement does not overflow the stack."""
    node: dict[str, object] = {}
    for _ in range(10_000):
        node = {"child": node}
    with pytest.raises(TooDeep):
        ranges_of(node, evaluate)
