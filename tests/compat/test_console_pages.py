"""The console's pages in Chromium against Apache Kafka 4.3.0: every page, and the main changes.

One broker with an authorizer serves all tests of the file; its controller is another node, with the
id 100, as in most clusters of Apache Kafka 4.
"""

import html
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import pytest
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from playwright.sync_api import Page, expect

from ottla.console.server import ConsoleServer
from ottla.console.state import ConsoleSettings
from ottla.operations.survey.connections import ClusterSettings
from ottla.testing import Cluster
from tests.compat import java
from tests.console.chromium import Watched, admin_page, chromium, without_errors
from tests.console.conftest import commit, fill
from tests.console.session import PASSWORD, ConsoleSession
from tests.console.test_browser import PAGES
from tests.console.test_browser_forms import check
from tests.console.test_browser_forms import fill as enter

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,  # Apache Kafka and Chromium take seconds to start; only both show such pages.
    pytest.mark.needs("java", "chromium"),
]

_VERSION = "4.3.0"
_CONTROLLER = 100
_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ANY_ACL = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY,
    AclPermissionType.ANY,
)  # fmt: skip


class Peer:
    """An Apache Kafka broker as `fill` uses a cluster."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic and wait for it."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        topic = NewTopic(name, partitions, 1, config=dict(config or {}))
        admin.create_topics([topic])[name].result(30)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return Apache Kafka with the topics, records, group and transaction of the console's tests."""
    port, quorum = java.free_ports(2)
    common = [
        f"authorizer.class.name={_AUTHORIZER}",
        "super.users=User:ANONYMOUS",
        f"controller.quorum.voters={_CONTROLLER}@127.0.0.1:{quorum}",
    ]
    nodes = [
        _node(tmp_path_factory.mktemp("controller"), quorum, [
            *common, "process.roles=controller", f"node.id={_CONTROLLER}",
            f"listeners=CONTROLLER://127.0.0.1:{quorum}",
        ]),
        _node(tmp_path_factory.mktemp("broker"), port, [
            *common, "process.roles=broker", f"listeners=PLAINTEXT://127.0.0.1:{port}",
        ]),
    ]  # fmt: skip
    try:
        for node in nodes:
            node.start()
        peer = cast("Cluster", Peer(nodes[1].bootstrap))
        fill(peer)
        yield peer
    finally:
        for node in nodes:
            node.kill()


def _node(folder: Path, port: int, options: list[str]) -> java.KafkaNode:
    node = java.KafkaNode(folder, options, _VERSION)
    node.port, node.bootstrap = port, f"127.0.0.1:{port}"
    return node


@pytest.fixture(scope="module")
def url(kafka: Cluster) -> Iterator[str]:
    """Return the address of a console of the cluster."""
    cluster = ClusterSettings("local", kafka.bootstrap)
    settings = ConsoleSettings((cluster,), ":memory:", port=0, first_password=PASSWORD)
    server = ConsoleServer(settings)
    server.start()
    try:
        yield server.url
    finally:
        server.stop()


@pytest.fixture(scope="module")
def watched(url: str) -> Iterator[Watched]:
    """Return a page of the admin."""
    with chromium() as browser, admin_page(browser, url) as page:
        yield page


@pytest.fixture
def page(watched: Watched) -> Iterator[Page]:
    """Return the page; the test fails if the browser's log has an error at its end."""
    with without_errors(watched) as page:
        yield page


def test_every_page_shows_apache_kafka(url: str) -> None:
    """Each page has the status 200 and no error."""
    session = ConsoleSession(url)
    session.login("admin", PASSWORD)
    responses = {name: session.get(path) for name, path in PAGES.items()}
    assert {
        name: (response.status, response.alert)
        for name, response in responses.items()
        if response.status != 200 or 'role="alert"' in response.text
    } == {}


# What the pages contain comes from the cluster; their scripts are the same with Ottla.
@pytest.mark.nightly("tests/compat/test_console_pages.py::test_every_page_shows_apache_kafka")
def test_every_page_shows_apache_kafka_in_a_browser(page: Page) -> None:
    """Each page has the status 200 and no error, also in the browser's log."""
    wrong = []
    for name, path in PAGES.items():
        response = page.goto(path)
        alerts = page.get_by_role("alert").all_inner_texts()
        if response is None or response.status != 200 or alerts:
            wrong.append((name, response and response.status, alerts))
    assert wrong == []


