"""A schema registry client: schemas by id and ids by schema, with a cache.

Follows the REST interface of Confluent's registry, which other registries implement, too. A request
is sent to the next address if a registry does not respond, or responds with 408, 429 or a 5xx
status, and is then repeated until the time-out. All requests are idempotent.
"""

import base64
import itertools
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from ottla.base.loading import deferred_module
from ottla.client.errors import SerializationError

# Every topology imports this module, and few use a registry.
if TYPE_CHECKING:
    from ottla.net import web_requests
else:
    web_requests = deferred_module("ottla.net.web_requests")

_CONTENT = "application/vnd.schemaregistry.v1+json"
_TIMEOUT_S = 10.0
# Of the largest response: a schema with its references in one text.
_RESPONSE_BYTES_MAX = 16 << 20
_OK = 200
_PASSING = frozenset({408, 429})
_SERVER_ERROR = 500
_PAUSES_S = (0.1, 0.2, 0.5, 1.0)


@dataclass(frozen=True)
class SchemaReference:
    """A schema that another one imports: the import name, and its subject and version."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True)
class Schema:
    """A schema in a registry; `kind` is AVRO, PROTOBUF or JSON."""

    text: str
    kind: str = "AVRO"
    references: tuple[SchemaReference, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the request body that registers the schema."""
        body: dict[str, Any] = {"schema": self.text, "schemaType": self.kind}
        if self.references:
            body["references"] = [vars(reference) for reference in self.references]
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> "Schema":
        """Read a response body; the type is AVRO if it is missing."""
        references = tuple(
            SchemaReference(item["name"], item["subject"], item["version"])
            for item in body.get("references") or ()
        )
        return cls(body["schema"], body.get("schemaType") or "AVRO", references)


class Registry(Protocol):
    """The interface of a schema registry for serdes; SerializationError if a request fails."""

    def register(self, subject: str, schema: Schema) -> int:
        """Register a schema under a subject if it is new, and return its id."""

    def lookup(self, subject: str, schema: Schema) -> tuple[int, int]:
        """Return id and version of a schema that is registered under a subject."""

    def schema(self, schema_id: int) -> Schema:
        """Return the schema of an id."""

    def referenced(self, reference: SchemaReference) -> Schema:
        """Return the schema that another one refers to."""


