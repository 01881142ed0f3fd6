"""Avro values as rows, and the Avro schema of columns, without Spark."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types
from pyspark.sql.pandas.types import to_arrow_type

from ottla.base.errors import ConfigError
from ottla.client.serdes.avro import avro_reader
from ottla.streams.serdes import Serde, Serdes
from ottla.streams.spark.pipelines.avro import _record, _rows
from ottla.testing.schema_registry import FakeSchemaRegistry

_SCHEMA = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}


def _kind(columns: types.StructType) -> pa.DataType:
    whole = [types.StructField("row", columns), types.StructField("reason", types.StringType())]
    return to_arrow_type(types.StructType(whole), timezone="UTC")


_A = types.StructType([types.StructField("a", types.IntegerType())])


def test_bad_values_have_a_reason() -> None:
    """Invalid Avro and values of other columns are bad; a tombstone is a row of nulls."""
    serde: Serde[Any] = Serdes.avro(_SCHEMA)
    values = [serde.to_bytes({"a": 1}), None, b"", serde.to_bytes({"a": 2})]
    actual = _rows(values, serde.deserialize, _kind(_A)).to_pylist()
    assert [each["reason"] is None for each in actual] == [True, True, False, True]
    assert [each["row"] for each in actual] == [{"a": 1}, None, None, {"a": 2}]
    text = types.StructType([types.StructField("a", types.StringType())])
    (wrong,) = _rows(values[:1], serde.deserialize, _kind(text)).to_pylist()
    assert wrong["reason"].startswith("it is not Avro of these columns: ")


def test_values_are_read_with_their_own_schema() -> None:
    """Each value names the version of its schema; columns that the version lacks are null."""
    registry = FakeSchemaRegistry("NONE")
    wider = {**_SCHEMA, "fields": [*_SCHEMA["fields"], {"name": "b", "type": "string"}]}
    values = [
        Serdes.avro(schema, registry=registry).of("t", is_key=False).to_bytes(row)
        for schema, row in ((_SCHEMA, {"a": 1}), (wider, {"a": 2, "b": "x"}))
    ]
    columns = types.StructType([*_A.fields, types.StructField("b", types.StringType())])
    actual = _rows(values, avro_reader(registry), _kind(columns)).to_pylist()
    assert [each["row"] for each in actual] == [{"a": 1, "b": None}, {"a": 2, "b": "x"}]


def test_columns_have_an_avro_schema() -> None:
    """All Avro types are supported, nested and nullable; others are rejected with the fix."""
    inner = types.StructType([types.StructField("x", types.DoubleType())])
    columns = types.StructType(
        [
            types.StructField("text", types.StringType()),
            types.StructField("number", types.LongType()),
            types.StructField("day", types.DateType()),
            types.StructField("time", types.TimestampType()),
            types.StructField("price", types.DecimalType(10, 2)),
            types.StructField("list", types.ArrayType(inner)),
            types.StructField("map", types.MapType(types.StringType(), inner)),
            types.StructField("inner", inner),
        ]
    )
    serde: Serde[Any] = Serdes.avro(_record(columns, "value"))
    row = {
        "text": "x",
        "number": 1,
        "day": date(2026, 1, 1),
        "time": datetime(2026, 1, 1, tzinfo=UTC),
        "price": Decimal("1.25"),
        "list": [{"x": 1.0}, None],
        "map": {"k": {"x": 2.0}},
        "inner": {"x": 3.0},
    }
    empty = dict.fromkeys(row)
    for avro_row in (row, empty):
        assert serde.from_bytes(serde.to_bytes(avro_row)) == avro_row
    wrong = types.StructType([types.StructField("v", types.VariantType())])
    with pytest.raises(ConfigError, match="Avro has no type for v, which is variant"):
        _record(wrong, "value")
