"""Bytes in a registry's wire format as JSON, and JSON as such bytes.

JSON Schema needs no registry to be read: the text follows the id of the schema.
"""

import json
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from ottla.client.doors import open_door
from ottla.client.errors import SerializationError
from ottla.client.schemas.catalogue import ResolvedSchema, SchemaCatalogue
from ottla.client.serdes.framing import HEADER_BYTES, header, schema_id_of

_MAGIC = b"\0"
_JSON_BEGINNINGS = frozenset(b"{[")
# A number of eight bytes begins with zero bytes, too.
_NUMBER_BYTES = 8
# Bytes that are no wire format have many different ids: not each is requested.
_FAILURES_MAX = 20
# An unknown id, or a registry that does not respond, is not requested for each record again.
_RETRY_S = 15.0


class ReadableValue(NamedTuple):
    """A value as JSON, or None if it cannot be read; `schema` names the schema for people."""

    text: str | None
    schema: str


class ValueCodec(Protocol):
    """Reads and writes the values of one schema, after the header; raises SerializationError."""

    def to_json(self, data: bytes) -> str:
        """Return data as JSON."""

    def from_json(self, text: str) -> bytes:
        """Return the data of a JSON text."""


class JsonSchemaValues:
    """Values of a JSON Schema, which are JSON already. A value that is written has to match it."""

    def __init__(self, resolved: ResolvedSchema | None = None) -> None:
        self._resolved = resolved
        self._validate: Callable[[Any], None] | None = None

    def to_json(self, data: bytes) -> str:
        """Return the text as it was written."""
        try:
            text = data.decode()
            json.loads(text)
        except (ValueError, RecursionError) as error:
            raise SerializationError(f"the bytes are not JSON: {error}") from error
        return text

    def from_json(self, text: str) -> bytes:
        """Return the text, if it is JSON that matches the schema."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise SerializationError(f"the text is not JSON: {error}") from error
        if self._resolved is not None:
            self._validate = self._validate or _validator(self._resolved)
            self._validate(value)
        return text.encode()


def _validator(resolved: ResolvedSchema) -> Callable[[Any], None]:
    """Return a function that raises SerializationError for a value that does not match."""
    try:
        schema = json.loads(resolved.schema.text)
        references = {name: json.loads(other.text) for name, other in resolved.references}
        if not isinstance(schema, dict):
            return lambda value: None
        door = open_door("ottla.client.serdes.json_validation", "jsonschema", "ottla[json-schema]")
    except ValueError as error:
        raise SerializationError(f"the JSON Schema is not JSON: {error}") from error
    except ImportError as error:
        raise SerializationError(str(error)) from error
    validate: Callable[[Any], None] = door.validator_of(schema, "the JSON Schema", references)
    return validate


class SchemaValues:
    """Reads and writes values with the schemas of a registry, if there is one. For any thread."""

    def __init__(
        self,
        catalogue: SchemaCatalogue | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.catalogue = catalogue
        self._clock = clock
        self._lock = threading.Lock()
        self._codecs: dict[int, tuple[str, ValueCodec]] = {}
        self._failures: dict[int, tuple[float, str]] = {}
        self._silent_until = float("-inf")

    @property
    def has_registry(self) -> bool:
        """True if Avro and Protobuf can be read."""
        return self.catalogue is not None

    def read(self, data: bytes | None) -> ReadableValue | None:
        """Return a value in the wire format as JSON; None for any other bytes."""
        if data is None or data[:1] != _MAGIC or len(data) <= HEADER_BYTES:
            return None
        schema_id, body = schema_id_of(data), data[HEADER_BYTES:]
        if self.catalogue is None:
            return _json_only(schema_id, body)
        try:
            kind, codec = self._codec(schema_id)
            return ReadableValue(codec.to_json(body), f"{kind}, schema {schema_id}")
        except SerializationError as error:
            # Bytes that look like the wire format by chance, too.
            readable = _json_only(schema_id, body)
            if readable is not None or len(data) == _NUMBER_BYTES:
                return readable
            return ReadableValue(None, f"schema {schema_id}: {error}")

    def write(self, subject: str, text: str) -> bytes:
        """Return JSON as a value with the latest schema of a subject; SerializationError."""
        if self.catalogue is None:
            raise SerializationError(
                "the cluster has no schema registry: start the console with --schema-registry"
            )
        schema_id, resolved = self.catalogue.latest(subject)
        return header(schema_id) + codec_of(resolved).from_json(text)

    def _has_room(self, now: float) -> bool:
        """Return True if another id that may be unknown is requested; forget old failures."""
        if len(self._failures) >= _FAILURES_MAX:
            self._failures = {
                number: failure for number, failure in self._failures.items() if failure[0] > now
            }
        return len(self._failures) < _FAILURES_MAX

    def _codec(self, schema_id: int) -> tuple[str, ValueCodec]:
        known = self._codecs.get(schema_id)
        if known is not None:
            return known
        with self._lock:
            until, reason = self._failures.get(schema_id, (float("-inf"), ""))
            now = self._clock()
            if now < max(until, self._silent_until) or not self._has_room(now):
                raise SerializationError(reason or "the schema registry did not respond")
            assert self.catalogue is not None, "the caller has checked it"
            try:
                resolved = self.catalogue.resolved(schema_id)
                known = resolved.schema.kind, codec_of(resolved)
            except SerializationError as error:
                self._failures[schema_id] = self._clock() + _RETRY_S, str(error)
                if isinstance(error.__cause__, OSError):
                    self._silent_until = self._clock() + _RETRY_S
                raise
            self._codecs[schema_id] = known
            return known


def codec_of(resolved: ResolvedSchema) -> ValueCodec:
    """Return the codec of a schema; SerializationError if it is invalid or a library is missing."""
    try:
        return _codec_of(resolved)
    except ImportError as error:
        raise SerializationError(str(error)) from error


def _codec_of(resolved: ResolvedSchema) -> ValueCodec:
    codec: ValueCodec
    match resolved.schema.kind:
        case "AVRO":
            door = open_door("ottla.client.schemas.avro_values", "fastavro", "ottla[avro]")
            codec = door.AvroValues(resolved)
        case "PROTOBUF":
            door = open_door("ottla.client.schemas.protobuf_values", "google", "ottla[protobuf]")
            codec = door.ProtobufValues(resolved)
        case "JSON":
            codec = JsonSchemaValues(resolved)
        case kind:
            raise SerializationError(f"schemas of the kind {kind!r} are not known here")
    return codec


def _json_only(schema_id: int, body: bytes) -> ReadableValue | None:
    if body[:1][0] not in _JSON_BEGINNINGS:
        return None
    try:
        return ReadableValue(JsonSchemaValues().to_json(body), f"JSON, schema {schema_id}")
    except SerializationError:
        return None
