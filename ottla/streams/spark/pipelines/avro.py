"""Avro values of topics as columns, in Spark's Python workers: pip's pyspark lacks the JAR of
Spark's own Avro reader.

With a schema registry every record is read with the schema whose id it contains; columns are
matched by name. Records are written with the schema of the file, or with one derived from the
columns.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, types
from pyspark.sql import functions as sql
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type

from ottla.base.errors import ConfigError
from ottla.client.doors import open_door
from ottla.streams.model.errors import SerializationError
from ottla.streams.pipelines.model import Avro
from ottla.streams.serdes import SchemaRegistry, Serde, Serdes

_PLAIN: dict[type[types.DataType], Any] = {
    types.StringType: "string",
    types.BinaryType: "bytes",
    types.BooleanType: "boolean",
    types.ByteType: "int",
    types.ShortType: "int",
    types.IntegerType: "int",
    types.LongType: "long",
    types.FloatType: "float",
    types.DoubleType: "double",
    types.DateType: {"type": "int", "logicalType": "date"},
    types.TimestampType: {"type": "long", "logicalType": "timestamp-micros"},
}


def decoded(values: Column, avro: Avro, columns: types.StructType) -> Column:
    """Return values as a struct of `row` and `reason`, which is null unless the value is bad."""
    wrapped = types.StructType(
        [types.StructField("row", columns), types.StructField("reason", types.StringType())]
    )
    kind = to_arrow_type(wrapped, timezone="UTC")
    readers: list[Callable[[bytes], Any]] = []

    def decode(data: pa.Array) -> pa.Array:
        if not readers:
            readers.append(_reader(avro))
        return _rows(data.to_pylist(), readers[0], kind)

    make: Any = arrow_udf
    result: Column = make(decode, wrapped)(values)
    return result


def _reader(avro: Avro) -> Callable[[bytes], Any]:
    if not avro.registry:
        return Serdes.avro(avro.schema).deserialize
    registry = SchemaRegistry(avro.registry)
    if not avro.schema:
        door = open_door("ottla.client.serdes.avro", "fastavro", "ottla[avro]")
        result: Callable[[bytes], Any] = door.avro_reader(registry)
        return result
    return Serdes.avro(avro.schema, registry=registry, subject="-").deserialize


def _rows(
    values: Sequence[bytes | None],
    read: Callable[[bytes], Any],
    kind: pa.DataType,
) -> pa.Array:
    rows: list[dict[str, Any]] = []
    for value in values:
        try:
            row = None if value is None else read(value)
            if not isinstance(row, dict | None):
                raise SerializationError(f"the value is not a record: {row!r}")
            # Convert each row separately, to find the one that does not fit its columns.
            pa.array([row], kind.field("row").type)
            rows.append({"row": row, "reason": None})
        except (SerializationError, pa.ArrowException, TypeError, ValueError) as error:
            rows.append({"row": None, "reason": f"it is not Avro of these columns: {error}"})
    return pa.array(rows, kind)


def encoded(frame: DataFrame, names: Sequence[str], avro: Avro, topic: str) -> Column:
    """Return some columns of a frame as Avro values; raise ConfigError for a type that Avro does
    not have.
    """
    struct = frame.select(*(f"`{name}`" for name in names)).schema
    text = avro.schema or json.dumps(_record(struct, "value"))
    serdes: list[Serde[Any]] = []

    def encode(rows: pa.Array) -> pa.Array:
        if not serdes:
            registry = SchemaRegistry(avro.registry) if avro.registry else None
            serdes.append(Serdes.avro(text, registry=registry).of(topic, is_key=False))
        return pa.array([serdes[0].to_bytes(row) for row in rows.to_pylist()], pa.binary())

    columns = sql.struct(*(sql.col(f"`{name}`") for name in names))
    make: Any = arrow_udf
    result: Column = make(encode, types.BinaryType())(columns)
    return result


def _record(struct: types.StructType, name: str) -> dict[str, Any]:
    """Return the Avro schema of columns; each may be null, as in Spark."""
    fields = [
        {
            "name": field_.name,
            "type": ["null", _type(field_.dataType, f"{name}_{field_.name}")],
            "default": None,
        }
        for field_ in struct.fields
    ]
    return {"type": "record", "name": name, "fields": fields}


def _type(kind: types.DataType, name: str) -> Any:
    if isinstance(kind, types.StructType):
        return _record(kind, name)
    if isinstance(kind, types.ArrayType):
        return {"type": "array", "items": ["null", _type(kind.elementType, name)]}
    if isinstance(kind, types.MapType) and isinstance(kind.keyType, types.StringType):
        return {"type": "map", "values": ["null", _type(kind.valueType, name)]}
    if isinstance(kind, types.DecimalType):
        sizes = {"precision": kind.precision, "scale": kind.scale}
        return {"type": "bytes", "logicalType": "decimal", **sizes}
    if type(kind) not in _PLAIN:
        raise ConfigError(
            f"Avro has no type for {name.partition('_')[2]}, which is {kind.simpleString()}: cast it, or "
            "write json."
        )
    return _PLAIN[type(kind)]
