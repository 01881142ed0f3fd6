"""Wrong input in Chromium: every form reports it, keeps what was typed, and changes nothing."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType
from playwright.sync_api import Locator, Page, expect

from ottla.console.alerts.channels import Channel, ChannelKind
from ottla.console.alerts.rules import Rule, RuleKind
from ottla.console.app import PAGES
from ottla.console.server import ConsoleServer
from ottla.testing import Cluster
from tests.console.chromium import PHONE, Watched
from tests.console.forms import read_forms
from tests.console.session import PASSWORD, ConsoleSession
from tests.console.test_pages import NEEDS, address
from tests.unit.console.streams.test_describe_text import WORDS

# Seconds: only a browser sends the forms as users do, and shows where an error is.
pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]


class Wrong(NamedTuple):
    """Fields of a form with a wrong value, and a part of the sentence that reports it.

    Without `reason` the button stays disabled.
    """

    path: str
    action: str
    fields: dict[str, str | bool]
    reason: str = ""


TOPIC, PRODUCE, OFFSETS = "/topics/{topic}", "/topics/{topic}/produce", "/group/offsets"
MESSAGES, LOG = "/topics/{topic}/messages", "/topics/{topic}/partitions/{partition}"
RULE = {"name": "x", "kind": "lag-seconds", "severity": "critical"}
RECORD = {
    "key": "k",
    "codec": "lz4",
    "partition": "1",
    "headers": "a: 1",
    "timestamp": "2026-01-31",
}
CASES = [
    Wrong("/create-topic", "create", {"name": "a b", "cleanup_policy": "compact"}, "a b"),
    Wrong("/create-topic", "create", {"name": "x", "options": "nonsense"}, "write name=value"),
    Wrong("/create-topic", "validate", {"name": "x", "partitions": "0"}, "the least is 1"),
    Wrong(TOPIC, "grow", {"total": "1"}, "2 partitions"),
    Wrong(TOPIC, "copy", {"target": "payments", "with_records": True}, "exists"),
    Wrong(
        TOPIC,
        "trim",
        {"partition": "0", "offset": "999"},
        "orders-0: The partition has no such offset",
    ),
    Wrong(TOPIC, "empty", {"confirmation": "order"}),
    Wrong(TOPIC, "delete", {"confirmation": "orders "}),
    Wrong(PRODUCE, "send", RECORD | {"value": "{", "value_format": "json"}, "the format json"),
    Wrong(PRODUCE, "preview", {"value": "{{n", "count": "-1", "templates": True}, "the least is 1"),
    Wrong("/topics/{topic}/settings", "set", {"value": "soon"}, "soon"),
    Wrong("/brokers/{node}/settings", "set", {"value": "many"}, "many"),
    Wrong("/brokers/defaults", "set", {"name": "no.such", "value": "1"}, "no.such"),
    Wrong("/group", "delete", {"confirmation": "Billing"}),
    Wrong(OFFSETS, "preview", {"strategy": "by-duration", "duration": "an hour"}, "or P1DT2H"),
    Wrong(OFFSETS, "preview", {"strategy": "from-file", "file": "orders;0"}, "Line 1"),
    Wrong(OFFSETS, "preview", {"strategy": "to-latest", "topics": "absent"}, "absent"),
    Wrong("/reassignments", "preview", {"goal": "explicit", "targets": "orders"}, "topic-0=1,2,3"),
    Wrong("/reassignments", "preview", {"goal": "replication-factor", "factor": "9"}, "9"),
    Wrong("/streams", "upload", {"application": "other", "text": "hello"}, "Line 1"),
    Wrong("/stream", "upload", {"text": "hello"}, "Line 1"),
    Wrong("/transaction", "abort", {"confirmation": "ope"}),
    Wrong("/quotas", "save", {"user": "ann", "producer_byte_rate": "many"}, "many"),
    Wrong("/sql", "run", {"sql": "DROP TABLE orders"}, "SELECT"),
    Wrong(
        "/alerts",
        "add-rule",
        {**RULE, "threshold": "many", "targets": "a", "channels": True},
        "a number",
    ),
    Wrong("/alerts?edit-rule=1", "change-rule", {"threshold": "-1"}, "-1"),
    Wrong("/alerts", "add-silence", {"minutes": "0", "rule": "1", "comment": "c"}, "least is 1"),
    Wrong(
        "/alerts",
        "add-channel",
        {"channel_name": "c", "channel_kind": "slack", "url": "file:///etc/x"},
        "http",
    ),
    Wrong(
        "/alerts",
        "add-channel",
        {"channel_name": "c", "channel_kind": "mail", "host": "mail.example", "sender": "a@b.c"},
        "recipients",
    ),
    Wrong("/alerts?edit-channel=1", "change-channel", {"url": "file:///etc/x"}, "http"),
    Wrong("/users", "create", {"name": "<b>", "role": "editor"}, "name"),
    Wrong("/users", "role", {"role": "viewer"}, "admin"),
    Wrong("/users", "delete", {"confirmation": "viewe"}),
    Wrong("/users", "add-rule", {"topics": ".*", "target": "header"}, "header"),
    Wrong("/account", "password", {"old": "wrong", "new": "x" * 12, "again": "x" * 12}, "wrong"),
]
# Fields of queries with a wrong value.
QUERIES = [
    Wrong(MESSAGES, "", {"partition": "x"}, "number of a partition"),
    Wrong(MESSAGES, "", {"partition": "9"}, "9"),
    Wrong(MESSAGES, "", {"operator0": "regex", "text0": "("}, "regular expression"),
    Wrong(MESSAGES, "", {"operator0": "json-path", "path0": "$["}, "$["),
    Wrong(MESSAGES, "", {"where": "total > 1"}, "does not begin with $"),
    Wrong(LOG, "", {"offset": "-1"}, "the least is 0"),
]
# Forms of buttons only, and those that need several brokers or an authorizer.
NO_INPUT = {
    ("/brokers", "elect"), ("/topics/{topic}/partitions", "elect"),
    ("/topics/{topic}/settings", "reset"), ("/topics/{topic}/settings", "preview"),
    ("/brokers/{node}/settings", "reset"), ("/brokers/{node}/settings", "preview"),
    ("/brokers/defaults", "reset"), ("/brokers/defaults", "preview"),
    ("/group", "remove"), (OFFSETS, "preview-undo"), (OFFSETS, "execute"),
    ("/reassignments", "cancel"), ("/reassignments", "unthrottle"), ("/stream", "delete"),
    ("/transactions", "abort-hanging"), ("/quotas", "delete"), ("/sql", "cancel"),
    ("/alerts", "switch-rule"), ("/alerts", "delete-rule"), ("/alerts", "delete-silence"),
    ("/alerts", "delete-channel"), ("/alerts", "test-channel"),
    ("/users", "reset"), ("/users", "delete-rule"),
}  # fmt: skip
ELSEWHERE = {
    ("/reassignments", "start"): "test_browser_cluster",
    ("/reassignments", "throttle"): "test_browser_cluster",
    ("/acls", "add-acl"): "tests/compat/test_console_pages",
    ("/acls", "show-template"): "test_limited_user",
    ("/acls", "add-template"): "test_limited_user",
    ("/users", "add-right"): "test_rights",
    ("/users", "delete-right"): "test_rights",
    ("/acls", "save-user"): "tests/compat/test_console_pages",
    ("/acls", "delete-acl"): "tests/compat/test_console_pages",
    ("/acls", "delete-user"): "tests/compat/test_console_pages",
}
# Filters, and names of headers: any text is right.
ANY_TEXT = {"q", "header"}


@pytest.fixture(scope="module")
def console(console: ConsoleServer, cluster: Cluster) -> Iterator[ConsoleServer]:
    """Return the console; each form of its pages is shown, also the form of an open transaction."""
    settings = {"transactional.id": "open", "transaction.timeout.ms": 600_000}
    producer = Producer({"bootstrap.servers": cluster.bootstrap, **settings})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce("payments", b"half")
    producer.flush(10)
    store = console.console.alerts.store
    store.add_channel(Channel("team", ChannelKind.SLACK, "https://hooks.example/x"))
    store.add_rule(Rule("late", RuleKind.LAG, threshold=100))
    admin = ConsoleSession(console.url)
    admin.login("admin", PASSWORD)
    admin.post("/c/local/streams", "upload", {"application": "word-count", "text": WORDS})
    yield console
    producer.abort_transaction(10)


@pytest.fixture(scope="module")
def before(cluster: Cluster, console: ConsoleServer) -> dict[str, Any]:
    """Return the state that no wrong form changes."""
    return state(cluster, console)


@pytest.fixture
def sent(
    watched: Watched, cluster: Cluster, console: ConsoleServer, before: dict[str, Any]
) -> Iterator[Page]:
    """Return the page; the cluster and the console are the same after the test."""
    watched.forgive()
    yield watched.page
    # The browser logs each response that is an error.
    assert [text for text in watched.errors if "status of 4" not in text] == []
    assert state(cluster, console) == before


def state(cluster: Cluster, console: ConsoleServer) -> dict[str, Any]:
    """Return what a form may change."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    topics = {
        name: len(topic.partitions)
        for name, topic in admin.list_topics(timeout=10).topics.items()
        if not name.startswith("__")
    }
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in topics]
    resources.append(ConfigResource(ResourceType.BROKER, "1"))
    options = {
        (str(resource), name): option.value
        for resource, future in admin.describe_configs(resources).items()
        for name, option in future.result(10).items()
        if not option.is_default
    }
    partitions = [TopicPartition(name, n) for name, count in topics.items() for n in range(count)]
    bounds = [
        {str(key): future.result(10).offset for key, future in admin.list_offsets(wanted).items()}
        for spec in (OffsetSpec.earliest(), OffsetSpec.latest())
        for wanted in [dict.fromkeys(partitions, spec)]
    ]
    group = ConsumerGroupTopicPartitions("billing")
    committed = admin.list_consumer_group_offsets([group])["billing"].result(10)
    own = console.console
    return {
        "topics": topics,
        "options": options,
        "bounds": bounds,
        "committed": [str(row) for row in committed.topic_partitions],
        "users": [(user.name, user.role, user.must_change) for user in own.users.all()],
        "masking": own.masking.all(),
        "rules": own.alerts.store.rules(),
        "silences": own.alerts.store.silences(0),
        "channels": own.alerts.store.channels(),
    }


