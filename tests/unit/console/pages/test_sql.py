"""The page of SQL: values that a browser would change."""

from types import SimpleNamespace
from typing import Any, cast

from ottla.console.pages.sql import read_partial
from ottla.console.sql.partial import PartialResult
from ottla.console.sql.values import Column


def test_numbers_of_a_partial_result_are_texts() -> None:
    """A browser rounds integers of more than 53 bits; NULL stays a value of its own."""
    columns = (Column("u", "HUGEINT"), Column("f", "DOUBLE"), Column("n", "VARCHAR"))
    rows = ((18446744073709551615, 1767225600.123456, None),)
    partial = PartialResult("orders", 1, 1, columns, rows)
    queries = SimpleNamespace(partial_result=lambda reader: partial)
    view = SimpleNamespace(
        console=SimpleNamespace(queries=queries),
        reader=None,
        say=lambda text, **values: text.format(**values),
    )
    shown = read_partial(cast("Any", view))["partial"]
    assert shown["rows"] == [["18446744073709551615", "1767225600.123456", None]]
