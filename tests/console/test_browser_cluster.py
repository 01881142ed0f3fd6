"""The console in Chromium with three brokers beside a second cluster, and with users of each role."""

import re
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicCollection
from confluent_kafka.admin import AdminClient
from kazoo.client import KazooClient
from playwright.sync_api import Browser, Page, expect

from ottla.console.accounts.roles import Role
from ottla.console.model.reassignments import Goal, ReassignmentRequest, execute, plan_moves
from ottla.console.server import ConsoleServer
from ottla.console.state import ConsoleSettings
from ottla.operations.survey.connections import ClusterSettings
from ottla.testing import Cluster
from ottla.testing.process import ZooKeeperProcess
from tests.console.chromium import Watched
from tests.console.session import PASSWORD

# Seconds: the plan, its progress and the drawings are what a user sees in a browser only.
pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

# Several times what a follower receives before its throttle takes effect: 1 MB in each response.
_LARGE_RECORDS = 60
OPTIONS = {"zookeeper.session.timeout.ms": "1000"}


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    """Return three brokers with the topic orders, and large records on one broker."""
    with Cluster(3, options=OPTIONS) as running:
        running.create_topic("orders", partitions=3, replication_factor=3)
        running.create_topic("stays")
        producer = Producer({"bootstrap.servers": running.bootstrap})
        for number in range(_LARGE_RECORDS):
            producer.produce("stays", b"x" * 100_000)
            producer.produce("orders", f'{{"card": "4000-{number:04}"}}', partition=number % 3)
        producer.flush(20)
        yield running


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a ZooKeeper with the znode of a broker."""
    with ZooKeeperProcess(tmp_path_factory.mktemp("tree")) as running:
        client = KazooClient(running.connect)
        client.start()
        client.create("/brokers/ids/7", b'{"host": "kafka-7"}', makepath=True)
        client.stop()
        client.close()
        yield running.connect


@pytest.fixture(scope="module")
def console(three: Cluster, ensemble: str) -> Iterator[ConsoleServer]:
    """Return a console of the cluster and of another one, with a user of each role."""
    with Cluster() as other:
        other.create_topic("elsewhere")
        clusters = (
            ClusterSettings("local", three.bootstrap),
            ClusterSettings("other", other.bootstrap, zookeeper=ensemble, is_read_only=True),
        )
        running = ConsoleServer(
            ConsoleSettings(clusters, ":memory:", port=0, first_password=PASSWORD)
        )
        running.start()
        for role in (Role.VIEWER, Role.EDITOR):
            running.console.users.create(role.label, PASSWORD, role, must_change=False)
        yield running
        running.stop()


def test_both_clusters_are_shown_and_one_may_only_be_read(page: Page) -> None:
    """Each has a card; the read-only one has no form that changes it."""
    page.goto("/")
    for name in ("local", "other"):
        expect(page.get_by_role("heading", name=name)).to_be_visible()
    page.get_by_role("heading", name="other").get_by_role("link").click()
    page.goto("/c/other/topics")
    expect(page.get_by_role("link", name="elsewhere")).to_be_visible()
    expect(page.get_by_role("link", name="Create a topic")).to_have_count(0)
    page.goto("/c/other/topics/elsewhere")
    expect(page.locator("summary", has_text="Delete the topic")).to_have_count(0)


def test_the_chosen_cluster_stays_on_pages_of_no_cluster(page: Page) -> None:
    """From the second cluster to Alerts, Audit, Users and Account, through forms, and back to it."""
    page.goto("/c/other/topics")
    chosen, side = page.locator("header summary").first, page.locator("nav.side")
    for name in ("Alerts", "Audit", "Users"):
        side.locator(f"a[href^='/{name.lower()}']").click()
        expect(page).to_have_url(re.compile(f"/{name.lower()}"))
        expect(chosen).to_contain_text("other")
    page.get_by_label("Name", exact=True).fill("stays")
    page.get_by_role("button", name="Create a user").click()
    expect(page.get_by_role("row", name="stays")).to_be_visible()
    expect(chosen).to_contain_text("other")
    side.get_by_role("link", name="Audit").click()
    page.get_by_label("Filter").fill("stays")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("main tbody tr").first).to_contain_text("stays")
    expect(chosen).to_contain_text("other")
    side.get_by_role("link", name="Alerts").click()
    page.get_by_role("button", name="Silence", exact=True).click()
    expect(page.get_by_role("status")).to_be_visible()
    expect(chosen).to_contain_text("other")
    page.locator("header").get_by_text("admin", exact=True).click()
    page.get_by_role("link", name="Account").click()
    expect(chosen).to_contain_text("other")
    side.get_by_role("link", name="Topics").click()
    expect(page).to_have_url(re.compile("/c/other/topics"))
    expect(page.get_by_role("link", name="elsewhere")).to_be_visible()


def test_the_tree_of_zookeeper_is_read(page: Page, watched: Watched) -> None:
    """Links lead to a znode and back; a four-letter command has its output below."""
    page.goto("/c/other/overview")
    page.get_by_role("link", name="ZooKeeper").click()
    for name in ("brokers", "ids", "7"):
        page.locator("#children").get_by_role("link", name=name, exact=True).click()
    expect(page.locator("main pre")).to_contain_text('"host": "kafka-7"')
    assert watched.violations() == []
    watched.picture("zookeeper", is_dark=True)
    watched.expect_to_fit_a_phone()
    page.get_by_role("link", name="ruok").click()
    expect(page.locator("main")).to_contain_text("imok")


def test_a_partition_is_moved_by_a_plan_with_throttle_progress_and_cancel(
    page: Page, three: Cluster, watched: Watched
) -> None:
    """The preview names bytes and balance; the move shows its progress, and can be cancelled."""
    leader = three.leader("stays")
    target = next(broker for broker in three.brokers if broker != leader)
    page.goto("/c/local/reassignments")
    page.get_by_label("Goal").select_option("explicit")
    page.get_by_label("Targets, one topic-0=1,2,3 per line").fill(f"stays-0={target}")
    page.get_by_role("button", name="Preview").click()
    plan = page.locator("section", has=page.get_by_role("heading", name="Plan", exact=True))
    expect(plan).to_contain_text("Skew after")
    expect(plan.get_by_role("row", name="stays-0")).to_contain_text("MiB")
    watched.picture("reassignment-plan", is_dark=False)
    watched.expect_to_fit_a_phone()
    throttle = page.get_by_label("Throttle (MiB/s, empty: none)")
    throttle.fill("0")
    page.get_by_role("button", name="Start").click()
    expect(plan.get_by_role("alert")).to_contain_text("not a positive number of MiB")
    expect(throttle).to_have_value("0")
    # The page is the response to a form: a refresh would remove the plan.
    expect(page.locator("#main")).to_have_attribute("data-refresh-s", "0")
    watched.forgive()
    throttle.fill("0.001")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("status")).to_have_text("One partition is being moved.")
    row = page.get_by_role("row", name="stays-0")
    expect(row).to_contain_text("%")
    expect(page.locator("main")).to_contain_text("A throttle is set")
    assert watched.violations() == []
    watched.picture("reassignment-progress", is_dark=True)
    change = page.get_by_label("Throttle (MiB/s)")
    change.fill("0")
    page.get_by_role("button", name="Change").click()
    expect(page.get_by_role("alert")).to_contain_text("not a positive number of MiB")
    expect(change).to_have_value("0")
    watched.forgive()
    change.fill("0.002")
    page.get_by_role("button", name="Change").click()
    expect(page.get_by_role("status")).to_have_text("The throttle is changed.")
    expect(page.locator("main")).to_contain_text("2.05 KiB/s")
    row.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("status")).to_have_text("The reassignment is cancelled.")
    expect(page.get_by_text("No partition is being moved.")).to_be_visible()
    page.get_by_role("button", name="Remove the throttles").click()
    expect(page.locator("main")).not_to_contain_text("A throttle is set")


def test_two_users_start_plans_for_the_same_partition(
    page: Page, watched: Watched, browser: Browser, console: ConsoleServer, three: Cluster
) -> None:
    """The second plan is outdated: its user reads why, and the first one's move continues."""
    console.console.users.create("grace", PASSWORD, Role.ADMIN, must_change=False)
    three.create_topic("both")
    leader = three.leader("both")
    first, second = (broker for broker in three.brokers if broker != leader)
    context = browser.new_context(base_url=console.url)
    try:
        other = context.new_page()
        other.goto("/login")
        other.get_by_label("User").fill("grace")
        other.get_by_label("Password").fill(PASSWORD)
        other.get_by_role("button", name="Log in").click()
        expect(other.get_by_role("navigation", name="Main navigation")).to_be_visible()
        for user, target in ((page, first), (other, second)):
            user.goto("/c/local/reassignments")
            user.get_by_label("Goal").select_option("explicit")
            user.get_by_label("Targets, one topic-0=1,2,3 per line").fill(f"both-0={target}")
            user.get_by_role("button", name="Preview").click()
            expect(user.get_by_role("heading", name="Plan", exact=True)).to_be_visible()
        page.get_by_role("button", name="Start").click()
        expect(page.get_by_role("status")).to_have_text("One partition is being moved.")
        other.get_by_role("button", name="Start").click()
        plan = other.locator("section", has=other.get_by_role("heading", name="Plan", exact=True))
        expect(plan.get_by_role("alert")).to_contain_text(
            f"now, not {leader} as in the plan. Make the plan again."
        )
        assert watched.errors == []
    finally:
        context.close()
    client = AdminClient({"bootstrap.servers": three.bootstrap})
    expect(page.get_by_text("No partition is being moved.")).to_be_visible(timeout=20_000)
    (described,) = [
        row.result(10) for row in client.describe_topics(TopicCollection(["both"])).values()
    ]
    assert [node.id for node in described.partitions[0].replicas] == [first]


