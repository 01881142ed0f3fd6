"""Masks follow the data: whatever shows or moves masked records masks them, or is refused."""

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from ottla.console.accounts.roles import Role
from ottla.console.api.table import OPERATIONS
from ottla.console.app import PAGES, SOURCES
from ottla.console.model.messages.masking import MaskingRule
from ottla.console.server import ConsoleServer
from ottla.testing import Cluster
from tests.console.session import PASSWORD, ConsoleSession

SECRET = "4000-1234-5678"
TOPIC = "accounts"
_COPY = f"/c/local/topics/{TOPIC}"
_API = "/api/v1/clusters/local/topics"


@pytest.fixture(scope="module", autouse=True)
def records(cluster: Cluster) -> None:
    """Write records whose key, value and header have the secret."""
    cluster.create_topic(TOPIC)
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(3):
        value = json.dumps({"card": SECRET, "number": number})
        producer.produce(TOPIC, value, SECRET, headers={"card": SECRET})
    producer.flush()


@pytest.fixture(autouse=True)
def rules(console: ConsoleServer) -> Iterator[None]:
    """Hide the secret while a test runs."""
    masking = console.console.masking
    masking.add(MaskingRule(TOPIC, "value", "$.card"))
    masking.add(MaskingRule(TOPIC, "key"))
    masking.add(MaskingRule(TOPIC, "header", "card"))
    yield
    for stored in masking.all():
        masking.delete(stored.id)


def session_of(console: ConsoleServer, user: str) -> ConsoleSession:
    """Return a session of a user."""
    session = ConsoleSession(console.url)
    session.login(user, PASSWORD)
    return session


