"""Accounts, alerts, and two users who change the same thing, in Chromium."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from playwright.sync_api import Browser, Page, expect

from ottla.console.accounts.roles import Role
from ottla.console.alerts.addresses import parse_networks
from ottla.console.server import ConsoleServer
from ottla.console.state import ConsoleSettings
from ottla.operations.survey.connections import ClusterSettings
from ottla.testing import Cluster
from tests.console.chromium import Watched
from tests.console.conftest import commit
from tests.console.session import PASSWORD
from tests.unit.console.alerts.receivers import Receiver, running

# Seconds: only a browser has sessions and forms as users have them.
pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]


@contextmanager
def visitor(browser: Browser, url: str) -> Iterator[Page]:
    """Yield a page of another browser session, which is not logged in."""
    context = browser.new_context(base_url=url)
    try:
        page = context.new_page()
        page.goto("/login")
        yield page
    finally:
        context.close()


def log_in(page: Page, user: str, password: str) -> None:
    """Fill in the form of the login."""
    page.get_by_label("User").fill(user)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()


def choose_password(page: Page, password: str = PASSWORD) -> None:
    """Replace a one-time password, as the page demands; it was typed a moment ago."""
    expect(page.get_by_text("This is a one-time password")).to_be_visible()
    expect(page.get_by_label("Current password")).to_have_count(0)
    page.get_by_label("New password, at least").fill(password)
    page.get_by_label("New password again").fill(password)
    page.get_by_role("button", name="Change the password").click()
    expect(page.get_by_role("status")).to_have_text("Your password is changed.")


# The fixture makes the hashes of passwords cheap.
@pytest.mark.usefixtures("console")
def test_the_first_start_has_a_one_time_password(browser: Browser, cluster: Cluster) -> None:
    """The admin logs in with it once, and must choose a password before any other page."""
    cluster_settings = ClusterSettings("local", cluster.bootstrap)
    server = ConsoleServer(ConsoleSettings((cluster_settings,), ":memory:", port=0))
    server.start()
    try:
        password = server.console.one_time_password
        assert password is not None
        with visitor(browser, server.url) as page:
            expect(page.locator("main")).to_contain_text("one-time password of the user admin")
            log_in(page, "admin", password)
            expect(page.get_by_role("heading", name="admin")).to_be_visible()
            page.goto("/c/local/topics")
            expect(page.get_by_role("heading", name="admin")).to_be_visible()
            choose_password(page)
            page.goto("/c/local/topics")
            expect(page.get_by_role("link", name="orders")).to_be_visible()
        with visitor(browser, server.url) as page:
            log_in(page, "admin", password)
            expect(page.get_by_role("alert")).to_have_text("User name or password is wrong.")
    finally:
        server.stop()


def test_a_user_is_created_promoted_and_deleted(
    page: Page, browser: Browser, console: ConsoleServer
) -> None:
    """The new user logs in; a change of the role and the deletion end the user's session."""
    users = console.console.users
    page.goto("/users")
    page.get_by_label("Name", exact=True).fill("grace")
    create = page.get_by_role("button", name="Create a user")
    page.locator("form", has=create).get_by_label("Role").select_option("viewer")
    create.click()
    status = page.get_by_role("status")
    expect(status).to_contain_text("User grace is created with the one-time password")
    password = status.inner_text().split()[-1]
    with visitor(browser, console.url) as other:
        log_in(other, "grace", password)
        choose_password(other)
        other.goto("/c/local/topics")
        expect(other.get_by_role("link", name="orders")).to_be_visible()
        expect(other.get_by_role("link", name="Create a topic")).to_have_count(0)
        page.get_by_label("Role of grace").select_option("editor")
        page.get_by_role("row", name="grace").get_by_role("button", name="Change").click()
        expect(status).to_have_text("User grace has the role editor now.")
        grace = users.find("grace")
        assert grace is not None
        assert grace.role is Role.EDITOR
        other.goto("/c/local/topics")
        log_in(other, "grace", PASSWORD)
        expect(other.get_by_role("link", name="Create a topic")).to_be_visible()
        delete = page.get_by_role("row", name="grace").locator("details", has_text="Delete")
        delete.locator("summary").click()
        expect(delete).to_contain_text("password and sessions are deleted")
        expect(delete.get_by_role("button", name="Delete the user")).to_be_disabled()
        delete.get_by_label("Type grace to confirm").fill("grace")
        delete.get_by_role("button", name="Delete the user").click()
        expect(status).to_have_text("User grace is deleted.")
        assert users.find("grace") is None
        other.goto("/c/local/topics")
        expect(other.get_by_role("button", name="Log in")).to_be_visible()