@dataclass
class SchemaRegistry:
    """A registry at a URL, or at several: a sequence, or one text with commas between them.

    `user` and `password` are for registries with authentication; `timeout_s` limits a request with
    all its repetitions. Results are cached, as the schema of an id never changes.
    """

    url: str | Sequence[str]
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    timeout_s: float = _TIMEOUT_S
    _ids: dict[tuple[str, Schema], int] = field(default_factory=dict, repr=False)
    _places: dict[tuple[str, Schema], tuple[int, int]] = field(default_factory=dict, repr=False)
    _schemas: dict[int, Schema] = field(default_factory=dict, repr=False)
    _referenced: dict[SchemaReference, Schema] = field(default_factory=dict, repr=False)
    # The number of the address that responded last.
    _current: int = field(default=0, repr=False)

    def register(self, subject: str, schema: Schema) -> int:
        """Register a schema under a subject if it is new, and return its id."""
        known = self._ids.get((subject, schema))
        if known is None:
            path = f"/subjects/{_quoted(subject)}/versions"
            known = int(self._ask(path, schema.to_json())["id"])
            self._ids[subject, schema] = known
        return known

    def lookup(self, subject: str, schema: Schema) -> tuple[int, int]:
        """Return id and version of a schema that is registered under a subject."""
        known = self._places.get((subject, schema))
        if known is None:
            result = self._ask(f"/subjects/{_quoted(subject)}", schema.to_json())
            known = int(result["id"]), int(result["version"])
            self._places[subject, schema] = known
        return known

    def schema(self, schema_id: int) -> Schema:
        """Return the schema of an id."""
        known = self._schemas.get(schema_id)
        if known is None:
            known = Schema.from_json(self._ask(f"/schemas/ids/{schema_id}", None))
            self._schemas[schema_id] = known
        return known

    def referenced(self, reference: SchemaReference) -> Schema:
        """Return the schema that another one refers to."""
        known = self._referenced.get(reference)
        if known is None:
            path = f"/subjects/{_quoted(reference.subject)}/versions/{reference.version}"
            known = self._referenced[reference] = Schema.from_json(self._ask(path, None))
        return known

    def _ask(self, path: str, body: dict[str, Any] | None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": _CONTENT, "Content-Type": _CONTENT}
        if self.user is not None:
            secret = base64.b64encode(f"{self.user}:{self.password or ''}".encode()).decode()
            headers["Authorization"] = f"Basic {secret}"
        urls = self._urls()
        deadline = time.monotonic() + self.timeout_s
        status = ""
        for number in itertools.count():
            failures = self._ask_each(urls, path, (data, headers), deadline)
            if isinstance(failures, _Content):
                return failures.value
            pause_s = _PAUSES_S[min(number, len(_PAUSES_S) - 1)]
            is_over = time.monotonic() + pause_s >= deadline
            if is_over or not any(failure.is_status for failure in failures):
                # The rest of the time may be too short for the last attempt: the status says more.
                before = "" if failures[-1].is_status else status
                raise SerializationError(
                    f"the schema registry at {', '.join(urls)} did not respond: {failures[-1]}{before}; "
                    "check the address"
                )
            status = f", after {failures[-1]}" if failures[-1].is_status else status
            time.sleep(pause_s)

    def _ask_each(
        self, urls: list[str], path: str, sent: tuple[bytes | None, dict[str, str]], deadline: float
    ) -> "_Content | list[_PassingError]":
        """Ask one address after the other until one responds."""
        failures: list[_PassingError] = []
        for left in range(len(urls), 0, -1):
            # An address that drops packets must leave time for the others.
            timeout_s = max(0.001, deadline - time.monotonic()) / left
            self._current %= len(urls)
            request = web_requests.WebRequest(urls[self._current] + path, *sent)
            try:
                return _content(request, timeout_s)
            except _PassingError as error:
                failures.append(error)
            self._current += 1
        return failures

    def _urls(self) -> list[str]:
        texts = self.url.split(",") if isinstance(self.url, str) else self.url
        urls = [text.strip().rstrip("/") for text in texts]
        for url in urls or [""]:
            if not url.startswith(("http://", "https://")):
                raise SerializationError(
                    f"a schema registry's address must begin with http:// or https://, not {url!r}"
                )
        return urls


@dataclass
class _Content:
    """The content of a response."""

    value: Any


class _PassingError(Exception):
    """A failure of one request, which the next one may not have; or a status of such a failure."""

    def __init__(self, text: str, *, is_status: bool) -> None:
        super().__init__(text)
        self.is_status = is_status


def _content(request: "web_requests.WebRequest", timeout_s: float) -> _Content:
    """Send a request; raises SerializationError if the registry rejects it."""
    try:
        response = web_requests.send(request, timeout_s=timeout_s, bytes_max=_RESPONSE_BYTES_MAX)
        if response.status == _OK:
            return _Content(json.loads(response.body))
    except (OSError, ValueError) as error:
        raise _PassingError(str(error), is_status=False) from error
    if response.status in _PASSING or response.status >= _SERVER_ERROR:
        raise _PassingError(_refusal(response), is_status=True)
    raise SerializationError(f"the schema registry rejected {request.url}: {_refusal(response)}")


def _quoted(subject: str) -> str:
    return quote(subject, safe="")


def _refusal(response: "web_requests.WebResponse") -> str:
    try:
        body = json.loads(response.body)
        return f"{body['message']} (error {body['error_code']})"
    except (ValueError, KeyError, TypeError):
        return f"HTTP {response.status}"
