"""Schemas are checked without Spark."""

import pytest

from ottla.streams.pipelines.data_types import check_type, columns_of


@pytest.mark.parametrize(
    "text",
    [
        "string", "BIGINT", "decimal(10, 2)", "varchar(20)", "array<int>", "map<string, array<double>>",
        "struct<a: int, `b c`: struct<d string>>", "struct<a int>",
    ],
)  # fmt: skip
def test_spark_types_are_accepted(text: str) -> None:
    """The types are in the syntax of Spark's DDL."""
    assert check_type(text) == ""


@pytest.mark.parametrize(
    "text", ["strng", "array<>", "array<int", "map<string>", "struct<a>", "list<int>"]
)
def test_invalid_types_are_rejected(text: str) -> None:
    """The result is an error message."""
    assert check_type(text)


def test_columns_of_a_schema() -> None:
    """Names and types may contain nested commas and colons."""
    assert columns_of("a int, b map<string, int> NOT NULL, c: decimal(10,2)") == {
        "a": "int",
        "b": "map<string, int>",
        "c": "decimal(10,2)",
    }
    with pytest.raises(ValueError, match=r"Column b: Unknown data type nit\. Did you mean int"):
        columns_of("a int, b nit")
    with pytest.raises(ValueError, match="Column a is defined twice"):
        columns_of("a int, a string")
