"""A schema registry for tests, used in this process or by other clients over HTTP.

    with FakeSchemaRegistry() as registry:
        serde = Serdes.avro(schema, registry=registry, subject="users-value")
        other_client = SchemaRegistryClient({"url": registry.url})

Not done: compatibility checks, deletion, modes.
"""

import json
import threading
import urllib.parse
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from ottla.streams.model.errors import SerializationError
from ottla.streams.serdes import Schema, SchemaReference

_SUBJECT_NOT_FOUND = 40401
_VERSION_NOT_FOUND = 40402
_SCHEMA_NOT_FOUND = 40403


class _NotFound(SerializationError):
    """A subject, version or schema is not registered; the code is the registry's error code."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class FakeSchemaRegistry:
    """A schema registry in memory; as a context manager it also serves HTTP at `url`."""

    def __init__(self) -> None:
        self._schemas: list[Schema] = []
        self._subjects: dict[str, list[int]] = {}
        self.failures: deque[int] = deque()
        """The statuses with which it responds to the next requests over HTTP, such as 503."""
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def subjects(self) -> dict[str, list[int]]:
        """The schema ids of each subject, by version."""
        return {name: list(ids) for name, ids in self._subjects.items()}

    def register(self, subject: str, schema: Schema) -> int:
        """Register a schema under a subject if it is new, and return its id."""
        with self._lock:
            if schema not in self._schemas:
                self._schemas.append(schema)
            number = self._schemas.index(schema) + 1
            versions = self._subjects.setdefault(subject, [])
            if number not in versions:
                versions.append(number)
            return number

    def lookup(self, subject: str, schema: Schema) -> tuple[int, int]:
        """Return id and version of a schema that is registered under a subject."""
        versions = self._versions(subject)
        number = self._schemas.index(schema) + 1 if schema in self._schemas else 0
        if number not in versions:
            raise _NotFound(_SCHEMA_NOT_FOUND, f"Schema not found under subject {subject}")
        return number, versions.index(number) + 1

    def schema(self, schema_id: int) -> Schema:
        """Return the schema with this id."""
        if not 1 <= schema_id <= len(self._schemas):
            raise _NotFound(_SCHEMA_NOT_FOUND, f"Schema {schema_id} not found")
        return self._schemas[schema_id - 1]

    def version(self, subject: str, version: str) -> tuple[int, int, Schema]:
        """Return id, version and schema of a subject's version; "latest" is the newest version."""
        versions = self._versions(subject)
        number = len(versions) if version == "latest" else int(version)
        if not 1 <= number <= len(versions):
            raise _NotFound(_VERSION_NOT_FOUND, f"Version {version} not found")
        return versions[number - 1], number, self.schema(versions[number - 1])

    def referenced(self, reference: SchemaReference) -> Schema:
        """Return the schema that another one refers to."""
        return self.version(reference.subject, str(reference.version))[2]

    def _versions(self, subject: str) -> list[int]:
        if subject not in self._subjects:
            raise _NotFound(_SUBJECT_NOT_FOUND, f"Subject '{subject}' not found.")
        return self._subjects[subject]

    @property
    def url(self) -> str:
        """The URL of the registry for HTTP clients; available inside the context."""
        assert self._server is not None, "a registry has an address within its context"
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "FakeSchemaRegistry":
        """Start the HTTP server."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the HTTP server; registered schemas are kept."""
        assert self._server is not None
        assert self._thread is not None
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler_of(registry: FakeSchemaRegistry) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        pass

    Handler.registry = registry
    return Handler


class _Handler(BaseHTTPRequestHandler):
    """The part of the REST interface that clients use to register and read schemas."""

    registry: FakeSchemaRegistry

    def do_GET(self) -> None:
        """Return a schema by its id, or by subject and version."""
        self._answer(None)

    def do_POST(self) -> None:
        """Register a schema or look it up."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(Schema.from_json(json.loads(body)))

    def log_message(self, format: str, *arguments: Any) -> None:
        """Suppress the request log."""

    def _answer(self, schema: Schema | None) -> None:
        path = urllib.parse.urlsplit(self.path).path
        parts = [urllib.parse.unquote(part) for part in path.strip("/").split("/")]
        try:
            status, body = self._failure() or (200, self._route(parts, schema))
        except _NotFound as error:
            status, body = 404, {"error_code": error.code, "message": str(error)}
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _failure(self) -> tuple[int, Any] | None:
        if not self.registry.failures:
            return None
        status = self.registry.failures.popleft()
        return status, {"error_code": status, "message": "a failure of a test"}

    def _route(self, parts: list[str], schema: Schema | None) -> Any:
        match parts:
            case ["schemas", "ids", schema_id] if schema is None:
                return self.registry.schema(int(schema_id)).to_json()
            case ["subjects"] if schema is None:
                return sorted(self.registry.subjects)
            case ["subjects", subject, "versions"] if schema is None:
                return list(range(1, len(self.registry.subjects.get(subject, ())) + 1))
            case ["subjects", subject, "versions"] if schema is not None:
                return {"id": self.registry.register(subject, schema)}
            case ["subjects", subject] if schema is not None:
                number, version = self.registry.lookup(subject, schema)
                return {"subject": subject, "id": number, "version": version, **schema.to_json()}
            case ["subjects", subject, "versions", version] if schema is None:
                number, version_number, registered = self.registry.version(subject, version)
                return {
                    "subject": subject,
                    "id": number,
                    "version": version_number,
                    **registered.to_json(),
                }
        raise _NotFound(404, f"no resource {self.path}")
