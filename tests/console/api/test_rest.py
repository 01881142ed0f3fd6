"""The REST API: the operations against a cluster, roles, errors, pages, and the OpenAPI document."""

from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from starlette.routing import Route

from ottla.console.api.openapi import document
from ottla.console.api.routes import api_routes
from ottla.console.api.table import OPERATIONS
from ottla.console.state import Console
from tests.console.api.conftest import ClientOf

pytestmark = pytest.mark.slow

_LOCAL = "/api/v1/clusters/local"


def _create(client_of: ClientOf, name: str, **fields: Any) -> None:
    response = client_of("ed").post(f"{_LOCAL}/topics", json={"topic": {"name": name, **fields}})
    assert response.status_code == 200, response.text


@pytest.mark.slow
def test_the_document_is_valid_openapi() -> None:
    """The generated document follows OpenAPI 3.1."""
    # The validator resolves every reference, which takes seconds; generators of clients rely on it.
    assert list(OpenAPIV31SpecValidator(document(OPERATIONS)).iter_errors()) == []


def test_every_route_is_in_the_document(console: Console) -> None:
    """Each route below /api/v1 is documented with its method and role, and nothing else is."""
    routes = {
        (route.path, method)
        for route in api_routes(console)
        if isinstance(route, Route) and route.path.startswith("/api/v1")
        for method in (route.methods or set()) - {"HEAD"}
    }
    documented = {
        (path, method.upper())
        for path, item in document(OPERATIONS)["paths"].items()
        for method in item
    }
    assert documented == routes
    assert len({operation.name for operation in OPERATIONS}) == len(OPERATIONS)


def test_the_document_is_served_without_credentials(client_of: ClientOf) -> None:
    """A generator of clients can read the document; it contains nothing of the clusters."""
    response = client_of("").get("/api/openapi.json")
    assert response.status_code == 200
    assert response.json()["openapi"] == "3.1.0"
    assert "local" not in response.json()["paths"]


def test_requests_without_credentials_are_rejected(client_of: ClientOf) -> None:
    """Every operation needs a user; the error says how to authenticate."""
    for operation in OPERATIONS:
        path = operation.full_path.replace("{", "").replace("}", "")
        response = client_of("").request(operation.method, path)
        assert response.status_code == 401, operation.name
    assert "Basic" in response.json()["error"]["remedy"]


def test_roles_are_enforced(client_of: ClientOf) -> None:
    """A caller below an operation's role is refused before the cluster is contacted."""
    viewer = client_of("vera")
    for operation in OPERATIONS:
        path = operation.full_path.replace("{cluster}", "absent").replace("{", "").replace("}", "")
        response = viewer.request(operation.method, path)
        is_refused = response.status_code == 403
        assert is_refused == (operation.role.label != "viewer"), (operation.name, response.text)


def test_a_new_password_is_demanded_first(client_of: ClientOf) -> None:
    """A user with an initial password cannot use the API."""
    response = client_of("newcomer").get("/api/v1/clusters")
    assert response.json()["error"]["code"] == "PASSWORD_EXPIRED"


def test_requests_of_other_sites_are_rejected(client_of: ClientOf) -> None:
    """A browser's request from another origin is refused, whatever its credentials."""
    headers = {"sec-fetch-site": "cross-site"}
    response = client_of("ada").get("/api/v1/clusters", headers=headers)
    assert response.json()["error"]["code"] == "CROSS_SITE"


def test_a_session_needs_the_csrf_token_for_changes(console: Console, client_of: ClientOf) -> None:
    """With a session cookie, a change without the token is refused; with it, it is made."""
    client = client_of("")
    token = console.sessions.open("ed")
    session = console.sessions.find(token)
    assert session is not None
    headers = {"cookie": f"ottla_session={token}"}
    body = {"topic": {"name": "by-session"}}
    refused = client.post(f"{_LOCAL}/topics", json=body, headers=headers)
    assert refused.json()["error"]["code"] == "CSRF"
    headers["x-csrf-token"] = session.csrf
    assert client.post(f"{_LOCAL}/topics", json=body, headers=headers).status_code == 200


def test_clusters_are_listed(client_of: ClientOf) -> None:
    """The names of the clusters are the start of everything else."""
    names = [row["name"] for row in client_of("vera").get("/api/v1/clusters").json()["items"]]
    assert names == ["local", "absent", "frozen"]


def test_a_topic_lives_over_the_api(console: Console, client_of: ClientOf) -> None:
    """Create, read, produce, browse, alter and delete; each change is in the audit log."""
    _create(client_of, "orders", partitions=2, config={"retention.ms": "3600000"})
    client = client_of("ed")
    topic = f"{_LOCAL}/topics/orders"
    record = {"topic": "orders", "value": '{"n":{{n}}}', "count": 20, "has_templates": True}
    produced = client.post(f"{topic}/messages", json={"request": record}).json()
    assert produced["records"] == 20
    assert client.get(topic).json()["row"]["records"] == 20
    document = client.get(f"{topic}/messages", params={"seek": "oldest", "limit": 5}).json()
    assert len(document["rows"]) == 5
    assert document["next_positions"]
    condition = {
        "field": "value",
        "operator": "json-path",
        "path": "$.n",
        "comparison": ">=",
        "text": "15",
    }
    request = {"topic": "orders", "seek": "oldest", "conditions": [condition]}
    searched = client.post(f"{topic}/messages/search", json={"request": request}).json()
    assert len(searched["rows"]) == 5
    assert searched["ended_by"] == "end"
    request = {"topic": "orders", "seek": "oldest", "where": "$.n >= 15 and not $.n == 17"}
    by_text = client.post(f"{topic}/messages/search", json={"request": request}).json()
    assert len(by_text["rows"]) == 4
    changed = client.patch(f"{topic}/config", json={"assign": {"retention.ms": "7200000"}}).json()
    assert changed["after"] == {"retention.ms": "7200000"}
    wrong = client.delete(topic, params={"confirmation": "other"})
    assert wrong.json()["error"]["code"] == "INVALID_ARGUMENT"
    assert client.delete(topic, params={"confirmation": "orders"}).status_code == 200
    actions = [row.action for row in console.audit.entries()]
    assert {"topic.create", "topic.produce", "topic.alter-config", "topic.delete"} <= set(actions)