def test_the_pages_have_the_content_of_the_cluster(page: Page, watched: Watched) -> None:
    """Topics, groups, the transaction, options with documentation, and the controller's epoch."""
    page.goto("/c/local/topics")
    expect(page.get_by_role("link", name="orders")).to_be_visible()
    page.goto("/c/local/group?id=billing")
    expect(page.locator("main")).to_contain_text("40")
    page.goto("/c/local/transaction?id=settlement")
    expect(page.locator("main")).to_contain_text("CompleteCommit")
    page.goto("/c/local/timeline")
    expect(page.get_by_role("cell", name=f"Node {_CONTROLLER}")).to_be_visible()
    epoch = page.locator("section", has_text="Controller and brokers").locator("td.n").first
    expect(epoch).not_to_have_text("–")
    page.goto("/c/local/brokers")
    watched.picture("apache-kafka")


def test_the_controller_is_no_broker(page: Page) -> None:
    """KRaft's metadata names any broker; the pages name the leader of the quorum, and no broker."""
    page.goto("/c/local/overview")
    figure = page.locator("dl.figures div", has_text="Controller")
    expect(figure).to_contain_text(f"{_CONTROLLER} not a broker")
    expect(page.get_by_text("controller", exact=True)).to_have_count(0)
    page.goto("/c/local/brokers")
    expect(page.locator("main")).to_contain_text(f"Controller: node {_CONTROLLER}, not a broker")
    expect(page.get_by_text("controller", exact=True)).to_have_count(0)
    page.goto("/c/local/brokers/1")
    expect(page.locator("dl.figures div", has_text="Role")).to_contain_text("broker")


def test_a_topic_lives(page: Page) -> None:
    """Create, produce, find the record, change an option, and delete by the typed name."""
    page.goto("/c/local/create-topic")
    page.get_by_label("Name", exact=True).fill("trial")
    page.get_by_label("Partitions").fill("2")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("status")).to_have_text("Topic trial is created.")
    page.goto("/c/local/topics/trial/produce")
    page.get_by_label("Key", exact=True).first.fill("k1")
    page.get_by_label("Value", exact=True).fill('{"price": 3}')
    page.get_by_role("button", name="Produce").click()
    expect(page.get_by_role("status")).to_contain_text("at offset 0")
    page.goto("/c/local/topics/trial/messages")
    page.get_by_label("Where").first.select_option("value")
    page.get_by_label("Text", exact=True).first.fill("price")
    page.get_by_role("button", name="Search all records").click()
    expect(page.locator("#state")).to_contain_text("1 found")
    page.goto("/c/local/topics/trial/settings")
    page.get_by_role("link", name="retention.ms", exact=True).click()
    page.get_by_label("Value (").fill("86400000")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", name="What would change")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("is set to 86400000")
    page.goto("/c/local/topics/trial")
    page.locator("summary", has_text="Delete the topic").click()
    page.get_by_label("Type trial to confirm").last.fill("trial")
    page.get_by_role("button", name="Delete the topic").click()
    expect(page.get_by_role("status")).to_have_text("Topic trial is deleted.")


def test_offsets_are_reset_after_a_dry_run(page: Page, kafka: Cluster) -> None:
    """The difference is shown, executed and undone."""
    commit(kafka, "clicked")
    page.goto("/c/local/group/offsets?id=clicked")
    page.get_by_label("Strategy").select_option("to-earliest")
    page.get_by_role("button", name="Dry run").click()
    expect(page.locator("tr.changed")).to_have_count(2)
    page.get_by_role("button", name="Change the offsets").click()
    expect(page.get_by_role("status")).to_have_text("The offsets are changed.")
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="Change the offsets").click()
    expect(page.locator("tbody tr").first).to_contain_text("10")


def test_an_acl_and_a_user_are_created_and_deleted(page: Page) -> None:
    """The broker has an authorizer; the password is not on any page."""
    page.goto("/c/local/acls")
    page.get_by_label("Principal").fill("User:ann")
    page.get_by_label("Operation").select_option("read")
    page.get_by_label("Name", exact=True).fill("orders")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("status")).to_be_visible()
    row = page.get_by_role("row", name="User:ann")
    page.goto("/c/local/acls")
    expect(row).to_contain_text("orders")
    page.get_by_label("User", exact=True).fill("ann")
    page.get_by_label("Password").fill("a secret of ann")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_be_visible()
    page.goto("/c/local/acls")
    expect(page.get_by_role("cell", name="ann", exact=True)).to_be_visible()
    assert "a secret of ann" not in page.content()
    row.locator("summary").click()
    expect(row).to_contain_text("No other ACL allows this operation on this resource")
    delete = row.get_by_role("button", name="Delete the ACL")
    row.get_by_label("Type User:ann to confirm").fill("User:an")
    expect(delete).to_be_disabled()
    row.get_by_label("Type User:ann to confirm").fill("User:ann")
    delete.click()
    expect(page.get_by_role("status")).to_be_visible()
    page.goto("/c/local/acls")
    expect(row).to_have_count(0)
    users = page.locator("section", has_text="SCRAM users")
    users.locator("summary").click()
    expect(users).to_contain_text("ann can no longer log in with SCRAM-SHA-512")
    users.get_by_label("Type ann to confirm").fill("ann")
    users.get_by_role("button", name="Delete the credential").click()
    expect(page.get_by_role("status")).to_be_visible()
    page.goto("/audit")
    expect(page.locator("tbody")).to_contain_text("user.delete-credential")
    expect(page.locator("tbody")).not_to_contain_text("a secret of ann")


