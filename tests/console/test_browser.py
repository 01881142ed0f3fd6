"""The console in Chromium: every page without an error in the log or a barrier, and the scripts."""

import re

import pytest
from confluent_kafka import Producer
from playwright.sync_api import Browser, Page, ViewportSize, expect

from ottla.console.server import ConsoleServer
from ottla.testing import Cluster
from tests.console.chromium import DESKTOP, PHONE, Watched
from tests.console.conftest import HOSTILE, commit
from tests.console.examples import add_an_hour
from tests.unit.console.streams.test_describe_text import WORDS

# Half a minute: only a browser runs the scripts, and shows barriers and errors of its own.
pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

# Pages by the names of their pictures.
PAGES = {
    "clusters": "/",
    "overview": "/c/local/overview",
    "brokers": "/c/local/brokers",
    "broker": "/c/local/brokers/1",
    "broker-settings": "/c/local/brokers/1/settings?q=retention&edit=log.retention.ms",
    "broker-apis": "/c/local/brokers/1/apis",
    "clients-without-address": "/c/local/clients",
    "broker-defaults": "/c/local/brokers/defaults",
    "timeline": "/c/local/timeline?topic=orders&minutes=15",
    "reassignments": "/c/local/reassignments",
    "topics": "/c/local/topics?internal=1",
    "topic-new": "/c/local/create-topic",
    "topic": "/c/local/topics/orders",
    "messages": "/c/local/topics/orders/messages",
    "message": "/c/local/topics/orders/messages/0/1",
    "consumers": "/c/local/topics/orders/consumers",
    "partitions": "/c/local/topics/orders/partitions",
    "log": "/c/local/topics/orders/partitions/0",
    "settings": "/c/local/topics/orders/settings?edit=retention.ms",
    "statistics": "/c/local/topics/orders/statistics?scan=10000",
    "produce": "/c/local/topics/orders/produce?from=0:1",
    "groups": "/c/local/groups",
    "group": "/c/local/group?id=billing",
    "offsets": "/c/local/group/offsets?id=billing",
    "streams": "/c/local/streams",
    "transactions": "/c/local/transactions?hanging=1",
    "transaction": "/c/local/transaction?id=settlement",
    "acls": "/c/local/acls",
    "quotas": "/c/local/quotas",
    "sql": "/c/local/sql?sql=SELECT+1",
    "alerts": "/alerts",
    "audit": "/audit",
    "users": "/users",
    "account": "/account",
    "shortcuts": "/shortcuts",
}
_REFRESH_MS = 6000
DARK = ("overview", "messages", "group", "settings")


@pytest.fixture(scope="module")
def console(console: ConsoleServer) -> ConsoleServer:
    """Return the console; the history of its cluster has an hour."""
    add_an_hour(console)
    return console


@pytest.mark.parametrize("name", PAGES)
def test_page_has_no_error_and_no_barrier(page: Page, watched: Watched, name: str) -> None:
    """The page loads, its scripts run, axe-core finds no serious violation, and it fits a phone."""
    response = page.goto(PAGES[name])
    assert response is not None
    assert response.status == 200
    expect(page.get_by_role("alert")).to_have_count(0)
    assert watched.violations() == []
    watched.picture(name, is_dark=True)
    watched.expect_to_fit_a_phone()


def test_the_login_has_no_error_and_no_barrier(browser: Browser, console: ConsoleServer) -> None:
    """A visitor who asks for a page is sent to the login, which is as accessible as the pages."""
    context = browser.new_context(viewport=DESKTOP, base_url=console.url)
    try:
        visitor = Watched(context.new_page())
        visitor.page.goto("/c/local/topics")
        expect(visitor.page.get_by_label("Password")).to_be_visible()
        assert visitor.violations() == []
        assert visitor.errors == []
    finally:
        context.close()


@pytest.mark.parametrize("name", DARK)
def test_dark_page_has_enough_contrast(page: Page, watched: Watched, name: str) -> None:
    """The dark theme follows the system, and has no barrier either."""
    page.emulate_media(color_scheme="dark")
    page.goto(PAGES[name])
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colour == "rgb(18, 22, 29)"
    assert watched.violations() == []
    page.emulate_media(color_scheme="light")


@pytest.mark.parametrize("name", ["overview", "messages", "topics", "group"])
def test_page_fits_a_phone(page: Page, watched: Watched, name: str) -> None:
    """Tables scroll inside of their cards; the page itself does not scroll sideways."""
    page.set_viewport_size(PHONE)
    page.goto(PAGES[name])
    width = page.evaluate("document.documentElement.scrollWidth")
    watched.picture(f"{name}-phone")
    page.set_viewport_size(DESKTOP)
    assert width <= 390


