"""Users with rights in some clusters and topics: pages, forms, SQL, downloads, API and MCP."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.console.accounts.rights import Right
from ottla.console.accounts.roles import Role
from ottla.console.server import ConsoleServer
from ottla.console.state import ConsoleSettings
from ottla.operations.survey.connections import ClusterSettings
from ottla.testing import Cluster
from tests.console.session import PASSWORD, ConsoleSession, PageResponse

pytestmark = pytest.mark.slow
ORDERS, PAYMENTS = "/c/local/topics/orders", "/c/local/topics/payments"


@pytest.fixture(scope="module")
def console(cluster: Cluster) -> Iterator[ConsoleServer]:
    """Return a console of two clusters, with a user whose right is for the topic orders only."""
    clusters = tuple(ClusterSettings(name, cluster.bootstrap) for name in ("local", "other"))
    settings = ConsoleSettings(
        clusters, ":memory:", port=0, first_password=PASSWORD, timeout_s=3, sample_s=3600
    )
    server = ConsoleServer(settings)
    server.start()
    for name in ("ann", "ben"):
        server.console.users.create(name, PASSWORD, Role.VIEWER, must_change=False)
    server.console.rights.add("ann", Right("local", "orders.*", Role.EDITOR))
    yield server
    server.stop()


@pytest.fixture
def ann(console: ConsoleServer) -> ConsoleSession:
    """Return a session of the restricted user."""
    session = ConsoleSession(console.url)
    session.login("ann", PASSWORD)
    return session


def call(session: ConsoleSession, method: str, path: str, body: Any = None) -> PageResponse:
    """Call the API with the password of the restricted user."""
    secret = base64.b64encode(f"ann:{PASSWORD}".encode()).decode()
    headers = {"authorization": f"Basic {secret}", "content-type": "application/json"}
    plain = ConsoleSession(f"http://{session.address}")
    return plain.request(method, path, "" if body is None else json.dumps(body), headers)


def test_pages_of_other_clusters_and_topics_are_refused(ann: ConsoleSession) -> None:
    """The own topic has the role of the right; the rest of the cluster may be seen only."""
    assert ann.get(f"{ORDERS}/messages").status == 200
    assert "Send again" in ann.get(f"{ORDERS}/messages").text
    for path in (
        f"{PAYMENTS}/messages", f"{PAYMENTS}/messages/0/0", f"{PAYMENTS}/settings", PAYMENTS,
        f"{PAYMENTS}/messages.csv", f"{PAYMENTS}/messages.jsonl", f"{PAYMENTS}/search.events",
        f"{PAYMENTS}/tail.events", "/c/other/overview", "/c/other/topics/orders/messages",
        "/c/other/sql", "/c/other/search.json",
    ):  # fmt: skip
        assert ann.get(path).status == 403, path
    assert ann.get("/c/local/topics").status == 200
    assert ann.get("/c/local/groups").status == 200
    start = ann.get("/").text
    assert "/c/local/overview" in start
    assert "/c/other/overview" not in start
    assert ann.get("/users").status == 403


def test_changes_need_the_right_for_each_topic_that_a_form_names(ann: ConsoleSession) -> None:
    """Neither a copy nor a record leaves the topics of the right, and the cluster is not changed."""
    record = {"value": "x", "value_format": "text", "key_format": "null"}
    assert "is written" in ann.post(f"{ORDERS}/produce", "send", record).notice
    elsewhere = ann.post(f"{ORDERS}/produce", "send", {**record, "topic": "payments"})
    assert elsewhere.status == 403
    assert ann.post(ORDERS, "copy", {"target": "payments.copy"}).status == 403
    assert ann.post("/c/local/topics/new", "create", {"name": "orders.new"}).status == 403
    assert (
        ann.post("/c/local/group?id=billing", "delete", {"confirmation": "billing"}).status == 403
    )
    assert ann.post(f"{PAYMENTS}/produce", "send", record).status == 403


def test_sql_reads_the_topics_of_the_right_only(ann: ConsoleSession) -> None:
    """Also in a subquery."""
    allowed = ann.post("/c/local/sql", "run", {"sql": "SELECT count(*) AS n FROM orders"})
    assert (allowed.status, allowed.alert) == (200, "")
    hidden = "SELECT (SELECT max(_value) FROM payments) FROM orders LIMIT 1"
    assert (
        "no right for the topic 'payments'"
        in ann.post("/c/local/sql", "run", {"sql": hidden}).alert
    )


def test_the_api_has_the_same_rights(ann: ConsoleSession) -> None:
    """The topic in the body counts, too; operations of no cluster are refused; MCP is the same."""
    base = "/api/v1/clusters/local/topics"
    assert call(ann, "GET", f"{base}/orders/messages?seek=oldest&limit=1").status == 200
    for method, path, body in (
        ("GET", f"{base}/payments/messages?seek=oldest", None),
        ("POST", f"{base}/orders/messages/search", {"request": {"topic": "payments"}}),
        ("GET", "/api/v1/clusters/other/topics", None),
        ("GET", "/api/v1/alerts/incidents", None),
        ("POST", "/api/v1/clusters/local/topics", {"topic": {"name": "orders.new"}}),
    ):
        assert call(ann, method, path, body).status == 403, path
    assert call(ann, "GET", "/api/v1/clusters/local/groups").status == 200
    message = {
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {
            "name": "read_messages",
            "arguments": {"cluster": "local", "topic": "payments", "seek": "oldest"},
        },
    }  # fmt: skip
    text = call(ann, "POST", "/api/mcp", message).text
    assert "FORBIDDEN" in text


def test_rights_are_added_and_deleted_by_admins_and_audited(console: ConsoleServer) -> None:
    """A wrong pattern, an unknown user or cluster, and the role admin are refused."""
    admin = ConsoleSession(console.url)
    admin.login("admin", PASSWORD)
    form = {"name": "ben", "right_cluster": "other", "right_topics": "a.*", "role": "viewer"}
    assert admin.post("/users", "add-right", form).notice == "The right of ben is added."
    ben = ConsoleSession(console.url)
    ben.login("ben", PASSWORD)
    assert ben.get("/c/local/overview").status == 403
    assert ben.get("/c/other/overview").status == 200
    for change, reason in (
        ({"right_topics": "("}, "regular expression"),
        ({"name": "absent"}, "no user"),
        ({"right_cluster": "absent"}, "no cluster"),
        ({"role": "admin"}, "viewer or editor"),
    ):
        assert reason in admin.post("/users", "add-right", form | change).alert
    (stored,) = [row for row in console.console.rights.all() if row.user == "ben"]
    admin.post("/users", "delete-right", {"right": stored.id})
    assert ben.get("/c/local/overview").status == 200
    actions = [row.action for row in console.console.audit.entries(text="right.")]
    assert actions.count("right.add") == 5
    assert actions.count("right.delete") == 1
    console.console.rights.add("ben", stored.right)
    console.console.users.delete("ben")
    assert [row for row in console.console.rights.all() if row.user == "ben"] == []
