"""An MCP server over the table of operations: JSON-RPC 2.0 over HTTP, without sessions or streams.

Follows the transport "Streamable HTTP" of the Model Context Protocol: each POST has one message,
and the response is one JSON object. `/api/mcp` offers the operations that change nothing;
`/api/mcp/write` offers all that the caller's role allows.

Not done: server-sent streams, resumption, resources, prompts, sampling, and OAuth (callers send the
same credentials as for the REST API).
"""

import json
from typing import Any

import ottla
from ottla.base.errors import OttlaError
from ottla.console.api import gate
from ottla.console.api.answers import body_of, failure_reply, json_reply, page_of, paging_of
from ottla.console.api.errors import Denied, Failure, failure_of
from ottla.console.api.gate import Caller
from ottla.console.api.openapi import input_schema
from ottla.console.api.operations import Operation
from ottla.console.api.table import OPERATIONS
from ottla.console.api.values import to_json
from ottla.console.state import Console
from ottla.console.web.requests import Reply, Request

Json = dict[str, Any]

# The newest first: it is offered to clients that ask for an unknown one.
VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")
_BY_NAME = {operation.name: operation for operation in OPERATIONS}
_INVALID_REQUEST, _METHOD_NOT_FOUND, _INVALID_PARAMS = -32600, -32601, -32602
_INSTRUCTIONS = (
    "Clusters of Ottla or Apache Kafka. Call list_clusters first; its names are the argument `cluster`. "
    "Lists come in pages: pass `next` as `after`. Plans show what a change would do."
)


class _RpcError(Exception):
    """An error of the JSON-RPC layer."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def serve(console: Console, request: Request, *, with_changes: bool) -> Reply:
    """Respond to one JSON-RPC message."""
    try:
        caller = gate.identify(console, request)
        message = body_of(request)
    except Denied as error:
        return failure_reply(error.failure)
    except OttlaError as error:
        return failure_reply(failure_of(error))
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        error_body = {"code": _INVALID_REQUEST, "message": "One JSON-RPC 2.0 object is expected."}
        return json_reply(400, {"jsonrpc": "2.0", "id": None, "error": error_body})
    if "id" not in message:
        # A notification has no response.
        return Reply(202, "", "application/json")
    try:
        result = _call(console, caller, message, with_changes=with_changes)
    except _RpcError as error:
        rpc_error = {"code": error.code, "message": str(error)}
        return json_reply(200, {"jsonrpc": "2.0", "id": message["id"], "error": rpc_error})
    return json_reply(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})


def _call(console: Console, caller: Caller, message: Json, *, with_changes: bool) -> Json:
    method, params = message.get("method"), message.get("params") or {}
    if not isinstance(params, dict):
        raise _RpcError(_INVALID_PARAMS, "The params must be an object.")
    match method:
        case "initialize":
            return _initialize(params)
        case "ping":
            return {}
        case "tools/list":
            offered = [row for row in OPERATIONS if _is_offered(row, caller, with_changes)]
            return {"tools": [_tool(operation) for operation in offered]}
        case "tools/call":
            operation = _BY_NAME.get(str(params.get("name")))
            if operation is None or not _is_offered(operation, caller, with_changes):
                raise _RpcError(_INVALID_PARAMS, f"There is no tool {params.get('name')!r}.")
            arguments = params.get("arguments") or {}
            if not isinstance(arguments, dict):
                raise _RpcError(_INVALID_PARAMS, "The arguments must be an object.")
            return _run(console, caller, operation, dict(arguments))
    raise _RpcError(_METHOD_NOT_FOUND, f"The method {method!r} is not supported.")


def _initialize(params: Json) -> Json:
    version = params.get("protocolVersion")
    return {
        "protocolVersion": version if version in VERSIONS else VERSIONS[0],
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": {"name": "ottla-console", "version": ottla.__version__},
        "instructions": _INSTRUCTIONS,
    }


def _is_offered(operation: Operation, caller: Caller, with_changes: bool) -> bool:
    return caller.role >= operation.role and (with_changes or not operation.is_change)


def _tool(operation: Operation) -> Json:
    return {
        "name": operation.name,
        "title": operation.summary,
        "description": operation.description,
        "inputSchema": input_schema(operation),
        "annotations": {
            "readOnlyHint": not operation.is_change,
            "destructiveHint": operation.is_change,
            "openWorldHint": False,
        },
    }


def _run(console: Console, caller: Caller, operation: Operation, arguments: Json) -> Json:
    try:
        cluster = str(arguments.pop("cluster", "")) if operation.has_cluster else ""
        gate.authorize(console, caller, operation, cluster)
        paging = paging_of(operation, arguments)
        converted = operation.arguments_from_json(arguments)
        result = gate.run(console, caller, operation, cluster, converted)
    except Denied as error:
        return _failed(error.failure)
    except (OttlaError, OSError) as error:
        return _failed(failure_of(error))
    value = page_of(result, paging) if operation.is_list else to_json(result)
    return _content(value, is_error=False)


def _failed(failure: Failure) -> Json:
    return _content(failure.to_json(), is_error=True)


def _content(value: Any, *, is_error: bool) -> Json:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    result: Json = {"content": [{"type": "text", "text": text}], "isError": is_error}
    if isinstance(value, dict):
        result["structuredContent"] = value
    return result
