"""Avro serdes based on fastavro, with plain data or in a schema registry's wire format."""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any, TypeVar

import fastavro

from ottla.client.errors import SerializationError
from ottla.client.serdes.framing import HEADER_BYTES, header, schema_id_of
from ottla.client.serdes.json_values import reader
from ottla.client.serdes.registry import Registry, Schema, SchemaReference
from ottla.client.serdes.serde import Serde
from ottla.client.serdes.subjects import Registration, registered

T = TypeVar("T")

# Exceptions that fastavro raises for values and bytes that do not match a schema.
_UNFIT = (ValueError, TypeError, KeyError, IndexError, EOFError, AttributeError, OverflowError)


@dataclass(frozen=True)
class _Avro:
    """A schema, and the class of its records unless they are dicts."""

    schema: Any
    text: str
    name: str
    kind: Any = None
    references: tuple[SchemaReference, ...] = ()

    def encode(self, value: Any) -> bytes:
        if is_dataclass(value) and not isinstance(value, type):
            value = asdict(value)
        if self.schema == "bytes":
            # As in Confluent's serializers, a value of type bytes is written without its length.
            return bytes(value)
        target = io.BytesIO()
        try:
            fastavro.schemaless_writer(target, self.schema, value)
        except _UNFIT as error:
            raise SerializationError(f"the value does not match {self.name}: {error}") from error
        return target.getvalue()

    def decode(self, data: bytes, written: Any = None) -> Any:
        if self.schema == "bytes":
            return data
        try:
            result: Any = fastavro.schemaless_reader(
                io.BytesIO(data), written or self.schema, self.schema if written else None
            )
        except (*_UNFIT, fastavro.read.SchemaResolutionError) as error:
            raise SerializationError(
                f"the bytes are not {self.name}: {type(error).__name__} {error}"
            ) from error
        return result if self.kind is None else reader(self.kind)(result)


def avro_serde(
    schema: str | Mapping[str, Any],
    kind: type[T] | None,
    registry: Registry | None,
    subject: str | None,
    registers: bool,
    references: Sequence[SchemaReference] = (),
) -> Serde[T]:
    """Return the serde of a schema; see `Serdes.avro`."""
    if references and registry is None:
        raise SerializationError("references of an Avro schema need the registry that has them")
    avro = _avro(schema, kind, _names_of(references, registry))
    if registry is None:
        return Serde(avro.encode, avro.decode, f"avro({avro.name})")
    schema_source = Schema(avro.text, references=tuple(references)), registry
    return registered(
        lambda result: _framed(avro, Registration(*schema_source, result, registers)),
        subject,
        f"avro({avro.name})",
    )


def avro_reader(registry: Registry) -> Callable[[bytes], Any]:
    """Return a function that reads data in a registry's wire format with the writer's schema."""

    writers: dict[int, Any] = {}

    def read(data: bytes) -> Any:
        parsed = _writer(registry, schema_id_of(data), writers)
        return _Avro(parsed, "", "the type of its schema").decode(data[HEADER_BYTES:])

    return read


def _avro(schema: str | Mapping[str, Any], kind: Any, names: dict[str, Any]) -> _Avro:
    try:
        plain = json.loads(schema) if isinstance(schema, str) else dict(schema)
    except ValueError:
        # The name of a primitive type may be written without quotes.
        plain = schema
    parsed = _parsed(plain, names, "the Avro schema")
    name = parsed.get("name", parsed.get("type")) if isinstance(parsed, dict) else str(parsed)
    # A primitive type is sent to the registry in the form of Confluent's clients for Python.
    text = json.dumps(plain) if isinstance(plain, dict | list) else f'{{"type":"{plain}"}}'
    if isinstance(plain, dict) and plain.keys() == {"type"} and isinstance(plain["type"], str):
        parsed = plain["type"]
    return _Avro(parsed, text, str(name), kind)


def _framed(avro: _Avro, registration: Registration) -> Serde[Any]:
    beginning: list[bytes] = []
    writers: dict[int, Any] = {}

    def write(value: Any) -> bytes:
        data = avro.encode(value)
        if not beginning:
            beginning.append(header(registration.schema_id()))
        return beginning[0] + data

    def read(data: bytes) -> Any:
        writer = _writer(registration.registry, schema_id_of(data), writers)
        return avro.decode(data[HEADER_BYTES:], writer)

    return Serde(write, read, f"avro({avro.name})")


def _writer(registry: Registry, schema_id: int, known: dict[int, Any]) -> Any:
    """Return the parsed schema of an id, from `known` if it is there."""
    if schema_id not in known:
        schema = registry.schema(schema_id)
        if schema.kind != "AVRO":
            raise SerializationError(f"the record's schema is {schema.kind}, not Avro")
        names = _names_of(schema.references, registry)
        known[schema_id] = _parsed(_loaded(schema.text), names, f"the Avro schema {schema_id}")
    return known[schema_id]


def _names_of(references: Sequence[SchemaReference], registry: Registry | None) -> dict[str, Any]:
    """Return the named types of the schemas that are referred to, also indirectly."""
    names: dict[str, Any] = {}
    added: set[tuple[str, int]] = set()

    def add(reference: SchemaReference) -> None:
        assert registry is not None
        key = reference.subject, reference.version
        if key in added:
            return
        added.add(key)
        schema = registry.referenced(reference)
        for further in schema.references:
            add(further)
        whose = f"version {reference.version} of {reference.subject}, which a schema refers to,"
        _parsed(_loaded(schema.text), names, whose)

    for reference in references:
        add(reference)
    return names


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise SerializationError(f"the text of an Avro schema is not JSON: {error}") from error


def _parsed(plain: Any, names: dict[str, Any], whose: str) -> Any:
    """Parse a schema that may use the types in `names`, to which its own named types are added."""
    try:
        return fastavro.parse_schema(plain, named_schemas=names)
    except fastavro.schema.UnknownType as error:
        raise SerializationError(
            f"{whose} is invalid: it uses the type {error.name!r}, which neither it nor its "
            "references define"
        ) from error
    except fastavro.schema.SchemaParseException as error:
        raise SerializationError(f"{whose} is invalid: {error}") from error
