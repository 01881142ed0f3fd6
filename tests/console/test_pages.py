"""Every page and action of the console against a running broker, without a browser."""

import ast
import json
import re
import threading
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest
from confluent_kafka import Producer

import ottla.console
import ottla.operations
from ottla.console.app import PAGES, SOURCES
from ottla.console.page import Page
from ottla.console.server import ConsoleServer
from ottla.console.web.requests import SECURITY_HEADERS
from ottla.console.web.routes import MAX_BODY_BYTES
from ottla.testing import Cluster
from tests.console.conftest import HOSTILE, RECORDS, commit
from tests.console.session import FORM, PASSWORD, ConsoleSession

pytestmark = pytest.mark.slow

# The addresses of all pages, with values for their parameters.
ADDRESSES = {
    "/brokers/{node}": "/brokers/1",
    "/brokers/{node}/settings": "/brokers/1/settings?edit=log.cleaner.threads",
    "/brokers/{node}/apis": "/brokers/1/apis",
    "/topics/{topic}/partitions/{partition}": "/topics/orders/partitions/1?offset=5",
    "/topics/{topic}/messages/{partition}/{offset}": "/topics/orders/messages/0/0",
    "/topics/{topic}/settings": "/topics/orders/settings?edit=retention.ms",
    "/topics/{topic}/statistics": "/topics/orders/statistics?scan=10000",
    "/topics": "/topics?internal=1&sort=size&order=desc",
    "/group": "/group?id=billing",
    "/group/offsets": "/group/offsets?id=billing",
    "/transaction": "/transaction?id=settlement",
    "/transactions": "/transactions?hanging=1",
}
# Pages of things that a broker of the tests does not have.
NEEDS = {"/stream", "/zookeeper", "/clients/{client}", "/schemas", "/schema"}


def address(path: str, is_global: bool) -> str:
    filled = ADDRESSES.get(path, path).replace("{topic}", "orders")
    return filled if is_global else f"/c/local{filled}"


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.path not in NEEDS], ids=lambda page: page.path
)
def test_every_page_is_shown_and_escapes_hostile_text(admin: ConsoleSession, page: Page) -> None:
    """No page fails, and a key, header or group name never becomes an element."""
    response = admin.get(address(page.path, page.is_global))
    assert response.status == 200, response.alert
    assert response.alert == ""
    assert "<img" not in response.text


def test_records_and_their_headers_are_shown_as_text(admin: ConsoleSession) -> None:
    """The hostile text is there, escaped."""
    response = admin.get("/c/local/topics/orders/messages/0/0")
    assert HOSTILE in unescape(response.text)
    assert "<img" not in response.text


@pytest.mark.parametrize("path", ["/c/local/topics", "/", "/audit.csv", "/c/local/overview.json"])
def test_nothing_is_shown_without_a_login(console: ConsoleServer, path: str) -> None:
    """Pages lead to the login; data for scripts is refused."""
    response = ConsoleSession(console.url).request("GET", path)
    assert response.status in (303, 401)
    assert "orders" not in response.text


def test_every_response_has_the_security_headers(admin: ConsoleSession) -> None:
    """Pages, assets, redirects and errors alike; and pages are never cached."""
    for path in ("/", "/c/local/topics", "/static/console.js", "/login", "/nowhere", "/logout"):
        headers = {
            name.lower(): value for name, value in admin.request("GET", path).headers.items()
        }
        for name, value in SECURITY_HEADERS.items():
            assert headers[name] == value, path
        assert headers["cache-control"] == ("no-cache" if "static" in path else "no-store")


def test_the_cookie_of_a_session_is_not_readable_by_scripts(console: ConsoleServer) -> None:
    """HttpOnly and SameSite are set."""
    form = f"user=admin&password={quote(PASSWORD)}"
    response = ConsoleSession(console.url).request("POST", "/login", form, FORM)
    cookie = response.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie


def test_a_viewer_reads_and_an_editor_does_not_administrate(console: ConsoleServer) -> None:
    """Pages of admins are refused, and so are changes that a role does not allow."""
    viewer, editor = ConsoleSession(console.url), ConsoleSession(console.url)
    viewer.login("viewer", PASSWORD)
    editor.login("editor", PASSWORD)
    assert viewer.get("/c/local/topics").status == 200
    for session in (viewer, editor):
        assert session.get("/users").status == 403
        assert session.get("/audit").status == 403
        assert session.request("GET", "/audit.csv").status == 403
    topic = "/c/local/topics/orders"
    assert viewer.post(topic, "delete", {"confirmation": "orders"}).status == 403
    assert viewer.get(topic + "/produce").status == 403
    assert editor.post("/users", "delete", {"name": "admin"}).status == 403
    assert editor.post("/c/local/brokers", "elect").status == 403
    assert editor.get(topic).status == 200


