"""The MCP server: the handshake, the tools of each role, calls and errors."""

from typing import Any

import pytest

from ottla.console.api.table import OPERATIONS
from tests.console.api.conftest import ClientOf

pytestmark = pytest.mark.slow


def _ask(
    client_of: ClientOf, user: str, method: str, path: str = "/api/mcp", **params: Any
) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    response = client_of(user).post(path, json=message)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    assert answer["id"] == 1
    return answer


def test_the_handshake_agrees_on_a_version(client_of: ClientOf) -> None:
    """A known version is accepted; for an unknown one the newest is offered."""
    known = _ask(client_of, "vera", "initialize", protocolVersion="2025-03-26")["result"]
    assert known["protocolVersion"] == "2025-03-26"
    other = _ask(client_of, "vera", "initialize", protocolVersion="1999-01-01")["result"]
    assert other["protocolVersion"] == "2025-06-18"
    assert other["serverInfo"]["name"] == "ottla-console"


def test_notifications_have_no_answer(client_of: ClientOf) -> None:
    """A message without id is acknowledged with 202."""
    message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    response = client_of("vera").post("/api/mcp", json=message)
    assert (response.status_code, response.text) == (202, "")


def test_tools_are_read_only_by_default(client_of: ClientOf) -> None:
    """/api/mcp offers no change, even to an admin; /api/mcp/write offers the changes of the role."""
    tools = _ask(client_of, "ada", "tools/list")["result"]["tools"]
    assert all(tool["annotations"]["readOnlyHint"] for tool in tools)
    names = {tool["name"] for tool in tools}
    assert {"list_clusters", "list_topics", "search_messages", "plan_offsets"} <= names
    assert "delete_topic" not in names
    writing = _ask(client_of, "ada", "tools/list", path="/api/mcp/write")["result"]["tools"]
    assert {tool["name"] for tool in writing} == {operation.name for operation in OPERATIONS}
    viewer = _ask(client_of, "vera", "tools/list", path="/api/mcp/write")["result"]["tools"]
    assert "delete_topic" not in {tool["name"] for tool in viewer}


def test_a_tool_is_called(client_of: ClientOf) -> None:
    """The result is structured content, and the same as text."""
    result = _ask(client_of, "vera", "tools/call", name="list_clusters", arguments={})["result"]
    assert not result["isError"]
    names = [row["name"] for row in result["structuredContent"]["items"]]
    assert names == ["local", "absent", "frozen"]
    arguments = {"cluster": "local", "limit": 1}
    page = _ask(client_of, "vera", "tools/call", name="list_brokers", arguments=arguments)
    assert page["result"]["structuredContent"]["total"] == 1


def test_changes_are_refused_by_the_read_only_endpoint(client_of: ClientOf) -> None:
    """A tool that changes something does not exist at /api/mcp, and works at /api/mcp/write."""
    arguments = {"cluster": "local", "topic": {"name": "by-mcp"}}
    refused = _ask(client_of, "ed", "tools/call", name="create_topic", arguments=arguments)
    assert "create_topic" in refused["error"]["message"]
    response = _ask(
        client_of,
        "ed",
        "tools/call",
        path="/api/mcp/write",
        name="create_topic",
        arguments=arguments,
    )
    assert response["result"]["structuredContent"]["action"] == "topic.create"


def test_errors_of_tools_say_what_to_do(client_of: ClientOf) -> None:
    """An error of the cluster is a result with `isError`, a code and a remedy."""
    arguments = {"cluster": "local", "name": "none"}
    result = _ask(client_of, "vera", "tools/call", name="describe_topic", arguments=arguments)
    error = result["result"]["structuredContent"]["error"]
    assert result["result"]["isError"]
    assert error["code"] == "UNKNOWN_TOPIC_OR_PARTITION"


def test_malformed_messages_are_errors_of_the_protocol(client_of: ClientOf) -> None:
    """Unknown methods and tools, and messages that are not JSON-RPC, have JSON-RPC's codes."""
    assert _ask(client_of, "vera", "resources/list")["error"]["code"] == -32601
    assert _ask(client_of, "vera", "tools/call", name="rm")["error"]["code"] == -32602
    assert client_of("vera").post("/api/mcp", json=[1]).status_code == 400
    assert client_of("").post("/api/mcp", json={}).status_code == 401
