"""JSON read into the fields of a dataclass in the JVM, as Python reads it; what it may read otherwise is doubtful.

Spark reads a whole number as text where text is wanted, ignores what stands behind a value, and knows no class that has a
default. So the text is read without a schema, and every field is asked for its type: a field that is missing, or of
another type than its class says, is Python's, and so is what Spark does not read at all.
"""

from collections.abc import Callable

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from ottla.streams.spark.catalyst.column_types import ColumnType, Scalar, Structure
from ottla.streams.spark.catalyst.columns import Value

_Name = Callable[[str, SparkColumn], SparkColumn]

# Spark's type of a field, by how it begins, and what it is read as.
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
    """Return a record's JSON in an array, before `end`, which is in no record."""
    return F.try_parse_json(F.concat(F.lit("["), text, F.lit(f',"{end}"]')))


def read_json(
    sides: tuple[Value, SparkColumn],
    kind: Structure,
    end: str,
    doubts: list[SparkColumn],
    named: _Name,
) -> Value:
    """Return a record's JSON, its text and as it was parsed, as a structure; `named` names a column of the frame."""
    read, parsed = sides
    text, plain = read.column, read.plain
    assert plain is not None, "bytes are looked at when they are read"
    is_there = text.isNotNull()
    # That it never is keeps Spark from reading the text once for the records' choice and once for the rest.
    doubts.append(F.spark_partition_id() < 0)
    whole = F.try_variant_get(parsed, "$[1]", "string")
    unread = (~plain & ~F.is_valid_utf8(text)) | (F.coalesce(whole, F.lit("")) != end)
    # Half a character that is written as \uD800, which no text of Java's keeps.
    unread |= _holds(text, ("\\ud", "\\uD"), r"(?i)\\ud[89a-f]")
    if _has_floats(kind):
        # Spark's decimals have no -0.0.
        unread |= _holds(text, ("-0",), r"[:,\[\s]-0(\.0*)?([eE]|[^.\d]|$)")
    doubts.append(is_there & unread)
    return _structure(parsed, "$[0]", kind, is_there, (doubts, named))


def _holds(text: SparkColumn, parts: tuple[str, ...], pattern: str) -> SparkColumn:
    """Whether a pattern is in a text; looked for where one of its parts is."""
    found = F.lit(False)
    for each in parts:
        found |= F.contains(text, F.lit(each))
    return found & text.rlike(pattern)


def _has_floats(kind: Structure) -> bool:
    inner = kind.fields.values()
    return any(_has_floats(e) if isinstance(e, Structure) else e is Scalar.FLOAT for e in inner)


def _structure(
    parsed: SparkColumn,
    path: str,
    kind: Structure,
    is_there: SparkColumn,
    told: tuple[list[SparkColumn], _Name],
) -> Value:
    doubts, named = told
    fields = {}
    for name, each in kind.fields.items():
        place = f"{path}.{name}"
        spelled = place.removeprefix("$[0]").replace(".", "-")
        known = F.coalesce(
            F.schema_of_variant(F.try_variant_get(parsed, place, "variant")), F.lit("-")
        )
        found = named(f"type{spelled}", known)
        if isinstance(each, Structure):
            is_object = found.startswith("OBJECT")
            allowed = is_object | (found == "VOID") if name in kind.optional else is_object
            fields[name] = _structure(parsed, place, each, is_there & is_object, told)
        else:
            optional = name in kind.optional or each not in (Scalar.LIST, Scalar.DICT)
            fields[name], allowed = _leaf(parsed, place, each, found)
            # A class takes None for whatever it does not look into.
            allowed |= (found == "VOID") & F.lit(optional)
            fields[name] = Value(each, named(spelled, fields[name].column))
        doubts.append(is_there & ~allowed)
    return Value(kind, is_there, fields)


def _leaf(
    parsed: SparkColumn, place: str, kind: ColumnType, found: SparkColumn
) -> tuple[Value, SparkColumn]:
    assert isinstance(kind, Scalar)
    names, wanted = _READ[kind]
    allowed = F.lit(False)
    for name in names:
        allowed |= found.startswith(name) if name else found != "-"
    return Value(kind, F.try_variant_get(parsed, place, wanted)), allowed
