"""The OpenAPI 3.1 document, generated from the table of operations."""

import re
from collections.abc import Sequence
from typing import Any

import ottla
from ottla.console.api.operations import Operation, Parameter, item_type
from ottla.console.api.values import object_schema, schema_of, to_json

Json = dict[str, Any]

_PATH_NAME = re.compile(r"\{([a-z_]+)\}")
_ERROR: Json = {
    "type": "object",
    "description": "An error: a stable code, a sentence, and what to do.",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "remedy", "status"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "remedy": {"type": "string"},
                "status": {"type": "integer"},
            },
        }
    },
}
_PAGING: list[Json] = [
    {
        "name": "limit",
        "in": "query",
        "description": "The number of elements in a page.",
        "schema": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
    },
    {
        "name": "after",
        "in": "query",
        "description": "The field `next` of the page before.",
        "schema": {"type": "string"},
    },
]


class Schemas:
    """The schemas of dataclasses, by name; the first use of a class adds it."""

    def __init__(self) -> None:
        self.found: dict[str, Json] = {}
        self._names: dict[type, str] = {}

    def refer(self, kind: type) -> Json:
        """Return a reference to the schema of a dataclass."""
        if kind not in self._names:
            name = kind.__name__
            if name in self.found:
                name = kind.__module__.rpartition(".")[2].title() + name
            self._names[kind] = name
            # Reserved first: a class may contain itself.
            self.found[name] = {}
            self.found[name] = object_schema(kind, self.refer)
        return {"$ref": f"#/components/schemas/{self._names[kind]}"}


def document(operations: Sequence[Operation]) -> Json:
    """Return the document of these operations."""
    schemas = Schemas()
    paths: dict[str, Json] = {}
    for operation in operations:
        item = paths.setdefault(operation.full_path, {})
        item[operation.method.lower()] = _operation(operation, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Ottla Console",
            "version": ottla.__version__,
            "description": "Everything that the pages of the console do, for Ottla and Apache Kafka.",
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"basic": []}, {"session": []}],
        "tags": [{"name": tag} for tag in dict.fromkeys(row.tag for row in operations)],
        "paths": paths,
        "components": {
            "schemas": {**schemas.found, "Error": _ERROR},
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "session": {"type": "apiKey", "in": "cookie", "name": "ottla_session"},
            },
        },
    }


def input_schema(operation: Operation) -> Json:
    """Return one self-contained schema of all parameters, as MCP describes tools."""
    schemas = Schemas()
    properties: Json = {}
    required = []
    if operation.has_cluster:
        properties["cluster"] = {"type": "string", "description": "The name of a cluster."}
        required.append("cluster")
    for row in operation.parameters:
        properties[row.name] = _with_default(row, schemas)
        if row.is_required:
            required.append(row.name)
    if operation.is_list:
        for paging in _PAGING:
            properties[paging["name"]] = paging["schema"]
    schema: Json = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    if schemas.found:
        schema = _relocated({**schema, "$defs": schemas.found})
    return schema


def _operation(operation: Operation, schemas: Schemas) -> Json:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PATH_NAME.findall(operation.path)
        if name == "cluster"
    ]
    parameters += [
        {
            "name": row.name,
            "in": row.location,
            "required": row.is_required,
            "schema": _with_default(row, schemas),
            **_style(row),
        }
        for row in operation.parameters
        if row.location != "body"
    ]
    if operation.is_list:
        parameters += _PAGING
    fields: Json = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": operation.description,
        "tags": [operation.tag],
        "x-role": operation.role.label,
        "parameters": parameters,
        "responses": {
            "200": _content("The result.", _result_schema(operation, schemas)),
            "default": _content("An error.", {"$ref": "#/components/schemas/Error"}),
        },
    }
    if operation.body:
        body = _body_schema(operation.body, schemas)
        fields["requestBody"] = {
            "required": bool(body["required"]),
            "content": {"application/json": {"schema": body}},
        }
    return fields


def _style(row: Parameter) -> Json:
    # Several values of a parameter are separated by commas.
    return {"style": "form", "explode": False} if row.location == "query" else {}


def _content(description: str, schema: Json) -> Json:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _with_default(row: Parameter, schemas: Schemas) -> Json:
    schema = schema_of(row.hint, schemas.refer)
    return schema if row.is_required else {**schema, "default": to_json(row.default)}


def _body_schema(rows: Sequence[Parameter], schemas: Schemas) -> Json:
    return {
        "type": "object",
        "properties": {row.name: _with_default(row, schemas) for row in rows},
        "required": [row.name for row in rows if row.is_required],
        "additionalProperties": False,
    }


def _result_schema(operation: Operation, schemas: Schemas) -> Json:
    if not operation.is_list:
        return schema_of(operation.result, schemas.refer)
    return {
        "type": "object",
        "required": ["items", "total", "next"],
        "properties": {
            "items": {"type": "array", "items": schema_of(item_type(operation), schemas.refer)},
            "total": {"type": "integer"},
            "next": {"type": ["string", "null"]},
        },
    }


def _relocated(value: Any) -> Any:
    """Return a schema whose references point into itself and not into a document."""
    if isinstance(value, dict):
        return {
            key: item.replace("#/components/schemas/", "#/$defs/")
            if key == "$ref"
            else _relocated(item)
            for key, item in value.items()
        }
    return [_relocated(item) for item in value] if isinstance(value, list) else value
