"""Avro serdes based on fastavro, with plain data or in a schema registry's wire format."""

import functools
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any, TypeVar

import fastavro

from ottla.client.errors import SerializationError
from ottla.client.serdes.framing import HEADER_BYTES, header, schema_id_of
from ottla.client.serdes.json_values import reader
from ottla.client.serdes.registry import Registry, Schema
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
) -> Serde[T]:
    """Return the serde of a schema; see `Serdes.avro`."""
    avro = _avro(schema, kind)
    if registry is None:
        return Serde(avro.encode, avro.decode, f"avro({avro.name})")
    schema_source = Schema(avro.text), registry
    return registered(
        lambda result: _framed(avro, Registration(*schema_source, result, registers)),
        subject,
        f"avro({avro.name})",
    )


def avro_reader(registry: Registry) -> Callable[[bytes], Any]:
    """Return a function that reads data in a registry's wire format with the writer's schema."""

    def read(data: bytes) -> Any:
        schema = registry.schema(schema_id_of(data))
        if schema.kind != "AVRO":
            raise SerializationError(f"the record's schema is {schema.kind}, not Avro")
        parsed = _parsed(schema.text)
        return _Avro(parsed, schema.text, "the type of its schema").decode(data[HEADER_BYTES:])

    return read


def _avro(schema: str | Mapping[str, Any], kind: Any) -> _Avro:
    try:
        plain = json.loads(schema) if isinstance(schema, str) else dict(schema)
    except ValueError:
        # The name of a primitive type may be written without quotes.
        plain = schema
    try:
        parsed = fastavro.parse_schema(plain)
    except (fastavro.schema.SchemaParseException, fastavro.schema.UnknownType) as error:
        raise SerializationError(f"the Avro schema is invalid: {error}") from error
    name = parsed.get("name", parsed.get("type")) if isinstance(parsed, dict) else str(parsed)
    # A primitive type is sent to the registry in the form of Confluent's clients for Python.
    text = json.dumps(plain) if isinstance(plain, dict | list) else f'{{"type":"{plain}"}}'
    if isinstance(plain, dict) and plain.keys() == {"type"} and isinstance(plain["type"], str):
        parsed = plain["type"]
    return _Avro(parsed, text, str(name), kind)


def _framed(avro: _Avro, registration: Registration) -> Serde[Any]:
    beginning: list[bytes] = []

    def write(value: Any) -> bytes:
        data = avro.encode(value)
        if not beginning:
            beginning.append(header(registration.schema_id()))
        return beginning[0] + data

    def read(data: bytes) -> Any:
        schema = registration.registry.schema(schema_id_of(data))
        if schema.kind != "AVRO":
            raise SerializationError(f"the record's schema is {schema.kind}, not Avro")
        return avro.decode(data[HEADER_BYTES:], _parsed(schema.text))

    return Serde(write, read, f"avro({avro.name})")


@functools.lru_cache(maxsize=256)
def _parsed(text: str) -> Any:
    return fastavro.parse_schema(json.loads(text))
