"""The schemas of a registry in memory: subjects, versions, compatibility and modes.

Follows Confluent's schema registry: ids are global, a soft-deleted version keeps its number, and a
permanently deleted one is forgotten. Error codes are the registry's.

Not done: contexts other than the default, metadata and rules of data contracts, normalization.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ottla.streams.model.errors import SerializationError
from ottla.streams.serdes import Schema, SchemaReference
from ottla.testing.schema_registry.compatibility import (
    CompatibilityLevel,
    incompatibilities,
    refuse_invalid,
)

LATEST = ("latest", "-1")
MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT")
_NOT_FOUND, _CONFLICT, _INVALID = 404, 409, 422

T = TypeVar("T")


class RegistryError(SerializationError):
    """A request that the registry refuses: the HTTP status and the registry's error code."""

    def __init__(self, status: int, code: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.code = code


@dataclass
class RegisteredVersion:
    """A version of a subject."""

    number: int
    schema_id: int
    is_deleted: bool = False


class SchemaStore:
    """The state of a registry. Methods may be called from any thread."""

    def __init__(self, compatibility: str = CompatibilityLevel.BACKWARD) -> None:
        self._schemas: dict[int, Schema] = {}
        self._subjects: dict[str, list[RegisteredVersion]] = {}
        self._levels: dict[str | None, CompatibilityLevel] = {None: level_of(compatibility)}
        self._modes: dict[str | None, str] = {None: MODES[0]}
        self._lock = threading.RLock()

    # -- schemas ----------------------------------------------------------------------------------

    def register(
        self, subject: str, schema: Schema, *, schema_id: int = -1, version: int = -1
    ) -> int:
        """Register a schema under a subject if it is new, and return its id.

        `schema_id` and `version` are chosen by clients in the mode IMPORT only. A test may register
        a text that is no schema; over HTTP, `refuse_invalid` comes first.
        """
        with self._lock:
            mode = self.mode(subject, with_global=True)
            registered = self._find(subject, schema)
            if registered is not None and schema_id in (-1, registered.schema_id):
                return registered.schema_id
            if mode.startswith("READONLY") or (mode == "IMPORT") != (schema_id >= 0):
                raise RegistryError(_INVALID, 42205, f"Subject {subject} is in {mode.lower()} mode")
            if mode != "IMPORT":
                problems = self.problems(subject, schema)
                if problems:
                    raise RegistryError(
                        _CONFLICT,
                        _CONFLICT,
                        "Schema being registered is incompatible with an earlier schema for "
                        f'subject "{subject}", details: {problems}',
                    )
            known = next((key for key, other in self._schemas.items() if other == schema), None)
            number = schema_id if schema_id >= 0 else known or max(self._schemas, default=0) + 1
            if self._schemas.get(number, schema) != schema:
                raise RegistryError(
                    _INVALID, 42205, f"Overwrite new schema with id {number} is not permitted."
                )
            self._schemas[number] = schema
            versions = self._subjects.setdefault(subject, [])
            following = max((row.number for row in versions), default=0) + 1
            versions.append(RegisteredVersion(version if version >= 0 else following, number))
            return number

    def lookup(self, subject: str, schema: Schema, *, deleted: bool = False) -> tuple[int, int]:
        """Return id and version of a schema that is registered under a subject."""
        self.rows(subject, deleted=deleted)
        row = self._find(subject, schema, deleted=deleted)
        if row is None:
            raise RegistryError(_NOT_FOUND, 40403, "Schema not found")
        return row.schema_id, row.number

    def schema(self, schema_id: int) -> Schema:
        """Return the schema with this id."""
        if schema_id not in self._schemas:
            raise RegistryError(_NOT_FOUND, 40403, f"Schema {schema_id} not found")
        return self._schemas[schema_id]

    def version(
        self, subject: str, version: str, *, deleted: bool = False
    ) -> tuple[int, int, Schema]:
        """Return id, version and schema of a subject's version; "latest" is the newest version."""
        row = self._row(subject, version, deleted=deleted)
        return row.schema_id, row.number, self.schema(row.schema_id)

    def referenced(self, reference: SchemaReference) -> Schema:
        """Return the schema that another one refers to."""
        return self.version(reference.subject, str(reference.version), deleted=True)[2]

    def referenced_by(self, subject: str, version: str) -> list[int]:
        """Return the ids of the schemas that refer to a version."""
        number = self._row(subject, version).number
        live = {row.schema_id for rows in self._subjects.values() for row in _live(rows)}
        return sorted(
            key
            for key, schema in self._schemas.items()
            if key in live and (subject, number) in _targets(schema)
        )

    def uses_of(self, schema_id: int, *, deleted: bool = False) -> list[tuple[str, int]]:
        """Return the subjects and versions that have a schema."""
        self.schema(schema_id)
        return [
            (subject, row.number)
            for subject, rows in sorted(self._subjects.items())
            for row in rows
            if row.schema_id == schema_id and (deleted or not row.is_deleted)
        ]

    def refuse_invalid(self, schema: Schema) -> None:
        """Raise RegistryError if a schema cannot be parsed, or refers to one that does not exist."""
        self._valid(lambda: refuse_invalid(schema, self.referenced))

    # -- subjects ---------------------------------------------------------------------------------

    @property
    def subjects(self) -> dict[str, list[int]]:
        """The schema ids of each subject, by version; without deleted ones."""
        return {
            name: [row.schema_id for row in _live(rows)]
            for name, rows in self._subjects.items()
            if _live(rows)
        }

    def subject_names(self, *, prefix: str = "", deleted: bool = False) -> list[str]:
        """Return the names of the subjects, sorted."""
        names = self._subjects if deleted else self.subjects
        return sorted(name for name in names if name.startswith(prefix))

    def rows(self, subject: str, *, deleted: bool = False) -> list[RegisteredVersion]:
        """Return the versions of a subject."""
        rows = self._subjects.get(subject, [])
        chosen = rows if deleted else _live(rows)
        if not chosen:
            raise RegistryError(_NOT_FOUND, 40401, f"Subject '{subject}' not found.")
        return chosen

    def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        """Delete a subject, softly first; return the numbers of its versions."""
        with self._lock:
            rows = self.rows(subject, deleted=True)
            live = _live(rows)
            if permanent and live:
                text = f"Subject '{subject}' was not deleted first before being permanently deleted"
                raise RegistryError(_NOT_FOUND, 40405, text)
            if not permanent and not live:
                text = f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently"
                raise RegistryError(_NOT_FOUND, 40404, text)
            for row in live:
                self._refuse_referenced(subject, row)
            numbers = [row.number for row in (rows if permanent else live)]
            if permanent:
                del self._subjects[subject]
            for row in live:
                row.is_deleted = True
            self._levels.pop(subject, None)
            self._modes.pop(subject, None)
            return numbers

    def delete_version(self, subject: str, version: str, *, permanent: bool = False) -> int:
        """Delete a version, softly first; return its number."""
        with self._lock:
            row = self._row(subject, version, deleted=True)
            name = f"Subject '{subject}' Version {row.number}"
            if permanent and not row.is_deleted:
                text = f"{name} was not deleted first before being permanently deleted"
                raise RegistryError(_NOT_FOUND, 40407, text)
            if not permanent and row.is_deleted:
                text = f"{name} was soft deleted. Set permanent=true to delete permanently"
                raise RegistryError(_NOT_FOUND, 40406, text)
            if permanent:
                self._subjects[subject].remove(row)
                if not self._subjects[subject]:
                    del self._subjects[subject]
            else:
                self._refuse_referenced(subject, row)
                row.is_deleted = True
            return row.number

    # -- compatibility and modes ------------------------------------------------------------------

    def problems(self, subject: str, schema: Schema, version: str | None = None) -> list[str]:
        """Return why a schema is not compatible with a subject, or with one version of it."""
        level = CompatibilityLevel(self.level(subject, with_global=True))
        if version is None:
            rows: Sequence[RegisteredVersion] = _live(self._subjects.get(subject, []))
        else:
            rows = [self._row(subject, version)]
        former = [self.schema(row.schema_id) for row in rows]
        return self._valid(lambda: incompatibilities(schema, former, level, self.referenced))

    def level(self, subject: str | None = None, *, with_global: bool = False) -> str:
        """Return the compatibility level of a subject, or the global one."""
        found = self._levels.get(subject, self._levels[None] if with_global else None)
        if found is None:
            text = f"Subject '{subject}' does not have subject-level compatibility configured"
            raise RegistryError(_NOT_FOUND, 40408, text)
        return found.value

    def set_level(self, level: str, subject: str | None = None) -> None:
        """Set the compatibility level of a subject, or the global one."""
        self._levels[subject] = level_of(level)

    def delete_level(self, subject: str | None = None) -> str:
        """Remove the level of a subject, or reset the global one; return the former one."""
        former = self.level(subject)
        del self._levels[subject]
        self._levels.setdefault(None, CompatibilityLevel.BACKWARD)
        return former

    def mode(self, subject: str | None = None, *, with_global: bool = False) -> str:
        """Return the mode of a subject, or the global one."""
        if self._modes[None] == "READONLY_OVERRIDE":
            return self._modes[None]
        found = self._modes.get(subject, self._modes[None] if with_global else None)
        if found is None:
            text = f"Subject '{subject}' does not have subject-level mode configured"
            raise RegistryError(_NOT_FOUND, 40409, text)
        return found

    def set_mode(self, mode: str, subject: str | None = None, *, force: bool = False) -> None:
        """Set the mode of a subject, or the global one; IMPORT needs an empty subject or `force`."""
        if mode not in MODES:
            raise RegistryError(
                _INVALID, 42204, f"Invalid mode. Valid values are {', '.join(MODES)}"
            )
        used = self.subjects if subject is None else self.subjects.get(subject)
        if mode == "IMPORT" and used and not force:
            raise RegistryError(
                _INVALID, 42205, "Cannot import since found existing subjects: use force=true"
            )
        self._modes[subject] = mode

    def delete_mode(self, subject: str | None = None) -> str:
        """Remove the mode of a subject, or reset the global one; return the former one."""
        former = self.mode(subject)
        del self._modes[subject]
        self._modes.setdefault(None, MODES[0])
        return former

    # -- inside -----------------------------------------------------------------------------------

    def _find(
        self, subject: str, schema: Schema, *, deleted: bool = False
    ) -> RegisteredVersion | None:
        rows = self._subjects.get(subject, [])
        chosen = rows if deleted else _live(rows)
        return next((row for row in chosen if self._schemas[row.schema_id] == schema), None)

    def _row(self, subject: str, version: str, *, deleted: bool = False) -> RegisteredVersion:
        rows = self.rows(subject, deleted=deleted)
        if version in LATEST:
            return rows[-1]
        if not version.isdecimal() or version == "0":
            text = (
                f"The specified version '{version}' is not a valid version id. Allowed values are "
                'between [1, 2^31-1] and the string "latest"'
            )
            raise RegistryError(_INVALID, 42202, text)
        row = next((row for row in rows if row.number == int(version)), None)
        if row is None:
            raise RegistryError(_NOT_FOUND, 40402, f"Version {version} not found.")
        return row

    def _valid(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except (RegistryError, ValueError, KeyError, TypeError) as error:
            raise RegistryError(_INVALID, 42201, f"Invalid schema: {error}") from error

    def _refuse_referenced(self, subject: str, row: RegisteredVersion) -> None:
        if self.referenced_by(subject, str(row.number)):
            raise RegistryError(
                _INVALID,
                42206,
                f"One or more references exist to the schema {subject}:{row.number}.",
            )


def level_of(text: str) -> CompatibilityLevel:
    """Return a level by its name; RegistryError for another text."""
    try:
        return CompatibilityLevel(text)
    except ValueError as error:
        names = ", ".join(CompatibilityLevel)
        raise RegistryError(
            _INVALID, 42203, f"Invalid compatibility level. Valid values are {names}"
        ) from error


def _live(rows: Sequence[RegisteredVersion]) -> list[RegisteredVersion]:
    return [row for row in rows if not row.is_deleted]


def _targets(schema: Schema) -> set[tuple[str, int]]:
    return {(reference.subject, reference.version) for reference in schema.references}