def test_every_form_has_wrong_input(console: ConsoleServer) -> None:
    """Each action and each field of a query that the rendered pages have is in a table above."""
    admin = ConsoleSession(console.url)
    admin.login("admin", PASSWORD)
    actions = {(page.path, action) for page in PAGES for action in page.actions}
    cases = {(case.path.partition("?")[0], case.action) for case in CASES}
    assert actions == cases | NO_INPUT | ELSEWHERE.keys()
    queries = {(case.path, name.rstrip("0")) for case in QUERIES for name in case.fields}
    shown = [page for page in PAGES if page.path not in NEEDS - {"/stream"}]
    for page in shown:
        for edited in ("", "?edit-rule=1", "?edit-channel=1") if page.path == "/alerts" else ("",):
            for form in read_forms(admin.get(where(page.path) + edited).text):
                own = {(page.path, action) for action in form.actions}
                assert own <= actions
                if form.method == "post":
                    assert not form.typed or own & (cases | ELSEWHERE.keys()), (page.path, form)
                    continue
                typed = {name.rstrip("012") for name in form.typed - form.checked} - ANY_TEXT
                assert {(page.path, name) for name in typed} <= queries, page.path


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.path[1:]}-{case.action}")
def test_wrong_input_is_reported_in_the_form(sent: Page, case: Wrong) -> None:
    """The sentence is in the form, which is open and has the typed values."""
    sent.goto(where(case.path))
    form = sent.locator(f'form[method="post"]:has([name="action"][value="{case.action}"])').first
    fill(form, case.fields)
    named = form.locator(f'button[name="action"][value="{case.action}"]')
    button = named if named.count() else form.locator("button").first
    if not case.reason:
        expect(button).to_be_disabled()
        return
    button.click()
    # Four rows of users have the same form: the sentence is above them.
    alert = sent.get_by_role("alert") if case.action == "role" else form.get_by_role("alert")
    expect(alert).to_contain_text(case.reason)
    expect(alert).to_be_visible()
    check(form, case.fields)
    # A refresh would remove the sentence and the values.
    expect(sent.locator("#main")).to_have_attribute("data-refresh-s", "0")