@pytest.mark.parametrize("path", ["brokers", "topics/elected/partitions"])
def test_the_preferred_leader_is_elected_by_a_button(
    page: Page, three: Cluster, console: ConsoleServer, path: str
) -> None:
    """The leader is no longer the first replica; after the election it is."""
    if "elected" not in three.topics():
        three.create_topic("elected", replication_factor=3)
    leader = three.leader("elected")
    preferred, *others = (broker for broker in three.brokers if broker != leader)
    replicas = (preferred, leader, *others)
    connection = console.console.clusters.get("local")
    request = ReassignmentRequest(Goal.EXPLICIT, targets={("elected", 0): replicas})
    execute(connection, plan_moves(connection, request).moves)
    page.goto("/c/local/topics/elected/partitions")
    expect(page.locator(".replica").first).to_have_text(str(preferred))
    expect(page.locator(".replica.leader")).to_have_text(str(leader))
    page.goto(f"/c/local/{path}")
    page.get_by_role("button", name="Elect preferred leaders").click()
    expect(page.get_by_role("status")).to_contain_text("leaders are elected")
    client = AdminClient({"bootstrap.servers": three.bootstrap})
    described = client.describe_topics(TopicCollection(["elected"]))["elected"].result(10)
    assert described.partitions[0].leader.id == preferred
    page.goto("/c/local/topics/elected/partitions")
    expect(page.locator(".replica.leader")).to_have_text(str(preferred))


