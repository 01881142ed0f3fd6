"""The values of a topic's records as columns, and the records whose values do not fit.

A value that is empty, or does not match format and schema, is a bad record. It ends the query with
a sentence that names it, or it is counted and left out, or another query writes it to a dead-letter
topic: its original bytes, with headers for the reason and its position. A record without a value (a
tombstone) is a row of NULLs, is left out, or ends the query.
"""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, types
from pyspark.sql import functions as sql

from ottla.streams.pipelines.model import HEADERS_COLUMN, RECORD_COLUMNS, TopicSource
from ottla.streams.spark.pipelines.avro import decoded

BAD_RECORDS = "bad records of "
"""The beginning of the name of the metric with the number of bad records of a source."""
_CORRUPT, _PARSED, _REASON = "_corrupt_value", "_parsed_value", "_reason"
_SHOWN_MAX = 200
# The headers of Kafka Streams (KIP-1034).
_HEADERS = "__streams.errors."
_HEADERS_TYPE = "array<struct<key:string,value:binary>>"


def ddl(schema: Mapping[str, str]) -> str:
    """Return a schema in Spark's DDL."""
    return ", ".join(f"`{name}` {kind}" for name, kind in schema.items())


def shape(records: DataFrame, source: TopicSource) -> DataFrame:
    """Return records in the form of the source's format: the value's fields, then the record's own
    columns.
    """
    judged = _judged(_without_tombstones(records, source), source)
    fits = sql.col(_REASON).isNull()
    if source.bad_records == "fail":
        text = _sentence(source, sql.col(_REASON), "bad_records: skip, or a topic for them")
        judged = judged.where(_or_fail(fits, text))
    else:
        if not source.is_static:
            name = f"{BAD_RECORDS}{source.name}"
            judged = judged.observe(name, sql.count_if(~fits).alias("records"))
        judged = judged.where(fits)
    return judged.select(*_fields(source), *_own(source))


def rejected(records: DataFrame, source: TopicSource) -> DataFrame:
    """Return the bad records of a source as records of a dead-letter topic; they have headers."""
    bad = _judged(_without_tombstones(records, source), source).where(sql.col(_REASON).isNotNull())
    details = {"message": sql.col(_REASON)}
    details |= {name: sql.col(name) for name in ("topic", "partition", "offset")}
    entries = [
        sql.struct(
            sql.lit(f"{_HEADERS}{name}").alias("key"),
            column.cast("string").cast("binary").alias("value"),
        )
        for name, column in details.items()
    ]
    empty = sql.array().cast(_HEADERS_TYPE)
    present = sql.coalesce(sql.col("headers"), empty)
    headers = sql.concat(present, sql.array(*entries).cast(_HEADERS_TYPE))
    return bad.select("key", "value", headers.alias("headers"), "timestamp")


def _without_tombstones(records: DataFrame, source: TopicSource) -> DataFrame:
    has_value = sql.col("value").isNotNull()
    if source.tombstones == "skip":
        return records.where(has_value)
    if source.tombstones == "fail":
        reason = sql.lit("it has no value (a tombstone)")
        return records.where(
            _or_fail(has_value, _sentence(source, reason, "tombstones: skip or row"))
        )
    return records


def _judged(records: DataFrame, source: TopicSource) -> DataFrame:
    """Add the parsed value, and the reason if it is bad."""
    if source.format == "json":
        return _parsed(records, source)
    if source.avro is not None:
        return _decoded(records, source)
    no_reason = sql.lit(None).cast("string")
    if source.format == "bytes":
        return records.withColumns({_PARSED: sql.col("value"), _REASON: no_reason})
    text = sql.col("value").cast("string")
    reason = sql.when(~sql.is_valid_utf8(text), "it is not UTF-8, which format: bytes reads")
    return records.withColumns({_PARSED: text, _REASON: reason})


def _parsed(records: DataFrame, source: TopicSource) -> DataFrame:
    assert source.schema is not None
    text = sql.col("value").cast("string")
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    value = sql.from_json(text, ddl({**source.schema, _CORRUPT: "string"}), options)
    records = records.withColumn(_PARSED, value)
    # from_json ignores text after the first object, and accepts NaN and single quotes.
    is_one = sql.json_array_length(sql.concat(sql.lit("["), text, sql.lit("]"))) == 1
    reason = (
        sql.when(sql.col("value").isNull(), sql.lit(None).cast("string"))
        .when(sql.length("value") == 0, "it is empty")
        .when(sql.col(_PARSED).isNull(), "it is not an object of JSON")
        .when(sql.col(f"{_PARSED}.{_CORRUPT}").isNotNull(), "it is not JSON of the schema")
        .when(~sql.coalesce(is_one, sql.lit(False)), "it is not exactly one object of JSON")
    )
    return records.withColumn(_REASON, reason)


def _decoded(records: DataFrame, source: TopicSource) -> DataFrame:
    assert source.schema is not None
    assert source.avro is not None
    columns = types.DataType.fromDDL(ddl(source.schema))
    assert isinstance(columns, types.StructType)
    value = decoded(sql.col("value"), source.avro, columns)
    judged = records.withColumn("_decoded", value)
    parsed, reason = sql.col("_decoded.row"), sql.col("_decoded.reason")
    return judged.withColumns({_PARSED: parsed, _REASON: reason})


def _fields(source: TopicSource) -> list[Column]:
    if source.schema is None:
        return [sql.col(_PARSED).alias("value")]
    return [sql.col(f"{_PARSED}.`{name}`").alias(name) for name in source.schema]


def _own(source: TopicSource) -> list[Column]:
    """Return the columns of the record besides its value."""
    key = sql.col("key")
    if source.format != "bytes":
        # Invalid text would fail in Python, and in readers of Parquet.
        key = sql.make_valid_utf8(key.cast("string"))
    own = [key.alias("_key")]
    own += [sql.col(name.removeprefix("_")).alias(name) for name in list(RECORD_COLUMNS)[1:]]
    return [*own, sql.col("headers").alias(HEADERS_COLUMN)] if source.headers else own


def _or_fail(condition: Column, text: Column) -> Column:
    return sql.when(condition, sql.lit(True)).otherwise(sql.raise_error(text).cast("boolean"))


def _sentence(source: TopicSource, reason: Column, remedy: str) -> Column:
    """Return the sentence with which a query fails for a record."""
    value = sql.col("value")
    text, digits = value.cast("string"), sql.hex(value)
    # A sentence has one line; bytes that are no text are hexadecimal.
    one_line = sql.regexp_replace(text, r"[\s\p{Cntrl}]+", " ")
    is_text = sql.is_valid_utf8(text) & sql.lit(source.avro is None)
    written = sql.when(is_text, one_line).otherwise(sql.concat(sql.lit("0x"), digits))
    length = sql.concat(sql.lit("… ("), sql.length("value").cast("string"), sql.lit(" bytes)"))
    shown = sql.when(sql.length(written) <= _SHOWN_MAX, written).otherwise(
        sql.concat(sql.substring(written, 1, _SHOWN_MAX), length)
    )
    return sql.concat(
        sql.lit(f"source {source.name}: the value of "),
        sql.concat_ws("-", "topic", "partition"),
        sql.lit(" at offset "),
        sql.col("offset").cast("string"),
        sql.lit(" cannot be read: "),
        reason,
        sql.coalesce(sql.concat(sql.lit(": "), shown), sql.lit("")),
        sql.lit(f"; correct the schema, or set {remedy}."),
    )
