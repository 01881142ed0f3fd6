"""The tables of a query are found without Spark, which validates the rest of the query later."""

import pytest

from ottla.streams.pipelines.sql_text import tables


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT * FROM a", ["a"]),
        ("select * from a x, `b` join c using (k)", ["a", "b", "c"]),
        ("SELECT * FROM (SELECT * FROM a) AS x JOIN b ON x.k = b.k", ["a", "b"]),
        ("SELECT k IN (SELECT k FROM b) FROM a", ["b", "a"]),
        ("WITH w AS (SELECT * FROM a) SELECT * FROM w", ["a"]),
        ("SELECT extract(year FROM t), trim(BOTH FROM s) FROM a", ["a"]),
        ("SELECT 'FROM x', \"FROM y\" -- FROM z\n/* FROM q */ FROM a", ["a"]),
        ("SELECT * FROM a WHERE x IS DISTINCT FROM y", ["a"]),
        ("SELECT * FROM range(10), a", ["a"]),
        ("SELECT * FROM a LATERAL VIEW explode(x) t AS y WHERE f(a, b)", ["a"]),
        ("SELECT a, b FROM c WHERE d, e GROUP BY f, g", ["c"]),
        ("SELECT * FROM a UNION ALL SELECT x, y FROM b", ["a", "b"]),
        ("SELECT count(*) FROM parquet.`/x`, a", ["a"]),
        ("FROM a SELECT b", ["a"]),
    ],
)
def test_tables_of_a_query(sql: str, names: list[str]) -> None:
    """Tables follow FROM, JOIN and commas, but not in functions, strings, comments or WITH."""
    assert [table.name for table in tables(sql)] == names
    assert all(sql[table.start :].strip("`").startswith(table.name) for table in tables(sql))