def test_records_come_before_their_filters_on_a_phone(page: Page) -> None:
    """A button leads to the filters; on a desktop they are above the records."""
    tops = {}
    for viewport in (PHONE, DESKTOP):
        page.set_viewport_size(viewport)
        page.goto(PAGES["messages"])
        boxes = [page.locator(part).bounding_box() for part in ("#rows", "#filter")]
        tops[viewport["width"]] = [box["y"] for box in boxes if box is not None]
        assert page.locator("a.narrow").is_visible() is (viewport is PHONE)
    records, filters = tops[PHONE["width"]]
    assert records < filters
    records, filters = tops[DESKTOP["width"]]
    assert filters < records


def test_times_are_typed_in_the_zone_of_the_browser(page: Page, console: ConsoleServer) -> None:
    """The form names the zone and sends it; a link with a time keeps the zone of its author."""
    browser = page.context.browser
    assert browser is not None
    state = page.context.storage_state()
    context = browser.new_context(
        base_url=console.url, timezone_id="Europe/Berlin", storage_state=state
    )
    try:
        own = context.new_page()
        own.goto(PAGES["messages"])
        own.get_by_label("Until (Europe/Berlin)").fill("2000-01-01T00:00")
        own.get_by_role("button", name="Show").click()
        expect(own.locator("#no-rows")).to_be_visible()
        assert "zone=Europe%2FBerlin" in own.url
        own.goto(f"{PAGES['messages']}?until=2000-01-01T00:00&zone=Asia/Tokyo")
        expect(own.get_by_label("Until (Asia/Tokyo)")).to_have_value("2000-01-01T00:00")
    finally:
        context.close()


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_record_is_in_sight_with_all_its_columns(page: Page, viewport: ViewportSize) -> None:
    """No part of the table is outside of its card; the value has the width that is left."""
    page.set_viewport_size(viewport)
    try:
        page.goto(PAGES["messages"])
        table = page.locator(".messages .scroll")
        assert table.evaluate("node => node.scrollWidth - node.clientWidth") <= 0
        value = table.locator("td.value").first.bounding_box()
        assert value is not None
        assert value["width"] > 300
    finally:
        page.set_viewport_size(DESKTOP)


def test_the_meaning_of_an_option_is_in_sight_on_a_phone(page: Page) -> None:
    """The table of options is not wider than its card."""
    page.set_viewport_size(PHONE)
    try:
        page.goto(PAGES["settings"])
        table = page.locator(".settings .scroll")
        assert table.evaluate("node => node.scrollWidth - node.clientWidth") <= 0
        meaning = table.locator("td.meaning").first.bounding_box()
        assert meaning is not None
        assert meaning["x"] + meaning["width"] <= PHONE["width"]
    finally:
        page.set_viewport_size(DESKTOP)


@pytest.mark.parametrize("name", ["quotas", "alerts", "users"])
def test_the_current_section_is_in_sight_on_a_phone(page: Page, name: str) -> None:
    """The navigation is wider than a phone: it is scrolled to the section of the page."""
    page.set_viewport_size(PHONE)
    try:
        page.goto(PAGES[name])
        link = page.locator(".side [aria-current]").bounding_box()
        assert link is not None
        assert link["x"] >= 0
        assert link["x"] + link["width"] <= PHONE["width"]
    finally:
        page.set_viewport_size(DESKTOP)


def test_an_empty_table_says_so_on_a_phone(page: Page) -> None:
    """The sentence is not in the middle of a table that is wider than its card."""
    page.set_viewport_size(PHONE)
    try:
        page.goto(PAGES["quotas"])
        expect(page.get_by_text("No quotas are set.")).to_have_css("text-align", "left")
    finally:
        page.set_viewport_size(DESKTOP)


def test_names_of_options_are_not_broken(page: Page) -> None:
    """The column is as wide as the longest name, so that a name can be read and copied."""
    page.goto("/c/local/brokers/1/settings")
    lines = page.locator(".settings td.option a").evaluate_all(
        "nodes => nodes.filter((node) => node.getClientRects().length > 1).map((node) => node.text)"
    )
    assert lines == []


def test_a_row_with_a_button_is_one_line(page: Page) -> None:
    """The texts of a row are in the middle of its button's height."""
    page.goto(PAGES["users"])
    row = page.locator("main tbody tr").first
    middles = row.evaluate(
        """row => [row.querySelector("td").firstChild, row.querySelector("button")].map((node) => {
            const range = document.createRange();
            range.selectNode(node);
            const box = range.getBoundingClientRect();
            return box.top + box.height / 2;
        })"""
    )
    assert abs(middles[0] - middles[1]) <= 2