def test_lists_come_in_pages(client_of: ClientOf) -> None:
    """`next` of a page is `after` of the following one; the last page has no `next`."""
    for number in range(5):
        _create(client_of, f"page-{number}")
    client = client_of("vera")
    names, after = [], ""
    while after is not None:
        query = {"contains": "page-", "limit": 2, "after": after}
        page = client.get(f"{_LOCAL}/topics", params=query).json()
        assert page["total"] == 5
        names += [row["name"] for row in page["items"]]
        after = page["next"]
    assert names == [f"page-{number}" for number in range(5)]


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/api/v1/clusters/nowhere/topics", 404, "UNKNOWN_CLUSTER"),
        ("GET", "/api/v1/clusters/absent/overview", 503, "CLUSTER_UNAVAILABLE"),
        ("GET", f"{_LOCAL}/topics/none", 404, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("GET", f"{_LOCAL}/groups/none", 404, "GROUP_ID_NOT_FOUND"),
        ("GET", f"{_LOCAL}/brokers/77", 404, "BROKER_NOT_AVAILABLE"),
        ("GET", f"{_LOCAL}/brokers/x", 400, "INVALID_ARGUMENT"),
        ("GET", f"{_LOCAL}/topics?limit=0", 400, "INVALID_ARGUMENT"),
        ("GET", f"{_LOCAL}/topics?colour=red", 400, "INVALID_ARGUMENT"),
        ("GET", f"{_LOCAL}/zookeeper", 400, "INVALID_ARGUMENT"),
        ("POST", f"{_LOCAL}/topics", 400, "INVALID_ARGUMENT"),
        ("POST", "/api/v1/clusters/frozen/topics", 403, "READ_ONLY"),
    ],
)
def test_errors_have_a_code_and_a_remedy(
    client_of: ClientOf, method: str, path: str, status: int, code: str
) -> None:
    """Each error has a stable code, a sentence and what to do."""
    response = client_of("ada").request(method, path)
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (status, code)
    assert error["message"]
    assert error["remedy"].endswith(".")


@pytest.mark.parametrize("body", ["{", "[]", '"x"', '{"topic": {"name": 7}}', '{"topic": {}}'])
def test_malformed_bodies_are_rejected(client_of: ClientOf, body: str) -> None:
    """A body that is not JSON, or of another shape, is an error of the caller."""
    headers = {"content-type": "application/json"}
    response = client_of("ed").post(f"{_LOCAL}/topics", content=body, headers=headers)
    assert response.json()["error"]["code"] == "INVALID_ARGUMENT"


def test_forms_of_browsers_are_rejected(client_of: ClientOf) -> None:
    """A body must be declared as JSON, which other sites cannot do without asking."""
    response = client_of("ed").post(f"{_LOCAL}/topics", content='{"topic": {"name": "x"}}')
    assert "application/json" in response.json()["error"]["message"]


def test_offsets_are_planned_executed_and_undone(console: Console, client_of: ClientOf) -> None:
    """A plan shows the differences; it is executed as shown, and undone."""
    _create(client_of, "billed")
    client = client_of("ed")
    record = {"topic": "billed", "value": "x", "count": 10}
    client.post(f"{_LOCAL}/topics/billed/messages", json={"request": record})
    offsets = f"{_LOCAL}/groups/billing/offsets"
    body = {"strategy": "to-offset", "value": "4", "partitions": [["billed", 0]]}
    plan = client.post(f"{offsets}/plan", json=body).json()
    assert plan["differences"][0]["after"] == 4
    assert client.post(f"{offsets}/execute", json={"plan": plan}).status_code == 200
    again = client.post(f"{offsets}/execute", json={"plan": plan})
    assert again.json()["error"]["code"] == "PLAN_OUTDATED"
    group = client.get(f"{_LOCAL}/groups/billing").json()
    assert (group["lag"], group["partitions"][0]["committed"]) == (6, 4)
    assert client.post(f"{offsets}/undo", json={"plan": plan}).status_code == 200
    rows = client.get(f"{_LOCAL}/groups").json()["items"]
    assert all(row["lag"] is None for row in rows)


def test_text_with_half_a_character_is_refused(client_of: ClientOf) -> None:
    """The API refuses a lone surrogate, which no database and no hash of a password takes."""
    for path, name in (("/users/u", "password"), ("/alerts/silences", "comment")):
        method = "PUT" if name == "password" else "POST"
        target = f"{_LOCAL}{path}" if method == "PUT" else f"/api/v1{path}"
        body = f'{{"minutes": 1, "{name}": "\\ud800"}}'
        headers = {"content-type": "application/json"}
        response = client_of("ada").request(method, target, content=body, headers=headers)
        assert response.status_code == 400, response.text
        assert "lone surrogate" in response.json()["error"]["message"]