def test_partitions_and_the_timeline_show_a_dead_broker(
    page: Page, three: Cluster, watched: Watched
) -> None:
    """The map marks its replicas, the timeline the changes of ISR, and it stays listed as absent."""
    page.goto("/c/local/topics/orders/partitions")
    expect(page.get_by_text("in sync", exact=True)).to_have_count(3)
    victim = next(broker for broker in three.brokers if broker != three.leader("orders"))
    three.kill(victim)
    try:
        expect(page.get_by_text("under-replicated", exact=True)).to_have_count(3, timeout=30_000)
        expect(page.locator(".replica.offline", has_text=str(victim))).to_have_count(3)
        page.goto("/c/local/timeline?topic=orders&minutes=15")
        missing = page.locator("td .badge.warn", has_text=str(victim))
        expect(missing.first).to_be_visible(timeout=30_000)
        expect(page.locator(".lane")).to_have_count(3 + 1 + 3)
        for path in ("brokers", "overview"):
            page.goto(f"/c/local/{path}")
            row = page.locator("main tr", has_text="absent")
            expect(row.locator("td").first).to_have_text(f"{victim} absent")
            expect(row).to_contain_text("last seen")
    finally:
        three.restart(victim)
    page.goto("/c/local/topics/orders/partitions")
    expect(page.get_by_text("in sync", exact=True)).to_have_count(3, timeout=30_000)
    watched.forgive()


def test_the_members_of_a_group_and_what_they_read_are_drawn(
    page: Page, three: Cluster, watched: Watched
) -> None:
    """A member has a box with its partitions, and a row in the table."""
    options = {"group.id": "polling", "client.id": "reader", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": three.bootstrap, **options})
    consumer.subscribe(["orders"])
    try:
        for _ in range(100):
            if consumer.poll(0.1) is not None:
                break
        page.goto("/c/local/group?id=polling")
        drawing = page.get_by_role("region", name="Who reads what")
        expect(drawing.locator("rect.member")).to_have_count(1)
        expect(drawing).to_contain_text("0, 1, 2")
        expect(drawing.locator("path.edge")).to_have_count(1)
        expect(page.get_by_role("cell", name="reader", exact=True)).to_be_visible()
        assert watched.violations() == []
        watched.picture("group-members", is_dark=True)
    finally:
        consumer.close()


def test_roles_and_masked_fields(page: Page, browser: Browser, console: ConsoleServer) -> None:
    """An admin masks a field; an editor sees stars and no page of users, a viewer no form."""
    page.goto("/users")
    page.get_by_label("Topics (regular expression)").fill("orders")
    page.get_by_label("JSON path or header").fill("$.card")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("cell", name="$.card")).to_be_visible()
    page.get_by_label("Name", exact=True).fill("ada")
    page.get_by_role("button", name="Create a user").click()
    expect(page.get_by_role("row", name="ada")).to_contain_text("one-time password")
    page.goto("/c/local/topics/orders/messages")
    expect(page.locator("#rows")).to_contain_text("4000-")
    context = browser.new_context(base_url=console.url)
    other = context.new_page()
    try:
        for role in ("editor", "viewer"):
            other.goto("/login")
            other.get_by_label("User").fill(role)
            other.get_by_label("Password").fill(PASSWORD)
            other.get_by_role("button", name="Log in").click()
            expect(other.locator("main")).to_be_visible()
            other.goto("/c/local/topics/orders/messages")
            expect(other.locator("#rows tr").first).to_be_visible()
            expect(other.locator("#rows")).not_to_contain_text("4000-")
            other.goto("/c/local/topics/orders")
            forms = other.locator("summary", has_text="Delete the topic")
            expect(forms).to_have_count(1 if role == "editor" else 0)
            response = other.goto("/users")
            assert response is not None
            assert response.status == 403
            context.clear_cookies()
    finally:
        context.close()
