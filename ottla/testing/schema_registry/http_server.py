"""The registry with its REST interface, as Confluent documents it."""

import json
import threading
import urllib.parse
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from ottla.streams.serdes import Schema
from ottla.testing.schema_registry.compatibility import CompatibilityLevel
from ottla.testing.schema_registry.store import RegistryError, SchemaStore

_KINDS = ["JSON", "PROTOBUF", "AVRO"]
_VERSION = "8.0.0"


class FakeSchemaRegistry(SchemaStore):
    """A schema registry in memory; as a context manager it also serves HTTP at `url`.

    `compatibility` is the global level, as in a new registry: BACKWARD.
    """

    def __init__(self, compatibility: str = CompatibilityLevel.BACKWARD) -> None:
        super().__init__(compatibility)
        self.failures: deque[int] = deque()
        """The statuses with which it responds to the next requests over HTTP, such as 503."""
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None

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


class _Query:
    """The parameters of a request."""

    def __init__(self, text: str) -> None:
        self._values = dict(urllib.parse.parse_qsl(text))

    def flag(self, name: str) -> bool:
        return self._values.get(name, "false").lower() == "true"

    def text(self, name: str) -> str:
        return self._values.get(name, "")


class _Handler(BaseHTTPRequestHandler):
    """The REST interface."""

    registry: FakeSchemaRegistry

    def do_GET(self) -> None:
        """Return schemas, versions, levels and modes."""
        self._respond("GET")

    def do_POST(self) -> None:
        """Register a schema, look it up, or check its compatibility."""
        self._respond("POST")

    def do_PUT(self) -> None:
        """Set a level or a mode."""
        self._respond("PUT")

    def do_DELETE(self) -> None:
        """Delete a subject, a version, a level or a mode."""
        self._respond("DELETE")

    def log_message(self, format: str, *arguments: Any) -> None:
        """Suppress the request log."""

    def _respond(self, method: str) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        split = urllib.parse.urlsplit(self.path)
        parts = [urllib.parse.unquote(part) for part in split.path.strip("/").split("/")]
        try:
            status, body = self._failure() or (200, self._route(method, parts, split.query, data))
        except RegistryError as error:
            status, body = error.status, {"error_code": error.code, "message": str(error)}
        encoded = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)

    def _failure(self) -> tuple[int, Any] | None:
        if not self.registry.failures:
            return None
        status = self.registry.failures.popleft()
        return status, {"error_code": status, "message": "a failure of a test"}

    def _route(self, method: str, parts: list[str], query: str, data: bytes) -> Any:
        values = _Query(query)
        try:
            body = json.loads(data) if data else {}
        except ValueError as error:
            raise RegistryError(400, 400, f"the request is no JSON: {error}") from error
        match method:
            case "GET":
                result = self._get(parts, values)
            case "POST":
                result = self._post(parts, values, body)
            case "PUT":
                result = self._put(parts, values, body)
            case _:
                result = self._delete(parts, values)
        if result is None:
            raise RegistryError(404, 404, f"HTTP 404 Not Found: {method} {self.path}")
        return result

    def _get(self, parts: list[str], query: _Query) -> Any:
        registry, deleted = self.registry, query.flag("deleted")
        match parts:
            case [""]:
                return {}
            case ["contexts"]:
                return ["."]
            case ["v1", "metadata", "version"]:
                return {"version": _VERSION}
            case ["schemas", "types"]:
                return _KINDS
            case ["schemas", "ids", number, *rest] if number.isdecimal():
                return self._by_id(int(number), rest, deleted=deleted)
            case ["subjects"]:
                return registry.subject_names(prefix=query.text("subjectPrefix"), deleted=deleted)
            case ["subjects", subject, "versions", *rest]:
                return self._of_subject(subject, rest, deleted=deleted)
            case ["config", *name]:
                level = registry.level(*name[:1], with_global=query.flag("defaultToGlobal"))
                return {"compatibilityLevel": level}
            case ["mode", *name]:
                return {"mode": registry.mode(*name[:1], with_global=query.flag("defaultToGlobal"))}
        return None

    def _of_subject(self, subject: str, rest: list[str], *, deleted: bool) -> Any:
        registry = self.registry
        match rest:
            case []:
                return [row.number for row in registry.rows(subject, deleted=deleted)]
            case [version, "referencedby"]:
                return registry.referenced_by(subject, version)
            case [version, "schema"]:
                return json.loads(registry.version(subject, version, deleted=deleted)[2].text)
            case [version]:
                number, found, schema = registry.version(subject, version, deleted=deleted)
                return {"subject": subject, "id": number, "version": found, **schema.to_json()}
        return None

    def _by_id(self, schema_id: int, rest: list[str], *, deleted: bool) -> Any:
        registry = self.registry
        match rest:
            case []:
                return registry.schema(schema_id).to_json()
            case ["schema"]:
                return json.loads(registry.schema(schema_id).text)
            case ["subjects"]:
                return [subject for subject, _ in registry.uses_of(schema_id, deleted=deleted)]
            case ["versions"]:
                uses = registry.uses_of(schema_id, deleted=deleted)
                return [{"subject": subject, "version": number} for subject, number in uses]
        return None

    def _post(self, parts: list[str], query: _Query, body: Any) -> Any:
        registry = self.registry
        if "schema" not in body:
            raise RegistryError(422, 42201, "Empty schema")
        schema = Schema.from_json(body)
        match parts:
            case ["subjects", subject, "versions"]:
                registry.refuse_invalid(schema)
                number = registry.register(
                    subject,
                    schema,
                    schema_id=body.get("id") or -1,
                    version=body.get("version") or -1,
                )
                return {"id": number}
            case ["subjects", subject]:
                number, version = registry.lookup(subject, schema, deleted=query.flag("deleted"))
                return {"subject": subject, "id": number, "version": version, **schema.to_json()}
            case ["compatibility", "subjects", subject, "versions", *version]:
                problems = registry.problems(subject, schema, *version[:1])
                messages = {"messages": problems} if query.flag("verbose") else {}
                return {"is_compatible": not problems, **messages}
        return None

    def _put(self, parts: list[str], query: _Query, body: Any) -> Any:
        match parts:
            case ["config", *name]:
                self.registry.set_level(str(body.get("compatibility", "")), *name[:1])
                return {"compatibility": body["compatibility"]}
            case ["mode", *name]:
                mode = str(body.get("mode", ""))
                self.registry.set_mode(mode, *name[:1], force=query.flag("force"))
                return {"mode": mode}
        return None

    def _delete(self, parts: list[str], query: _Query) -> Any:
        registry, permanent = self.registry, query.flag("permanent")
        match parts:
            case ["subjects", subject]:
                return registry.delete_subject(subject, permanent=permanent)
            case ["subjects", subject, "versions", version]:
                return registry.delete_version(subject, version, permanent=permanent)
            case ["config", *name]:
                return {"compatibility": registry.delete_level(*name[:1])}
            case ["mode", *name]:
                return {"mode": registry.delete_mode(*name[:1])}
        return None