@pytest.mark.parametrize("case", QUERIES, ids=lambda case: next(reversed(case.fields)))
def test_a_wrong_query_is_reported_above_its_form(sent: Page, case: Wrong) -> None:
    """The page is shown with the reason, and its form has the typed values."""
    sent.goto(where(case.path))
    form = sent.locator('form[method="get"]')
    fill(form, case.fields)
    form.get_by_role("button", name="Show").click()
    expect(sent.get_by_role("alert")).to_contain_text(case.reason)
    check(form, case.fields)


def test_a_wrong_login_keeps_the_name(sent: Page) -> None:
    """The sentence does not say whether the user exists; no session begins."""
    browser = sent.context.browser
    assert browser is not None
    context = browser.new_context(base_url=sent.url.partition("/c/")[0], viewport=PHONE)
    page = context.new_page()
    page.goto("/login")
    page.get_by_label("User").fill("ada")
    page.get_by_label("Password").fill("a wrong password")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_have_text("User name or password is wrong.")
    expect(page.get_by_label("User")).to_have_value("ada")
    expect(page.locator("html")).to_have_js_property("scrollWidth", PHONE["width"])
    page.goto("/c/local/topics")
    expect(page.get_by_role("button", name="Log in")).to_be_visible()
    context.close()


def where(path: str) -> str:
    """Return the address of a page of the table of pages."""
    if path == "/stream":
        return "/c/local/stream?id=word-count"
    if path == "/transaction":
        return "/c/local/transaction?id=open"
    is_global = any(page.path == path.partition("?")[0] and page.is_global for page in PAGES)
    return address(path, is_global)


def fill(form: Locator, fields: dict[str, str | bool]) -> None:
    """Open the form if it is folded, and enter the values."""
    folded = form.locator("xpath=ancestor::details[not(@open)]/summary")
    for summary in folded.all():
        summary.click()
    for name, value in fields.items():
        control = form.locator(f'[name="{name}"]')
        if isinstance(value, bool):
            control.check()
        elif control.locator("option").count():
            control.select_option(value)
        else:
            control.fill(value)


def check(form: Locator, fields: dict[str, str | bool]) -> None:
    """Fail unless the form has the values; a password is never sent back."""
    for name, value in fields.items():
        control = form.locator(f'[name="{name}"]:not([type="password"])')
        if isinstance(value, bool):
            expect(control).to_be_checked()
        elif form.locator(f'[name="{name}"][type="password"]').count() == 0:
            expect(control).to_have_value(value)