def test_keys_open_the_search_and_the_sections(page: Page) -> None:
    """`/` searches everything, `g t` goes to the topics, `?` shows the keys."""
    page.goto("/c/local/overview")
    page.keyboard.press("/")
    page.get_by_label("Search topics, groups").fill("billing")
    expect(page.locator("#search-results a")).to_have_text(["billinggroup"])
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/c/local/group\?id=billing"))
    page.wait_for_load_state()
    page.keyboard.press("g")
    page.keyboard.press("t")
    expect(page).to_have_url(re.compile("/c/local/topics$"))
    page.wait_for_load_state()
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keyboard")).to_be_visible()


def test_a_topic_is_created_filled_and_deleted_by_its_typed_name(page: Page) -> None:
    """The button that deletes works only after the name is typed."""
    page.goto("/c/local/topics")
    page.get_by_role("link", name="Create a topic").click()
    page.get_by_label("Name", exact=True).fill("trial")
    page.get_by_label("Partitions").fill("2")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("status")).to_have_text("Topic trial is created.")
    page.get_by_role("link", name="Produce").click()
    page.get_by_label("Value", exact=True).fill('{"price": 3}')
    page.get_by_role("button", name="Produce").click()
    expect(page.get_by_role("status")).to_contain_text("at offset 0")
    page.goto("/c/local/topics/trial/messages")
    expect(page.locator("#rows tr")).to_have_count(1)
    page.locator("#rows summary").click()
    expect(page.locator("#rows pre")).to_contain_text('"price": 3')
    page.goto("/c/local/topics/trial")
    page.locator("summary", has_text="Delete the topic").click()
    button = page.get_by_role("button", name="Delete the topic")
    expect(button).to_be_disabled()
    page.get_by_label("Type trial to confirm").last.fill("trial")
    button.click()
    expect(page.get_by_role("status")).to_have_text("Topic trial is deleted.")


def test_the_search_shows_its_rows_and_ends(page: Page, watched: Watched) -> None:
    """Rows arrive from the stream; hostile text stays text."""
    page.goto("/c/local/topics/orders/messages?limit=20")
    page.get_by_label("Where").first.select_option("key")
    page.get_by_label("Text", exact=True).first.fill("customer-5")
    page.get_by_role("button", name="Search all records").click()
    expect(page.locator("#state")).to_contain_text("8 found")
    expect(page.get_by_role("button", name="Stop")).to_be_hidden()
    expect(page.locator("#rows tr")).to_have_count(8)
    assert page.locator("#rows img").count() == 0
    assert (
        HOSTILE in page.locator("#rows").inner_text() or page.locator("#rows details").count() == 8
    )
    watched.picture("search")


def test_the_live_tail_shows_new_records_until_it_is_stopped(page: Page, cluster: Cluster) -> None:
    """A record that is written now appears first."""
    page.goto("/c/local/topics/payments/messages")
    page.get_by_role("button", name="Live tail").click()
    expect(page.locator("#state")).to_have_text("waiting for new records")
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    rows = page.locator("#rows tr")
    for _ in range(20):
        producer.produce("payments", "fresh", key="k")
        producer.flush()
        page.wait_for_timeout(250)
        if rows.count():
            break
    expect(rows.first).to_contain_text("fresh")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#state")).to_have_text("stopped")


def test_offsets_are_shown_as_a_difference_and_can_be_undone(
    page: Page, watched: Watched, cluster: Cluster
) -> None:
    """Dry run, change, and undo, as a user clicks them."""
    commit(cluster, "clicked")
    page.goto("/c/local/group/offsets?id=clicked")
    page.get_by_label("Strategy").select_option("to-offset")
    page.get_by_label("Offset", exact=True).fill("4")
    page.get_by_role("button", name="Dry run").click()
    expect(page.locator("tr.changed")).to_have_count(2)
    watched.picture("offsets-plan")
    page.get_by_role("button", name="Change the offsets").click()
    expect(page.get_by_role("status")).to_have_text("The offsets are changed.")
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="Change the offsets").click()
    expect(page.locator("tbody tr").first).to_contain_text("10")


def test_an_option_is_changed_after_its_preview(page: Page) -> None:
    """The preview names the difference and its effect."""
    page.goto("/c/local/topics/orders/settings")
    page.get_by_role("link", name="retention.ms", exact=True).click()
    page.get_by_label("Value (").fill("86400000")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", name="What would change")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("is set to 86400000")
    page.goto("/audit")
    expect(page.locator("tbody tr").first).to_contain_text("retention.ms")


def test_charts_draw_what_they_read(page: Page, watched: Watched, cluster: Cluster) -> None:
    """The chart of a topic has a canvas and shows the rate of new records."""
    page.goto("/c/local/topics/orders")
    chart = page.get_by_role("figure", name="Records written, since this page")
    expect(chart.locator("canvas")).to_be_visible()
    expect(chart.locator(".u-legend")).to_contain_text("records/s")