# The fields of the forms that a browser sends unchanged.
DEFAULTS = {
    "add-acl": {
        "permission": "allow",
        "operation": "all",
        "resource_type": "topic",
        "pattern_type": "literal",
        "host": "*",
    },
    "save-user": {"mechanism": "SCRAM-SHA-256"},
}
# Wrong input of ACLs and users: the action, the fields of its form, and the reason.
WRONG = pytest.mark.parametrize(
    ("action", "fields", "reason"),
    [
        ("add-acl", {"principal": "ann", "resource_name": "orders"}, "User:ann"),
        ("add-acl", {"principal": "User:ann", "resource_name": ""}, "resource_name"),
        (
            "add-acl",
            {"principal": "User:ann", "resource_type": "cluster", "resource_name": "orders"},
            "kafka-cluster",
        ),
        (
            "add-acl",
            {"principal": "User:ann", "resource_name": "orders", "host": "node-7"},
            "neither * nor an IP address",
        ),
        ("save-user", {"user": "ann", "password": "x", "iterations": "1"}, "least is 4096"),
        ("save-user", {"user": "ann", "password": "x", "iterations": "99999"}, "iterations"),
    ],
    ids=["principal", "no-name", "cluster", "host", "few-iterations", "many-iterations"],
)


@WRONG
def test_wrong_input_of_acls_and_users_is_reported_in_the_form(
    url: str, kafka: Cluster, action: str, fields: dict[str, str], reason: str
) -> None:
    """The page has the sentence, the form what was typed, and the cluster is unchanged."""
    session = ConsoleSession(url)
    session.login("admin", PASSWORD)
    response = session.post("/c/local/acls", action, {**DEFAULTS[action], **fields})
    assert 400 <= response.status < 500
    assert reason in response.alert
    before, _, after = response.text.partition(f'value="{action}"')
    form = html.unescape(before.rpartition("<form")[2] + after.partition("</form>")[0])
    for name, value in fields.items():
        if name != "password" and value:
            assert value in form
    _assert_is_empty(kafka)


def _assert_is_empty(kafka: Cluster) -> None:
    client = AdminClient({"bootstrap.servers": kafka.bootstrap})
    assert client.describe_acls(ANY_ACL).result(10) == []
    assert client.describe_user_scram_credentials().result(10) == {}


@pytest.mark.nightly(
    "tests/compat/test_console_pages.py::test_wrong_input_of_acls_and_users_is_reported_in_the_form"
)
@WRONG
def test_wrong_input_of_acls_and_users_is_reported_in_a_browser(
    page: Page, watched: Watched, kafka: Cluster, action: str, fields: dict[str, str], reason: str
) -> None:
    """The form has the sentence and what was typed, without a barrier or an error in the log."""
    page.goto("/c/local/acls")
    form = page.locator(f'form:has([name="action"][value="{action}"])')
    enter(form, fields)
    form.get_by_role("button").click()
    expect(form.get_by_role("alert")).to_contain_text(reason)
    check(form, fields)
    assert watched.violations() == []
    # The browser logs each response that is an error.
    assert [text for text in watched.errors if "status of 4" not in text] == []
    watched.forgive()
    _assert_is_empty(kafka)


def test_a_quota_is_set_and_removed(page: Page) -> None:
    """The limit of a user appears in the table."""
    page.goto("/c/local/quotas")
    page.get_by_label("user", exact=True).fill("ann")
    page.get_by_label("producer_byte_rate").fill("1048576")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_be_visible()
    page.goto("/c/local/quotas")
    expect(page.get_by_role("row", name="ann")).to_contain_text("1.00 MiB/s")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("status")).to_be_visible()
