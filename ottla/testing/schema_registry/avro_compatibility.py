"""Avro's rules of schema resolution: can a reader's schema read records of a writer's schema.

Follows the section "Schema Resolution" of the Avro specification, with the names of the errors of
SchemaCompatibility in Avro's Java library. Pure.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_PROMOTIONS = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
_NAMED = ("record", "error", "enum", "fixed")

Names = dict[str, Any]


def parse_avro(text: str, referenced: Iterable[str] = ()) -> tuple[Any, Names]:
    """Return a schema and the named types of it and of the schemas that it refers to.

    Raises ValueError for a text that is no Avro schema.
    """
    names: Names = {}
    for other in referenced:
        _collect(json.loads(other), "", names)
    schema = json.loads(text)
    _collect(schema, "", names)
    return schema, names


def _collect(schema: Any, namespace: str, names: Names) -> None:
    """Add the named types of a schema by their full names; ValueError for an unknown type."""
    if isinstance(schema, str):
        return
    if isinstance(schema, list):
        for branch in schema:
            _collect(branch, namespace, names)
        return
    if not isinstance(schema, Mapping) or "type" not in schema:
        raise ValueError(f"{schema!r} is no Avro schema")
    kind = schema["type"]
    if kind in _NAMED:
        full = full_name(schema, namespace)
        names[full] = schema
        namespace = full.rpartition(".")[0]
        for field in schema.get("fields", ()):
            _collect(field["type"], namespace, names)
    elif kind == "array":
        _collect(schema["items"], namespace, names)
    elif kind == "map":
        _collect(schema["values"], namespace, names)
    elif not isinstance(kind, str):
        _collect(kind, namespace, names)


def full_name(schema: Mapping[str, Any], namespace: str) -> str:
    """Return the full name of a named type in a namespace."""
    name = str(schema.get("name", ""))
    own = str(schema.get("namespace", namespace) or "")
    return name if "." in name or not own else f"{own}.{name}"


class AvroReader:
    """The reader's and the writer's schema with their named types."""

    def __init__(self, reader_names: Names, writer_names: Names) -> None:
        self._reader_names = reader_names
        self._writer_names = writer_names
        # Pairs of records under comparison: they may contain themselves.
        self._under_way: set[tuple[int, int]] = set()

    def problems(self, reader: Any, writer: Any, place: str = "") -> list[str]:
        """Return why the reader cannot read what the writer writes; empty if it can."""
        reader = _resolved(reader, self._reader_names)
        writer = _resolved(writer, self._writer_names)
        if isinstance(writer, list):
            return [text for branch in writer for text in self.problems(reader, branch, place)]
        if isinstance(reader, list):
            if any(not self.problems(branch, writer, place) for branch in reader):
                return []
            return [f"MISSING_UNION_BRANCH at {place or '/'}: reader union lacks {_kind(writer)}"]
        kind, written = _kind(reader), _kind(writer)
        if kind != written:
            if kind in _PROMOTIONS.get(written, ()):
                return []
            return [f"TYPE_MISMATCH at {place or '/'}: reader has {kind}, writer has {written}"]
        if kind == "array":
            return self.problems(reader["items"], writer["items"], f"{place}/items")
        if kind == "map":
            return self.problems(reader["values"], writer["values"], f"{place}/values")
        return self._named(kind, reader, writer, place) if kind in _NAMED else []

    def _named(self, kind: str, reader: Any, writer: Any, place: str) -> list[str]:
        problems = []
        if not _has_name(reader, writer):
            problems.append(
                f"NAME_MISMATCH at {place}/name: reader has {reader.get('name')}, writer has "
                f"{writer.get('name')}"
            )
        if kind == "fixed" and reader.get("size") != writer.get("size"):
            problems.append(f"FIXED_SIZE_MISMATCH at {place}/size")
        if kind == "enum" and "default" not in reader:
            lost = [name for name in writer["symbols"] if name not in reader["symbols"]]
            if lost:
                problems.append(f"MISSING_ENUM_SYMBOLS at {place}/symbols: {lost}")
        if kind in ("record", "error"):
            problems += self._fields(reader, writer, place)
        return problems

    def _fields(self, reader: Any, writer: Any, place: str) -> list[str]:
        pair = (id(reader), id(writer))
        if pair in self._under_way:
            return []
        self._under_way.add(pair)
        try:
            written = {field["name"]: field for field in writer.get("fields", ())}
            problems = []
            for number, field in enumerate(reader.get("fields", ())):
                inner = f"{place}/fields/{number}"
                names: Sequence[str] = [field["name"], *field.get("aliases", ())]
                source = next((written[name] for name in names if name in written), None)
                if source is not None:
                    problems += self.problems(field["type"], source["type"], f"{inner}/type")
                elif "default" not in field:
                    problems.append(
                        f"READER_FIELD_MISSING_DEFAULT_VALUE at {inner}: {field['name']}"
                    )
            return problems
        finally:
            self._under_way.discard(pair)


def _has_name(reader: Mapping[str, Any], writer: Mapping[str, Any]) -> bool:
    """Return True if the unqualified names are the same, or an alias is the writer's name."""
    name = str(writer.get("name", "")).rpartition(".")[2]
    names = (reader.get("name", ""), *reader.get("aliases", ()))
    return any(str(own).rpartition(".")[2] == name for own in names)


def _resolved(schema: Any, names: Names) -> Any:
    """Return the definition of a name; `{"type": "string"}` is `"string"`."""
    while True:
        if isinstance(schema, str):
            known = names.get(schema) or next(
                (found for name, found in names.items() if name.rpartition(".")[2] == schema), None
            )
            return schema if known is None else known
        if isinstance(schema, Mapping) and schema["type"] not in (*_NAMED, "array", "map"):
            schema = schema["type"]
            continue
        return schema


def _kind(schema: Any) -> str:
    if isinstance(schema, list):
        return "union"
    return schema if isinstance(schema, str) else str(schema["type"])