def test_the_history_of_a_group_is_drawn(page: Page, console: ConsoleServer) -> None:
    """The charts of the stored history have a canvas, for each period that has points."""
    console.console.sampler.sample(console.console.clusters.get("local"))
    page.goto("/c/local/group?id=billing")
    expect(page.locator("#history canvas")).to_have_count(3)
    expect(page.locator("#history .u-legend").first).to_contain_text("lag (records)")
    page.get_by_role("link", name="7 days").click()
    chart = page.locator("#history figure").first
    address = chart.get_attribute("data-history")
    assert address is not None
    # The week has a point only if a multiple of ten minutes has passed since the first sample.
    has_points = bool(page.request.get(address).json()["at_s"])
    expect(chart.locator("canvas" if has_points else ".empty")).to_be_visible()


def test_a_topology_is_uploaded_and_drawn(page: Page, watched: Watched) -> None:
    """The text of Kafka's describe becomes boxes and lines, and a table."""
    page.goto("/c/local/streams")
    page.locator("summary", has_text="Upload a topology").click()
    page.get_by_label("Application id").fill("word-count")
    page.get_by_label("The output of Topology#describe").fill(WORDS)
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("status")).to_have_text("The topology is stored.")
    expect(page.locator("svg.topology rect")).to_have_count(15)
    expect(page.locator("svg.topology path")).to_have_count(13)
    page.goto("/c/local/stream?id=word-count")
    assert watched.violations() == []
    watched.picture("stream")
    page.locator("summary", has_text="As a table").click()
    expect(page.get_by_role("cell", name="rates-store")).to_be_visible()


def test_an_alert_is_made_fires_and_is_deleted(page: Page, console: ConsoleServer) -> None:
    """The forms of rules and channels show the fields of their kind."""
    page.goto("/alerts")
    page.locator("summary", has_text="Add a channel").click()
    page.get_by_label("Kind").select_option("mail")
    expect(page.get_by_label("Mail server")).to_be_visible()
    expect(page.get_by_label("URL")).to_be_hidden()
    page.locator("summary", has_text="Add a rule").click()
    page.get_by_label("Name", exact=True).first.fill("Billing is late")
    page.get_by_label("After seconds", exact=True).fill("0")
    page.get_by_role("button", name="Add").first.click()
    expect(page.get_by_role("status")).to_have_text("The rule Billing is late is added.")
    console.console.sampler.sample(console.console.clusters.get("local"))
    page.goto("/alerts")
    expect(page.get_by_text("Group billing is 40 records behind")).to_be_visible()
    page.get_by_role("button", name="Delete").first.click()
    expect(page.get_by_text("Nothing fires.")).to_be_visible()


def test_a_statement_is_run_and_its_result_is_drawn(page: Page, watched: Watched) -> None:
    """The table, the chart and the downloads appear; Ctrl+Enter runs the statement again."""
    page.goto("/c/local/sql")
    statement = page.get_by_label("Statement (DuckDB's SELECT)")
    statement.fill('SELECT _time, _partition, _offset, "order".id FROM orders ORDER BY _time')
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#result tbody tr")).to_have_count(60)
    expect(page.locator(".chart canvas")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="Parquet").click()
    assert download.value.suggested_filename == "result.parquet"
    watched.picture("sql")
    assert watched.violations() == []
    statement.fill("SELECT _partition AS p, count(*) FROM orders GROUP BY 1")
    statement.press("Control+Enter")
    expect(page.locator("#result tbody tr")).to_have_count(2)


def test_theme_and_language_are_kept(page: Page) -> None:
    """The choice is stored in a cookie and applies to every page."""
    page.goto("/c/local/topics")
    page.get_by_label("Theme and language").click()
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_label("Theme and language").click()
    page.get_by_role("button", name="中文").click()
    expect(page.get_by_role("heading", name="主题")).to_be_visible()
    page.goto("/c/local/overview")
    expect(page.locator(".u-legend th").first).to_contain_text("时间")
    page.get_by_label("主题颜色与语言").click()
    page.get_by_role("button", name="English").click()
    page.get_by_label("Theme and language").click()
    page.get_by_role("button", name="System theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "auto")


def test_an_open_page_reports_a_dead_cluster_and_recovers(
    watched: Watched, cluster: Cluster, console: ConsoleServer
) -> None:
    """The page says that the cluster does not respond, keeps its content, and recovers."""
    page = watched.page
    # The page's timers run on a clock of the test.
    page.clock.install()
    page.goto("/c/local/topics")
    console.console.clusters.get("local").forget()
    try:
        cluster.kill(1)
        page.clock.run_for(_REFRESH_MS)
        expect(page.locator("#lost")).to_be_visible()
        expect(page.get_by_role("link", name="orders")).to_be_visible()
    finally:
        cluster.restart(1)
    page.clock.run_for(_REFRESH_MS)
    expect(page.locator("#lost")).to_have_count(0)
    watched.forgive()
