"""A schema registry client: schemas by id and ids by schema, with a cache.

Follows the REST interface of Confluent's registry, which other registries implement, too.
"""

import base64
import json
from collections.abc import Mapping
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


@dataclass
class SchemaRegistry:
    """A registry at a URL; `user` and `password` are for registries with authentication.

    Results are cached, as the schema of an id never changes.
    """

    url: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    timeout_s: float = _TIMEOUT_S
    _ids: dict[tuple[str, Schema], int] = field(default_factory=dict, repr=False)
    _places: dict[tuple[str, Schema], tuple[int, int]] = field(default_factory=dict, repr=False)
    _schemas: dict[int, Schema] = field(default_factory=dict, repr=False)

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

    def _ask(self, path: str, body: dict[str, Any] | None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": _CONTENT, "Content-Type": _CONTENT}
        if self.user is not None:
            secret = base64.b64encode(f"{self.user}:{self.password or ''}".encode()).decode()
            headers["Authorization"] = f"Basic {secret}"
        request = web_requests.WebRequest(self._place(path), data, headers)
        try:
            response = web_requests.send(
                request, timeout_s=self.timeout_s, bytes_max=_RESPONSE_BYTES_MAX
            )
            if response.status == _OK:
                return json.loads(response.body)
        except (OSError, ValueError) as error:
            raise SerializationError(
                f"the schema registry at {self.url} did not respond: {error}; check the address"
            ) from error
        raise SerializationError(
            f"the schema registry at {self.url} rejected {path}: {_refusal(response)}"
        )

    def _place(self, path: str) -> str:
        if not self.url.startswith(("http://", "https://")):
            raise SerializationError(
                f"a schema registry's address must begin with http:// or https://, not {self.url!r}"
            )
        return self.url.rstrip("/") + path


def _quoted(subject: str) -> str:
    return quote(subject, safe="")


def _refusal(response: "web_requests.WebResponse") -> str:
    try:
        body = json.loads(response.body)
        return f"{body['message']} (error {body['error_code']})"
    except (ValueError, KeyError, TypeError):
        return f"HTTP {response.status}"