def test_a_topic_is_created_configured_emptied_copied_and_deleted(admin: ConsoleSession) -> None:
    """The life of a topic, with the sentences that the pages show."""
    form = {"name": "trial", "partitions": "2", "options": "retention.ms=60000"}
    assert "can be created" in admin.post("/c/local/create-topic", "validate", form).notice
    response = admin.post("/c/local/create-topic", "create", form)
    assert response.notice == "Topic trial is created."
    assert "retention.ms=60000" in response.text
    path = "/c/local/topics/trial"
    assert "3 partitions" in admin.post(path, "grow", {"total": "3"}).notice
    record = {"key": "k", "key_format": "text", "value": '{"n": 1}', "value_format": "json",
              "headers": "trace: 7", "partition": "0", "codec": "lz4"}  # fmt: skip
    assert "at offset 0" in admin.post(path + "/produce", "send", record).notice
    assert "&#34;n&#34;: 1" in admin.get(path + "/messages/0/0").text
    assert admin.post(path, "copy", {"target": "trial2", "with_records": "1"}).status == 200
    assert "trial2" in admin.get("/c/local/topics").text
    assert admin.post(path, "trim", {"partition": "0", "offset": "1"}).alert == ""
    assert admin.post(path, "empty", {"confirmation": "trail"}).status == 400
    assert admin.post(path, "empty", {"confirmation": "trial"}).notice == "Topic trial is empty."
    assert admin.post(path, "delete", {"confirmation": ""}).status == 400
    assert admin.post(path, "delete", {"confirmation": "trial"}).notice == "Topic trial is deleted."
    assert admin.get(path).status == 404
    audit = admin.get("/audit?q=trial").text
    for action in ("topic.create", "topic.delete", "topic.copy", "topic.empty"):
        assert action in audit


def test_templates_fill_many_records(admin: ConsoleSession, cluster: Cluster) -> None:
    """The preview shows the first records; producing writes all of them."""
    cluster.create_topic("templates")
    form = {"value": "n={{n}}", "count": "25", "templates": "1", "key_format": "null"}
    path = "/c/local/topics/templates/produce"
    assert "n=2</pre>" in admin.post(path, "preview", form).text
    assert "25" in admin.post(path, "send", form).notice
    assert "n=24" in admin.get("/c/local/topics/templates/messages").text


def test_an_option_is_previewed_set_and_reset(admin: ConsoleSession, cluster: Cluster) -> None:
    """A page that shows an old value cannot overwrite the change of another user."""
    cluster.create_topic("options")
    path = "/c/local/topics/options/settings"
    form = {"name": "retention.ms", "value": "1000", "seen": "604800000"}
    preview = admin.post(path, "preview", form)
    assert "What would change" in preview.text
    assert admin.get(path + "?changed=1").text.count('class="changed"') == 0
    assert "is set to 1000" in admin.post(path, "set", form).notice
    other = admin.post(path, "set", form | {"value": "5000"})
    assert other.status == 409
    assert "was changed to 1000" in other.alert
    assert admin.post(path, "set", form | {"value": "soon", "seen": "1000"}).status in (400, 409)
    assert "default again" in admin.post(path, "reset", form).notice


def test_offsets_are_planned_changed_and_restored(admin: ConsoleSession, cluster: Cluster) -> None:
    """A dry run changes nothing; the executed plan is the one that was shown; undo restores it."""
    commit(cluster, "resets")
    path = "/c/local/group/offsets?id=resets"
    plan = admin.post(path, "preview", {"strategy": "to-earliest"})
    number = plan.text.split('name="plan" value="')[1].split('"')[0]
    assert "Change the offsets" in plan.text
    assert committed(admin) == ["10", "10"]
    done = admin.post(path, "execute", {"plan": number})
    assert done.notice == "The offsets are changed."
    assert committed(admin) == ["0", "0"]
    assert admin.post(path, "execute", {"plan": number}).status == 409
    undo = admin.post(path, "preview-undo", {"plan": number})
    number = undo.text.split('name="plan" value="')[1].split('"')[0]
    admin.post(path, "execute", {"plan": number})
    assert committed(admin) == ["10", "10"]
    typed = admin.post(path, "preview", {"strategy": "from-file", "at:orders:1": "3"})
    assert '<td class="n">3</td>' in typed.text
    assert admin.post(path, "execute", {"plan": "forged"}).status == 400


