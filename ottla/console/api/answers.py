"""Responses to requests: from a request and an operation to a reply with JSON."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from ottla.base.errors import ConfigError, OttlaError
from ottla.console.api import gate
from ottla.console.api.errors import Denied, Failure, failure_of
from ottla.console.api.openapi import document
from ottla.console.api.operations import Operation
from ottla.console.api.table import OPERATIONS
from ottla.console.api.values import to_json
from ottla.console.state import Console
from ottla.console.web.requests import Reply, Request

PAGE_MAX = 1000
PAGE_DEFAULT = 100
_JSON = "application/json"


def answer(console: Console, operation: Operation, request: Request) -> Reply:
    """Respond to a request for an operation; blocks until the cluster responds."""
    try:
        caller = gate.identify(console, request)
        cluster = request.params.get("cluster", "")
        gate.authorize(console, caller, operation, cluster)
        query = dict(parse_qsl(request.query, keep_blank_values=True))
        paging = paging_of(operation, query)
        arguments = operation.arguments(request.params, query, body_of(request))
        result = gate.run(console, caller, operation, cluster, arguments)
        return json_reply(200, page_of(result, paging) if operation.is_list else to_json(result))
    except Denied as error:
        return failure_reply(error.failure)
    except (OttlaError, OSError) as error:
        return failure_reply(failure_of(error))


def openapi(console: Console, request: Request) -> Reply:
    """Return the OpenAPI document; it contains nothing about the clusters, so everyone may read it."""
    return json_reply(200, document(OPERATIONS))


def paging_of(operation: Operation, query: dict[str, Any]) -> tuple[int, int]:
    """Remove `limit` and `after` from the parameters of a list; return the page's start and length."""
    if not operation.is_list:
        return 0, 0
    limit, after = query.pop("limit", PAGE_DEFAULT), query.pop("after", None) or 0
    try:
        start, length = int(after), int(limit)
    except (TypeError, ValueError):
        raise ConfigError("limit and after must be numbers") from None
    if not 1 <= length <= PAGE_MAX or start < 0:
        raise ConfigError(f"limit must be 1 to {PAGE_MAX}, and after the `next` of another page")
    return start, length


def page_of(rows: list[Any], paging: tuple[int, int]) -> dict[str, Any]:
    """Return a page of a list, with the `after` of the next one."""
    start, length = paging
    end = start + length
    return {
        "items": [to_json(row) for row in rows[start:end]],
        "total": len(rows),
        "next": str(end) if end < len(rows) else None,
    }


def body_of(request: Request) -> Any:
    """Return the JSON of a request's body, None for an empty one; ConfigError if it is not JSON."""
    if not request.body:
        return None
    # Forms of other sites cannot send this type without asking first (CORS).
    if request.headers.get("content-type", "").partition(";")[0].strip() != _JSON:
        raise ConfigError(f"the body must have the content type {_JSON}")
    try:
        body = json.loads(request.body)
        # SQLite and hashes refuse what a string in JSON may contain: half of a character.
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ConfigError("the body has a lone surrogate, which is not text: remove it") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the body is not JSON: {error}") from None
    return body


def json_reply(status: int, value: Any, headers: Mapping[str, str] | None = None) -> Reply:
    """Return a reply with JSON."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Reply(status, text, _JSON, headers=headers or {})


def failure_reply(failure: Failure) -> Reply:
    """Return a reply with an error."""
    headers = {"retry-after": "3"} if failure.status in (429, 503) else {}
    return json_reply(failure.status, failure.to_json(), headers)
