"""Avro values as JSON texts: what a reader expects, not Avro's own JSON encoding.

A union has the value of its branch; bytes are text of one character for each byte (as in Avro's
JSON); decimals and dates are texts. Another door to fastavro.
"""

import io
import json
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro

from ottla.client.errors import SerializationError
from ottla.client.schemas.catalogue import ResolvedSchema

_UNFIT = (ValueError, TypeError, KeyError, IndexError, EOFError, AttributeError, OverflowError,
          ArithmeticError, RecursionError, MemoryError)  # fmt: skip
_FROM_TEXT: Mapping[str, Callable[[str], Any]] = {
    "decimal": Decimal,
    "date": date.fromisoformat,
    "time-millis": time.fromisoformat,
    "time-micros": time.fromisoformat,
    "timestamp-millis": datetime.fromisoformat,
    "timestamp-micros": datetime.fromisoformat,
    "local-timestamp-millis": datetime.fromisoformat,
    "local-timestamp-micros": datetime.fromisoformat,
    "uuid": str,
}
# The types of JSON values by the types of Avro.
_TYPES: Mapping[str, Any] = {
    "null": type(None), "boolean": bool, "int": int, "long": int, "float": (int, float, str),
    "double": (int, float, str), "string": str, "bytes": str, "fixed": str, "enum": str,
    "array": list, "map": dict, "record": dict, "error": dict,
}  # fmt: skip


class AvroValues:
    """A schema with its references, which reads and writes values; SerializationError if it is
    invalid.
    """

    def __init__(self, resolved: ResolvedSchema) -> None:
        self._named: dict[str, Any] = {}
        try:
            for _, schema in resolved.references:
                fastavro.parse_schema(json.loads(schema.text), named_schemas=self._named)
            plain = json.loads(resolved.schema.text)
            self._schema: Any = fastavro.parse_schema(plain, named_schemas=self._named)
        except (
            *_UNFIT,
            fastavro.schema.SchemaParseException,
            fastavro.schema.UnknownType,
        ) as error:
            raise SerializationError(f"the Avro schema cannot be read: {error}") from error

    def to_json(self, data: bytes) -> str:
        """Return data of the schema as JSON."""
        source = io.BytesIO(data)
        try:
            value = fastavro.schemaless_reader(source, self._schema, None)
        except (*_UNFIT, fastavro.read.SchemaResolutionError) as error:
            reason = f"{type(error).__name__} {error}"
            raise SerializationError(f"the bytes do not match the schema: {reason}") from error
        if source.read(1):
            raise SerializationError("the bytes do not match the schema: it ends before them")
        return json.dumps(_plain(value), ensure_ascii=False)

    def from_json(self, text: str) -> bytes:
        """Return the data of a JSON text."""
        target = io.BytesIO()
        try:
            value = self._fit(self._schema, json.loads(text))
            fastavro.schemaless_writer(target, self._schema, value)
        except _UNFIT as error:
            raise SerializationError(f"the value does not match the schema: {error}") from error
        return target.getvalue()

    def _fit(self, schema: Any, value: Any) -> Any:
        """Return a value of JSON as the value of a schema that fastavro writes; ValueError if its
        type is another one.
        """
        if isinstance(schema, list):
            return self._fit_union(schema, value)
        if isinstance(schema, str) and schema not in _TYPES:
            return self._fit(self._named[schema], value)
        kind = schema if isinstance(schema, str) else schema["type"]
        if isinstance(kind, dict | list):
            return self._fit(kind, value)
        logical = "" if isinstance(schema, str) else schema.get("logicalType", "")
        if isinstance(value, str) and logical in _FROM_TEXT:
            return _FROM_TEXT[logical](value)
        # In Python, true is a whole number.
        is_number = not isinstance(value, bool) or kind == "boolean"
        if not isinstance(value, _TYPES[kind]) or not is_number:
            raise ValueError(f"{value!r} is not of the type {kind}")
        match kind:
            case "record" | "error":
                return self._fit_record(schema, value)
            case "array":
                return [self._fit(schema["items"], item) for item in value]
            case "map":
                return {name: self._fit(schema["values"], item) for name, item in value.items()}
            case "enum" if value not in schema["symbols"]:
                raise ValueError(f"{value!r} is no symbol of {schema['name']}")
            case "bytes" | "fixed":
                return value.encode("latin-1")
            case "float" | "double":
                return float(value)
        return value

    def _fit_record(self, schema: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
        rows = {row["name"]: row for row in schema["fields"]}
        if unknown := sorted(set(value) - set(rows)):
            raise ValueError(f"the record {schema['name']} has no field {unknown[0]!r}")
        fitted = {}
        for name, row in rows.items():
            if name not in value and "default" not in row:
                raise ValueError(f"the record {schema['name']} needs the field {name!r}")
            # The default of bytes is a text, too.
            fitted[name] = self._fit(row["type"], value.get(name, row.get("default")))
        return fitted

    def _fit_union(self, branches: list[Any], value: Any) -> Any:
        for branch in branches:
            try:
                fitted = self._fit(branch, value)
            except _UNFIT:
                continue
            named = branch if isinstance(branch, str) else branch.get("name", "")
            # Of several records, fastavro would choose another one.
            return (named, fitted) if isinstance(fitted, dict) and named in self._named else fitted
        raise ValueError(f"{value!r} fits no branch of the union")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal | UUID) else value