def test_the_lag_after_a_deletion_of_offsets_is_marked(
    admin: ConsoleSession, cluster: Cluster
) -> None:
    """The group may start at the beginning, or at the end: the preview shows the larger lag."""
    commit(cluster, "forgets")
    path = "/c/local/group/offsets?id=forgets"
    plan = admin.post(path, "preview", {"strategy": "delete"}).text
    assert re.findall(r'<td class="n">(≤ )?(\d+)</td><td></td></tr>', plan) == [
        ("≤ ", str(RECORDS // 2)),
        ("≤ ", str(RECORDS // 2)),
    ]
    number = plan.split('name="plan" value="')[1].split('"')[0]
    admin.post(path, "execute", {"plan": number})
    undo = admin.post(path, "preview-undo", {"plan": number}).text
    assert undo.count('<td class="n">≤ ') == 2


def committed(session: ConsoleSession) -> list[str]:
    lines = session.get("/c/local/group/offsets.csv?id=resets").text.split()
    return [line.rpartition(",")[2] for line in lines]


def test_a_group_is_deleted_by_its_typed_id(admin: ConsoleSession, cluster: Cluster) -> None:
    """A group may have any name, also one with a slash."""
    name = "a/b <c>&d"
    commit(cluster, name)
    path = f"/c/local/group?id={quote(name)}"
    assert "a/b &lt;c&gt;&amp;d" in admin.get(path).text
    assert admin.post(path, "delete", {"confirmation": "a/b"}).status == 400
    assert "is deleted" in admin.post(path, "delete", {"confirmation": name}).notice
    assert admin.get(path).status == 404


WRONG_FORMS = [
    ("/c/local/create-topic", "create", {"name": ""}),
    ("/c/local/create-topic", "create", {"name": "a b"}),
    ("/c/local/create-topic", "create", {"name": "x", "partitions": "many"}),
    ("/c/local/create-topic", "create", {"name": "x", "options": "nonsense"}),
    ("/c/local/create-topic", "create", {"name": "x", "options": "no.such=1"}),
    ("/c/local/create-topic", "create", {"name": "orders"}),
    ("/c/local/create-topic", "create", {"name": "x", "replicas": "9"}),
    ("/c/local/topics/orders", "grow", {"total": "1"}),
    ("/c/local/topics/orders", "trim", {"partition": "0", "offset": ""}),
    ("/c/local/topics/orders", "copy", {"target": ""}),
    ("/c/local/topics/orders/produce", "send", {"value": "{", "value_format": "json"}),
    ("/c/local/topics/orders/produce", "send", {"value": "x", "value_format": "nonsense"}),
    ("/c/local/topics/orders/produce", "send", {"value": "x", "headers": ": x"}),
    ("/c/local/topics/orders/produce", "send", {"value": "x", "count": "-1"}),
    ("/c/local/topics/orders/produce", "send", {"value": "x", "timestamp": "soon"}),
    ("/c/local/topics/orders/settings", "set", {"name": "retention.ms", "value": "soon"}),
    ("/c/local/topics/orders/settings", "set", {"name": "no.such", "value": "1"}),
    ("/c/local/group/offsets?id=billing", "preview", {"strategy": "nonsense"}),
    ("/c/local/group/offsets?id=billing", "preview", {"strategy": "to-offset"}),
    ("/c/local/group/offsets?id=billing", "preview", {"strategy": "by-duration", "duration": "x"}),
    ("/c/local/group/offsets?id=billing", "preview", {"strategy": "from-file", "file": "x"}),
    ("/c/local/reassignments", "preview", {"goal": "nonsense"}),
    ("/c/local/reassignments", "preview", {"goal": "explicit", "targets": "x"}),
    ("/c/local/reassignments", "start", {"plan": "x"}),
    ("/c/local/reassignments", "throttle", {"throttle": "-1"}),
    ("/c/local/topics/orders", "grow", {"total": str(2**31)}),
    ("/c/local/topics/orders", "trim", {"partition": "0", "offset": str(2**63)}),
    ("/c/local/topics/orders", "trim", {"partition": "7", "offset": "0"}),
    ("/c/local/create-topic", "create", {"name": "large", "partitions": str(2**31)}),
    ("/c/local/create-topic", "create", {"name": "large", "replicas": str(2**15)}),
    ("/c/local/topics/orders/produce", "send", {"value": "x", "timestamp": str(2**63)}),
    ("/c/local/topics/orders/produce", "send", {"value": "x", "timestamp": "²"}),
    ("/c/local/topics/orders/produce", "send", {"value": "x", "partition": str(2**31)}),
    ("/c/local/group/offsets?id=billing", "preview", {"strategy": "to-latest", "pick": "orders:²"}),
    ("/c/local/group/offsets?id=billing", "preview", {"strategy": "from-file", "file": f"orders,0,{2**63}"}),
    ("/c/local/reassignments", "preview", {"goal": "replication-factor", "factor": "1", "broker": "²"}),
    ("/c/local/reassignments", "preview", {"goal": "explicit", "targets": f"orders-0={2**63}"}),
    ("/users", "delete-rule", {"rule": "9" * 30}),
    ("/users", "create", {"name": "<b>"}),
    ("/users", "create", {"name": "x", "role": "king"}),
    ("/users", "delete", {"name": "admin"}),
    ("/users", "role", {"name": "admin", "role": "viewer"}),
    ("/users", "add-rule", {"topics": "(", "target": "value"}),
    ("/users", "add-rule", {"topics": ".*", "target": "header"}),
    ("/users", "delete-rule", {"rule": "99"}),
    ("/account", "password", {"old": "wrong", "new": "x", "again": "x"}),
]  # fmt: skip


@pytest.mark.parametrize(("path", "action", "form"), WRONG_FORMS, ids=str)
def test_wrong_input_is_reported_beside_the_form(
    admin: ConsoleSession, path: str, action: str, form: dict[str, str]
) -> None:
    """The page is shown again with a sentence that says what is wrong; nothing fails inside."""
    response = admin.post(path, action, form)
    assert response.status in (400, 404, 409)
    assert response.alert
    assert "<form" in response.text


@pytest.mark.parametrize("number", [str(2**63), "9" * 30, "%C2%B2"])
def test_numbers_that_are_none_or_too_large_are_reported(
    admin: ConsoleSession, number: str
) -> None:
    """Each address with a number returns a sentence, also if the number fits into no field."""
    topic = "/c/local/topics/orders"
    for path in (
        f"{topic}/messages?seek=offset&offset={number}",
        f"{topic}/messages?seek=timestamp&from={number}",
        f"{topic}/messages?until={number}",
        f"{topic}/messages?partition={number}",
        f"{topic}/messages?positions=0:{number}",
        f"{topic}/partitions/0?offset={number}",
        f"{topic}/partitions/{number}",
        f"{topic}/messages/0/{number}",
        f"{topic}/messages/{number}/0",
        f"/audit?before={number}",
    ):
        answer = admin.get(path)
        assert answer.status in (400, 404), path
        assert answer.alert or "<h1>" in answer.text


def test_a_typed_value_is_quoted_as_it_is(admin: ConsoleSession) -> None:
    """The first word of a broker's message is the value; a long value is cut, its reason is not."""
    response = admin.post("/c/local/quotas", "save", {"ip": "nan", "producer_byte_rate": "1"})
    assert response.alert.startswith("nan ")
    form = {"name": "retention.ms", "value": "9" * 5000}
    alert = admin.post("/c/local/topics/orders/settings", "set", form).alert
    assert len(alert) < 700
    assert alert.endswith("Not a number of type LONG.")


def test_a_wrong_query_is_reported(admin: ConsoleSession) -> None:
    """Numbers and conditions of a query are checked; the page has its form and the reason."""
    path = "/c/local/topics/orders/messages"
    for query in (
        "seek=x",
        "limit=x",
        "partition=x",
        "positions=x",
        "from=x",
        "operator0=regex&text0=(",
        "where=total+%3E+1",
    ):
        answer = admin.get(f"{path}?{query}")
        assert answer.status == 400, query
        assert answer.alert
        assert 'id="filter"' in answer.text
    assert admin.get(f"{path}?partition=99").status in (400, 404)
    assert admin.get("/c/local/brokers/x").status == 404
    assert admin.get("/c/nowhere/topics").status == 404
    assert admin.get("/c/local/topics/no-such-topic/messages").status == 404


def test_a_form_that_is_too_large_is_refused(admin: ConsoleSession) -> None:
    """The body is not read beyond the limit."""
    response = admin.request("POST", "/c/local/topics/orders/produce", "x" * (MAX_BODY_BYTES + 1))
    assert response.status == 413


def test_masked_fields_are_readable_by_admins_only(console: ConsoleServer) -> None:
    """A rule applies to pages, search and downloads; a filter cannot find what is masked."""
    admin, viewer = ConsoleSession(console.url), ConsoleSession(console.url)
    admin.login("admin", PASSWORD)
    viewer.login("viewer", PASSWORD)
    rule = {"topics": "orders", "target": "value", "path": "$.order.card"}
    assert admin.post("/users", "add-rule", rule).alert == ""
    path = "/c/local/topics/orders/messages"
    try:
        assert "4000-" in admin.get(path).text
        for response in (viewer.get(path), viewer.get(path + ".jsonl"), viewer.get(path + "/0/0")):
            assert response.status == 200
            assert "4000-" not in response.text
        assert "4000-" not in viewer.get(path + "?operator0=contains&text0=4000").text
        assert "4000-" not in viewer.get(path + "?where=value+contains+%224000%22").text
    finally:
        admin.post("/users", "delete-rule", {"rule": str(console.console.masking.all()[0].id)})


def test_records_are_filtered_and_downloaded(admin: ConsoleSession) -> None:
    """Conditions apply to the page and to the files."""
    path = "/c/local/topics/orders/messages"
    query = "operator0=json-path&path0=$.order.id&comparison0=%3C&text0=5"
    lines = admin.get(f"{path}.jsonl?seek=oldest&{query}").text.splitlines()
    assert sorted(json.loads(json.loads(line)["value"])["order"]["id"] for line in lines) == [
        *range(5)
    ]
    same = admin.get(f"{path}.jsonl?seek=oldest&where=%24.order.id+%3C+5+and+key").text
    assert sorted(same.splitlines()) == sorted(lines)
    assert len(admin.get(f"{path}.csv?seek=oldest").text.splitlines()) == RECORDS + 1
    older = admin.get(f"{path}?limit=20").text
    assert "Older records" in older


def test_the_search_streams_records_and_progress(admin: ConsoleSession) -> None:
    """The stream ends with an event of its own."""
    query = "seek=oldest&operator0=contains&text0=customer-3&field0=key"
    events = list(admin.events(f"/c/local/topics/orders/search.events?{query}"))
    names = [name for name, _ in events]
    assert names[-1] == "end"
    assert "progress" in names
    total = sum(data["count"] for name, data in events if name == "records")
    assert total == len([number for number in range(RECORDS) if number % 7 == 3])


def test_the_live_tail_streams_new_records(admin: ConsoleSession, cluster: Cluster) -> None:
    """A record that is written while the page is open arrives."""
    cluster.create_topic("tailed")
    stop = threading.Event()

    def write() -> None:
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        while not stop.wait(0.1):
            producer.produce("tailed", "fresh")
            producer.flush()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for name, data in admin.events("/c/local/topics/tailed/tail.events"):
            if name == "records" and data["count"]:
                assert "fresh" in data["html"]
                break
    finally:
        stop.set()
        writer.join()


def test_the_search_finds_pages_topics_groups_and_options(admin: ConsoleSession) -> None:
    """One text finds every kind."""

    def kinds(text: str) -> set[str]:
        return {
            item["kind"] for item in admin.get(f"/c/local/search.json?q={text}").json["results"]
        }

    assert kinds("order") >= {"topic"}
    assert kinds("billing") == {"group"}
    assert kinds("retention") == {"broker option"}
    assert kinds("quota") >= {"page"}


def test_the_language_is_chinese_on_request(console: ConsoleServer) -> None:
    """Every page has the language of the cookie."""
    session = ConsoleSession(console.url)
    session.login("admin", PASSWORD)
    session.request("POST", "/preferences", "language=zh&next=/", FORM)
    response = session.get("/c/local/topics")
    assert '<html lang="zh"' in response.text
    assert "创建主题" in response.text


def test_an_address_without_a_page_leads_back(console: ConsoleServer) -> None:
    """A user sees the frame with a link; scripts and visitors get a line of text."""
    session = ConsoleSession(console.url)
    for path in ("/c/local/nothing", "/nothing"):
        assert session.get(path).status == 404
        assert "<" not in session.get(path).text
    session.login("viewer", PASSWORD)
    for path in ("/c/local/nothing", "/nothing"):
        response = session.get(path)
        assert response.status == 404
        assert response.alert == "There is no such page."
        assert 'href="/"' in response.text
    assert "<" not in session.get("/static/nothing.js").text


def test_an_error_page_leads_to_the_list(admin: ConsoleSession) -> None:
    """The sentence says to choose from the list: the button beside it opens it."""
    response = admin.get("/c/local/topics/no-such-topic")
    assert "Choose one from the list." in response.alert
    assert '<a class="button" href="/c/local/topics">Topics</a>' in response.text


@pytest.mark.parametrize("path", ["/alerts", "/audit", "/users", "/account", "/shortcuts", "/"])
def test_pages_of_no_cluster_have_no_link_to_a_tree_that_does_not_exist(
    admin: ConsoleSession, path: str
) -> None:
    """The navigation is the one of the first cluster, which has no ZooKeeper."""
    text = admin.get(path).text
    assert "/c/local/topics" in text
    assert "zookeeper" not in text


def test_users_are_created_and_lose_their_sessions(console: ConsoleServer) -> None:
    """A new user has a one-time password; a reset ends the sessions."""
    admin, carl = ConsoleSession(console.url), ConsoleSession(console.url)
    admin.login("admin", PASSWORD)
    notice = admin.post("/users", "create", {"name": "carl", "role": "viewer"}).notice
    first = notice.rpartition(" ")[2]
    assert "one-time password" in carl.login("carl", first).text
    form = {"old": first, "new": PASSWORD, "again": PASSWORD}
    assert carl.post("/account", "password", form).notice == "Your password is changed."
    assert carl.get("/c/local/topics").status == 200
    admin.post("/users", "reset", {"name": "carl"})
    assert carl.request("GET", "/c/local/topics").status == 303
    assert "type the name 'carl'" in admin.post("/users", "delete", {"name": "carl"}).alert
    admin.post("/users", "delete", {"name": "carl", "confirmation": "carl"})
    assert "carl" in admin.get("/audit?q=console-user.delete").text


def test_sources_and_pages_have_unique_addresses() -> None:
    """No page hides another."""
    paths = [(item.path, item.is_global) for item in (*PAGES, *SOURCES)]
    assert len(paths) == len(set(paths))


def test_a_failed_change_has_the_name_of_the_change() -> None:
    """A filter of the audit log finds both: actions have the names of the changes."""
    names = {action.name for page in PAGES for action in page.actions.values()} - {""}
    folders = [Path(package.__file__).parent for package in (ottla.console, ottla.operations)]
    written: set[str] = set()
    for path in (path for folder in folders for path in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("Change", "replace"):
                written |= {
                    item.value
                    for item in ast.walk(node)
                    if isinstance(item, ast.Constant) and isinstance(item.value, str)
                }
    # Computed from the kind of the resource, or of the change.
    written |= {f"{kind}.alter-config" for kind in ("topic", "broker", "cluster")}
    written |= {"topic.create", "partition.elect-preferred-leader"}
    assert names - written == set()


def test_a_record_has_the_formats_of_the_list(admin: ConsoleSession) -> None:
    """The page has the chosen format, and so have the links to it and to its neighbours."""
    path = "/c/local/topics/orders/messages/0/1"
    page = admin.get(f"{path}?value_format=hex").text
    assert "(hex, " in page
    assert 'href="/c/local/topics/orders/messages/0/2?value_format=hex"' in page
    assert "(json, " in admin.get(path).text
    rows = admin.get("/c/local/topics/orders/messages?value_format=base64").text
    # The page has the newest records, which other tests write.
    links = re.findall(r'href="(/c/local/topics/orders/messages/\d+/\d+[^"]*)"', rows)
    assert links
    assert all(link.endswith("?value_format=base64") for link in links)
    assert "value_format 'rot13'" in admin.get(f"{path}?value_format=rot13").alert


def test_a_cluster_without_acls_says_how_to_switch_them_on(admin: ConsoleSession) -> None:
    """The options of the brokers, in the order in which no client is locked out."""
    page = admin.get("/c/local/acls").text
    assert page.index("authorizer.class.name=") < page.index("Restart the brokers one after")
    assert "super.users=" in page