def test_a_masking_rule_applies_until_it_is_deleted(
    page: Page, browser: Browser, console: ConsoleServer
) -> None:
    """An editor reads stars, and the card number again after the deletion."""
    page.goto("/users")
    page.get_by_label("Topics (regular expression)").fill("orders")
    page.get_by_label("JSON path or header").fill("$.order.card")
    page.get_by_label("Only matches of").fill(r"4000-\d+")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("status")).to_have_text("The masking rule is added.")
    with visitor(browser, console.url) as other:
        log_in(other, "editor", PASSWORD)
        expect(other.get_by_role("navigation", name="Main navigation")).to_be_visible()
        other.goto("/c/local/topics/orders/messages/0/0")
        expect(other.locator("main pre")).to_contain_text("***")
        expect(other.locator("main pre")).not_to_contain_text("4000-")
        page.get_by_role("row", name="$.order.card").get_by_role("button", name="Delete").click()
        expect(page.get_by_role("status")).to_have_text("The masking rule is deleted.")
        other.reload()
        expect(other.locator("main pre")).to_contain_text("4000-")


@pytest.fixture
def receiver(console: ConsoleServer) -> Iterator[Receiver]:
    """Return a local webhook that the console may reach."""
    alerts = console.console.alerts
    alerts._allowed = parse_networks(["127.0.0.1/32"])
    with running(Receiver()) as server:
        yield server
    alerts._allowed = ()


def test_a_channel_is_tested_and_a_silence_holds_notifications_back(
    page: Page, console: ConsoleServer, receiver: Receiver
) -> None:
    """The test arrives; a silenced incident is shown and not sent; its end is in the history."""
    alerts, connection = console.console.alerts, console.console.clusters.get("local")
    status = page.get_by_role("status")
    page.goto("/alerts")
    page.locator("summary", has_text="Add a channel").click()
    page.get_by_label("Name", exact=True).last.fill("hook")
    page.get_by_label("URL").fill(receiver.url)
    page.get_by_role("button", name="Add", exact=True).last.click()
    expect(status).to_have_text("The channel hook is added.")
    page.get_by_role("row", name="hook").get_by_role("button", name="Test").click()
    expect(status).to_have_text("A test notification is sent to hook.")
    assert receiver.last["labels"] == {"reason": "test"}
    page.locator("summary", has_text="Add a rule").click()
    page.get_by_label("Name", exact=True).first.fill("late")
    page.get_by_label("Limit").fill("5")
    page.get_by_label("After seconds", exact=True).fill("0")
    page.get_by_role("checkbox", name="hook").check()
    page.get_by_role("button", name="Add", exact=True).first.click()
    expect(status).to_have_text("The rule late is added.")
    silences = page.locator("section", has=page.get_by_role("heading", name="Silences"))
    silences.get_by_label("Minutes").fill("5")
    silences.get_by_label("Comment").fill("works")
    silences.get_by_role("button", name="Silence").click()
    expect(status).to_have_text("The silence begins.")
    expect(silences.get_by_role("row", name="works")).to_contain_text("admin")
    console.console.sampler.sample(connection)
    alerts.wait()
    page.goto("/alerts")
    is_open = page.locator("section", has=page.get_by_role("heading", name="Open incidents"))
    expect(is_open).to_contain_text("Group billing is 40 records behind (limit 5).")
    assert len(receiver.received) == 1
    silences.get_by_role("button", name="End").click()
    expect(status).to_have_text("The silence is over.")
    console.console.sampler.sample(connection)
    alerts.wait()
    assert receiver.last["title"] == "[WARNING] local: late"
    page.get_by_role("row", name="late").get_by_role("button", name="Switch off").click()
    expect(status).to_have_text("The rule late is changed.")
    history = page.locator("section", has=page.get_by_role("heading", name="History"))
    expect(history).to_contain_text("Group billing is 40 records behind (limit 5).")
    expect(is_open).to_contain_text("Nothing fires.")
    page.get_by_role("row", name="late").get_by_role("button", name="Delete").click()
    expect(status).to_have_text("The rule late is deleted.")