def topics(cluster: Cluster) -> set[str]:
    """Return the topics of the cluster."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    return set(admin.list_topics(timeout=10).topics)


def call(
    session: ConsoleSession, path: str, body: dict[str, Any], user: str = "editor"
) -> tuple[int, str]:
    """Send JSON with the password of a user; return the status and the text."""
    credentials = b64encode(f"{user}:{PASSWORD}".encode()).decode()
    headers = {"content-type": "application/json", "authorization": f"Basic {credentials}"}
    response = session.request("POST", path, json.dumps(body), headers)
    return response.status, response.text


def test_editor_does_not_copy_masked_records(console: ConsoleServer, cluster: Cluster) -> None:
    """Neither on the page, nor through the API, nor with MCP; the copy would not be masked."""
    editor, script = session_of(console, "editor"), ConsoleSession(console.url)
    response = editor.post(_COPY, "copy", {"target": "stolen", "with_records": "1"})
    assert response.status == 403
    assert "masked fields" in response.alert
    body = {"target": "stolen", "with_records": True}
    status, text = call(script, f"{_API}/{TOPIC}/copy", body)
    assert (status, json.loads(text)["error"]["code"]) == (403, "MASKED")
    arguments = {"cluster": "local", "name": TOPIC, **body}
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "copy_topic", "arguments": arguments},
    }
    _, text = call(script, "/api/mcp/write", message)
    assert json.loads(text)["result"]["isError"]
    assert "MASKED" in text
    assert "stolen" not in topics(cluster)
    entry = console.console.audit.entries(limit=1)[0]
    assert (entry.user, entry.action) == ("editor", "copy_topic")
    assert "masked fields" in entry.result


def test_editor_copies_a_topic_without_its_records(
    console: ConsoleServer, cluster: Cluster
) -> None:
    """Options are not masked."""
    response = session_of(console, "editor").post(_COPY, "copy", {"target": "empty-copy"})
    assert response.status == 200
    assert "empty-copy" in topics(cluster)


@pytest.mark.parametrize("is_api", [False, True])
def test_copy_of_an_admin_is_masked_like_its_source(console: ConsoleServer, is_api: bool) -> None:
    """The rules apply to the copy before its first record is written."""
    target = f"copy.{is_api}"
    if is_api:
        body = {"target": target, "with_records": True}
        assert call(ConsoleSession(console.url), f"{_API}/{TOPIC}/copy", body, "admin")[0] == 200
    else:
        form = {"target": target, "with_records": "1"}
        assert session_of(console, "admin").post(_COPY, "copy", form).status == 200
    text = session_of(console, "editor").get(f"/c/local/topics/{target}/messages").text
    assert "number" in text
    assert SECRET not in text
    admin = session_of(console, "admin").get(f"/c/local/topics/{target}/messages").text
    assert SECRET in admin
    entry = console.console.audit.entries(text="topic.copy", limit=1)[0]
    assert "3 masking rules" in entry.details["notes"]
    # The dot of the name is not a wildcard.
    rules = [rule.topics for rule in console.console.masking.rules()]
    assert rules.count(f"copy\\.{is_api}") == 3


_IDS = {
    "{topic}": TOPIC,
    "{name}": TOPIC,
    "{partition}": "0",
    "{offset}": "1",
    "{cluster}": "local",
}


def _filled(path: str) -> str:
    for name, value in _IDS.items():
        path = path.replace(name, quote(value))
    return path


def _addresses() -> list[str]:
    """Return the addresses that read a topic: pages, data of scripts, and operations."""
    pages = [
        _filled(("" if item.is_global else "/c/local") + item.path)
        for item in (*PAGES, *SOURCES)
        if "{topic}" in item.path
    ]
    calls = [
        _filled(operation.full_path)
        for operation in OPERATIONS
        if operation.method == "GET" and ("{topic}" in operation.path or "{name}" in operation.path)
    ]
    return [path for path in (*pages, *calls) if "{" not in path]


@pytest.mark.parametrize("path", _addresses())
def test_nothing_shows_masked_data_to_an_editor(console: ConsoleServer, path: str) -> None:
    """A new page or operation that reads records is found by this test."""
    editor = session_of(console, "editor")
    query = "?seek=oldest&from=0:1&scan=1000&offset=0"
    if path.endswith("tail.events"):
        # It has no end; test_live_tail covers it.
        return
    response = editor.request("GET", path + query)
    assert response.status < 500
    assert SECRET not in response.text
    assert SECRET not in editor.request("GET", path).text


def test_wrong_query_of_a_download_is_an_error_before_the_file(console: ConsoleServer) -> None:
    """The browser shows the reason, and no broken file."""
    for name in ("messages.csv", "messages.jsonl"):
        response = session_of(console, "editor").request("GET", f"{_COPY}/{name}?from=yesterday")
        assert response.status == 400
        assert "cannot read time" in response.json["error"]


def test_live_tail_is_masked(console: ConsoleServer, cluster: Cluster) -> None:
    """New records arrive with their masks."""
    events = session_of(console, "editor").events(f"{_COPY}/tail.events")
    next(events)
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    producer.produce(TOPIC, json.dumps({"card": SECRET, "number": 99}), SECRET)
    producer.flush()
    html = next(data["html"] for name, data in events if name == "records" and data["count"])
    assert "99" in html
    assert SECRET not in html


def test_masked_data_is_not_in_results_of_sql_and_search(console: ConsoleServer) -> None:
    """Nor in their downloads; conditions compare the masked text."""
    editor, script = session_of(console, "editor"), ConsoleSession(console.url)
    sql = f"SELECT *, headers['card'] FROM {TOPIC}"
    assert SECRET not in editor.post("/c/local/sql", "run", {"sql": sql}).text
    assert "******" in editor.get("/c/local/sql/result.csv").text
    assert SECRET not in editor.get("/c/local/sql/result.csv").text
    status, text = call(script, "/api/v1/clusters/local/sql", {"sql": sql})
    assert status == 200
    assert SECRET not in text
    # The caller cannot pass rules of its own.
    conditions = [{"field": "any", "operator": "contains", "text": SECRET}]
    for extra in ({}, {"masking": []}):
        request = {"topic": TOPIC, "seek": "oldest", "conditions": conditions, **extra}
        status, text = call(script, f"{_API}/{TOPIC}/messages/search", {"request": request})
        assert status != 200 or json.loads(text)["rows"] == []


@pytest.fixture
def temporary(console: ConsoleServer) -> Iterator[str]:
    """Return the name of an admin that exists while a test runs."""
    users = console.console.users
    users.create("tom", PASSWORD, Role.ADMIN, must_change=False)
    yield "tom"
    if users.find("tom") is not None:
        users.delete("tom")


def test_result_of_sql_is_gone_after_a_demotion(console: ConsoleServer, temporary: str) -> None:
    """Neither an old session nor a new one of the same user has it."""
    tom, admin = session_of(console, temporary), session_of(console, "admin")
    assert SECRET in tom.post("/c/local/sql", "run", {"sql": f"SELECT card FROM {TOPIC}"}).text
    assert SECRET in tom.get("/c/local/sql/result.csv").text
    admin.post("/users", "role", {"name": temporary, "role": "viewer"})
    for session in (tom, session_of(console, temporary)):
        assert SECRET not in session.get("/c/local/sql/result.csv").text
        assert SECRET not in session.get("/c/local/sql?last=1").text
    # The demotion of oneself does not end the session.
    users = console.console.users
    users.set_role(temporary, Role.ADMIN)
    tom = session_of(console, temporary)
    tom.post("/c/local/sql", "run", {"sql": f"SELECT card FROM {TOPIC}"})
    tom.post("/users", "role", {"name": temporary, "role": "viewer"})
    assert tom.get("/c/local/sql/result.csv").status == 404


def test_new_user_of_the_same_name_has_no_result(console: ConsoleServer, temporary: str) -> None:
    """The result belongs to the session of the user who was deleted."""
    tom = session_of(console, temporary)
    tom.post("/c/local/sql", "run", {"sql": f"SELECT card FROM {TOPIC}"})
    admin = session_of(console, "admin")
    admin.post("/users", "delete", {"name": temporary, "confirmation": temporary})
    console.console.users.create(temporary, PASSWORD, Role.ADMIN, must_change=False)
    again = session_of(console, temporary)
    assert again.get("/c/local/sql/result.csv").status == 404
    assert tom.get("/c/local/sql/result.csv").status == 401


@pytest.mark.parametrize("change", ["role", "rule"])
def test_live_tail_ends_when_the_rights_change(
    console: ConsoleServer, temporary: str, change: str
) -> None:
    """Also by a new masking rule: the stream would continue with the rules of its beginning."""
    console.console.users.set_role(temporary, Role.ADMIN if change == "role" else Role.EDITOR)
    tom = session_of(console, temporary)
    events = tom.events("/c/local/topics/orders/tail.events")
    next(events)
    if change == "role":
        console.console.users.set_role(temporary, Role.VIEWER)
    else:
        console.console.masking.add(MaskingRule("orders", "value", "$.order.card"))
    last = [(name, data) for name, data in events][-1]
    assert last == ("failed", {"reason": "Your rights have changed: load the page again."})
