"""Reads JSON into the fields of a dataclass in the JVM as Python does; possible differences are
doubts.

Spark converts numbers to text if text is wanted, ignores text after a value, and does not know
default values of classes. The text is therefore parsed without a schema, and the type of every
field is checked. Records with a field that is missing or has another type than in the class are
left to Python, and so are records that Spark cannot parse.
"""

from collections.abc import Callable

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from ottla.streams.spark.catalyst.column_types import ColumnType, Scalar, Structure
from ottla.streams.spark.catalyst.columns import Value

_Name = Callable[[str, SparkColumn], SparkColumn]

# The prefixes of the types that Spark reports for a field, and the type to read it as.
_READ = {
    Scalar.INT: (("BIGINT",), "bigint"),
    Scalar.FLOAT: (("DECIMAL", "DOUBLE"), "double"),
    Scalar.TEXT: (("STRING",), "string"),
    Scalar.FLAG: (("BOOLEAN",), "boolean"),
    Scalar.LIST: (("ARRAY",), "variant"),
    Scalar.DICT: (("OBJECT",), "variant"),
    Scalar.OPAQUE: (("",), "variant"),
}


def parse_json(text: SparkColumn, end: str) -> SparkColumn:
    """Return a record's JSON, parsed in an array, followed by `end`, which no record contains."""
    return F.try_parse_json(F.concat(F.lit("["), text, F.lit(f',"{end}"]')))


def read_json(
    sides: tuple[Value, SparkColumn],
    kind: Structure,
    end: str,
    doubts: list[SparkColumn],
    named: _Name,
) -> Value:
    """Return a record's JSON as a structure, from its text and its parsed form.

    `named` adds a column to the frame.
    """
    read, parsed = sides
    text, plain = read.column, read.plain
    assert plain is not None, "the bits of ASCII texts are set when records are read"
    is_there = text.isNotNull()
    # This is always false; it keeps Spark from parsing the text twice, for the filter and for the
    # other columns.
    doubts.append(F.spark_partition_id() < 0)
    text_after = F.try_variant_get(parsed, "$[1]", "string")
    unread = (~plain & ~F.is_valid_utf8(text)) | (F.coalesce(text_after, F.lit("")) != end)
    # Half of a surrogate pair, such as \uD800, which Java's strings cannot keep.
    unread |= _holds(text, ("\\ud", "\\uD"), r"(?i)\\ud[89a-f]")
    if _has_floats(kind):
        # Spark's decimals have no -0.0.
        unread |= _holds(text, ("-0",), r"[:,\[\s]-0(\.0*)?([eE]|[^.\d]|$)")
    doubts.append(is_there & unread)
    return _structure(parsed, "$[0]", kind, is_there, (doubts, named))


def _holds(text: SparkColumn, parts: tuple[str, ...], pattern: str) -> SparkColumn:
    """Return a condition: the text contains one of the parts and matches the pattern."""
    result = F.lit(False)
    for part in parts:
        result |= F.contains(text, F.lit(part))
    return result & text.rlike(pattern)


def _has_floats(kind: Structure) -> bool:
    inner = kind.fields.values()
    return any(_has_floats(e) if isinstance(e, Structure) else e is Scalar.FLOAT for e in inner)


def _structure(
    parsed: SparkColumn,
    path: str,
    kind: Structure,
    is_there: SparkColumn,
    collected: tuple[list[SparkColumn], _Name],
) -> Value:
    doubts, named = collected
    fields = {}
    for name, field_kind in kind.fields.items():
        field_path = f"{path}.{name}"
        spelled = field_path.removeprefix("$[0]").replace(".", "-")
        type_name = F.coalesce(
            F.schema_of_variant(F.try_variant_get(parsed, field_path, "variant")), F.lit("-")
        )
        result = named(f"type{spelled}", type_name)
        if isinstance(field_kind, Structure):
            is_object = result.startswith("OBJECT")
            allowed = is_object | (result == "VOID") if name in kind.optional else is_object
            fields[name] = _structure(
                parsed, field_path, field_kind, is_there & is_object, collected
            )
        else:
            optional = name in kind.optional or field_kind is Scalar.OPAQUE
            fields[name], allowed = _leaf(parsed, field_path, field_kind, result)
            # A dataclass accepts None for fields whose types it does not check.
            allowed |= (result == "VOID") & F.lit(optional)
            fields[name] = Value(field_kind, named(spelled, fields[name].column))
        doubts.append(is_there & ~allowed)
    return Value(kind, is_there, fields)


def _leaf(
    parsed: SparkColumn, field_path: str, kind: ColumnType, schema: SparkColumn
) -> tuple[Value, SparkColumn]:
    assert isinstance(kind, Scalar)
    names, type_name = _READ[kind]
    allowed = F.lit(False)
    for name in names:
        allowed |= schema.startswith(name) if name else schema != "-"
    return Value(kind, F.try_variant_get(parsed, field_path, type_name)), allowed
