"""The schemas of a registry by id, by subject and version, with the schemas that they refer to."""

from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

from ottla.client.errors import SerializationError
from ottla.client.serdes.registry import Schema, SchemaRegistry

# Of all references of a schema; a registry does not allow cycles, an impostor might.
_REFERENCES_MAX = 200
_SERIALIZED = "?format=serialized"
_PROTOBUF = "PROTOBUF"


class SubjectVersion(NamedTuple):
    """A schema under a subject."""

    subject: str
    version: int
    schema_id: int
    schema: Schema


@dataclass(frozen=True)
class ResolvedSchema:
    """A schema with all schemas that it refers to, by the names of the references. Needed ones
    come first.
    """

    schema: Schema
    references: tuple[tuple[str, Schema], ...] = ()


class SchemaCatalogue(SchemaRegistry):
    """A registry whose subjects and versions are read, too. For any thread: a result that two
    threads request at the same time is the same.
    """

    def subjects(self) -> list[str]:
        """Return the names of all subjects."""
        return sorted(map(str, self._ask("/subjects", None)))

    def versions(self, subject: str) -> list[int]:
        """Return the versions of a subject, oldest first."""
        return sorted(map(int, self._ask(f"/subjects/{quote(subject, safe='')}/versions", None)))

    def version(self, subject: str, version: int | str = "latest") -> SubjectVersion:
        """Return a version of a subject, as its author has written it."""
        return self._version(subject, version, "")

    def resolved(self, schema_id: int) -> ResolvedSchema:
        """Return the schema of an id with its references. Protobuf is in its serialized form."""
        schema = self.schema(schema_id)
        if schema.kind == _PROTOBUF:
            path = f"/schemas/ids/{schema_id}{_SERIALIZED}"
            schema = Schema.from_json(self._ask(path, None))
        return self.with_references(schema)

    def latest(self, subject: str) -> tuple[int, ResolvedSchema]:
        """Return the id of the latest version of a subject, and its schema with references."""
        found = self._version(subject, "latest", "")
        return found.schema_id, self.resolved(found.schema_id)

    def with_references(self, schema: Schema) -> ResolvedSchema:
        """Return a schema with all schemas that it refers to."""
        found: dict[str, Schema] = {}
        self._collect(schema, found, 0)
        return ResolvedSchema(schema, tuple(found.items()))

    def _collect(self, schema: Schema, found: dict[str, Schema], depth: int) -> None:
        if depth > _REFERENCES_MAX or len(found) > _REFERENCES_MAX:
            raise SerializationError(
                f"a schema refers to more than {_REFERENCES_MAX} others, or to itself"
            )
        for reference in schema.references:
            if reference.name in found:
                continue
            suffix = _SERIALIZED if schema.kind == _PROTOBUF else ""
            imported = self._version(reference.subject, reference.version, suffix).schema
            self._collect(imported, found, depth + 1)
            found[reference.name] = imported

    def _version(self, subject: str, version: int | str, suffix: str) -> SubjectVersion:
        path = f"/subjects/{quote(subject, safe='')}/versions/{version}{suffix}"
        body = self._ask(path, None)
        return SubjectVersion(
            str(body["subject"]), int(body["version"]), int(body["id"]), Schema.from_json(body)
        )