@pytest.fixture(scope="module")
def editor(browser: Browser, console: ConsoleServer) -> Iterator[Page]:
    """Return the page of an editor, in a session beside the admin's."""
    with visitor(browser, console.url) as page:
        log_in(page, "editor", PASSWORD)
        expect(page.get_by_role("navigation", name="Main navigation")).to_be_visible()
        yield page


def test_two_users_change_the_same_option(watched: Watched, editor: Page, cluster: Cluster) -> None:
    """The second change is refused with the new value, and the typed one stays in the form."""
    cluster.create_topic("shared")
    for page in (watched.page, editor):
        page.goto("/c/local/topics/shared/settings?edit=retention.ms")
    watched.page.get_by_label("Value (").fill("1000")
    watched.page.get_by_role("button", name="Save").click()
    expect(watched.page.get_by_role("status")).to_have_text("retention.ms is set to 1000.")
    editor.get_by_label("Value (").fill("5000")
    editor.get_by_role("button", name="Save").click()
    expect(editor.get_by_role("alert")).to_have_text(
        "retention.ms was changed to 1000 after this page was shown: check it and save again."
    )
    expect(editor.get_by_label("Value (")).to_have_value("5000")
    resource = ConfigResource(ResourceType.TOPIC, "shared")
    client = AdminClient({"bootstrap.servers": cluster.bootstrap})
    options = client.describe_configs([resource])[resource].result(10)
    assert options["retention.ms"].value == "1000"
    editor.get_by_role("button", name="Save").click()
    expect(editor.get_by_role("status")).to_have_text("retention.ms is set to 5000.")
    options = client.describe_configs([resource])[resource].result(10)
    assert options["retention.ms"].value == "5000"


def test_two_users_execute_plans_for_the_same_offsets(
    watched: Watched, editor: Page, cluster: Cluster
) -> None:
    """The second plan is outdated: its user reads why, and the group keeps the first one's."""
    commit(cluster, "both")
    for page, offset in ((watched.page, "3"), (editor, "7")):
        page.goto("/c/local/group/offsets?id=both")
        page.get_by_label("Strategy").select_option("to-offset")
        page.get_by_label("Offset", exact=True).fill(offset)
        page.get_by_role("button", name="Dry run").click()
        expect(page.locator("tr.changed")).to_have_count(2)
    watched.page.get_by_role("button", name="Change the offsets").click()
    expect(watched.page.get_by_role("status")).to_have_text("The offsets are changed.")
    editor.get_by_role("button", name="Change the offsets").click()
    expect(editor.get_by_role("alert")).to_contain_text("is 3 now, not 10 as in the plan")
    client = AdminClient({"bootstrap.servers": cluster.bootstrap})
    request = ConsumerGroupTopicPartitions("both")
    answer = client.list_consumer_group_offsets([request])["both"].result(10)
    assert [row.offset for row in answer.topic_partitions] == [3, 3]


def test_two_users_edit_the_same_rule(
    watched: Watched, editor: Page, console: ConsoleServer
) -> None:
    """The second form is outdated, and keeps what was typed; a deleted rule is reported, too."""
    store = console.console.alerts.store
    editor.goto("/alerts")
    editor.locator("summary", has_text="Add a rule").click()
    editor.get_by_label("Name", exact=True).first.fill("shared")
    editor.get_by_label("Limit").fill("100")
    editor.get_by_role("button", name="Add", exact=True).first.click()
    expect(editor.get_by_role("status")).to_have_text("The rule shared is added.")
    (rule,) = [row for row in store.rules() if row.rule.name == "shared"]
    for page, limit in ((watched.page, "200"), (editor, "300")):
        page.goto(f"/alerts?edit-rule={rule.id}")
        page.get_by_label("Limit").fill(limit)
    watched.page.get_by_role("button", name="Save").click()
    expect(watched.page.get_by_role("status")).to_have_text("The rule shared is changed.")
    editor.get_by_role("button", name="Save").click()
    expect(editor.get_by_role("alert")).to_contain_text("another user")
    expect(editor.get_by_label("Limit")).to_have_value("300")
    assert store.rule(rule.id).threshold == 200
    row = watched.page.get_by_role("row", name="shared")
    row.get_by_role("button", name="Delete").click()
    expect(watched.page.get_by_role("status")).to_have_text("The rule shared is deleted.")
    editor.get_by_role("button", name="Save").click()
    expect(editor.get_by_role("alert")).to_be_visible()
    assert [row for row in store.rules() if row.id == rule.id] == []
