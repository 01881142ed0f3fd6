"""SQL in Chromium: a query is cancelled before it begins, while it runs, and after its end; charts."""

import json
import math
import re
import threading
from collections import Counter
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from playwright.sync_api import Page, Route, expect

from ottla.base.clock import RealClock
from ottla.console.server import ConsoleServer
from ottla.testing import Cluster
from tests.console.chromium import Watched, admin_page, chromium, without_errors
from tests.integration.console.sql.test_queries import ENDLESS

# Seconds: only a browser has a page that is left while a query runs.
pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

_PATIENCE_S = 15.0
_QUICK = "SELECT 41 + 1 AS answer"
# Three hours of sales, ten in five minutes.
_SALES, _STEP_MS = 360, 30_000
_REVENUE = """SELECT time_bucket(INTERVAL 5 MINUTE, _time) AS at,
  sum(price) FILTER (WHERE country = 'de') AS germany,
  sum(price) FILTER (WHERE country = 'fr') AS france
FROM sales GROUP BY 1 ORDER BY 1"""
# A canvas has no text in the page, so the drawn texts are recorded.
_RECORD_TEXTS = """
window.drawn = [];
const draw = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
  window.drawn.push(text);
  return draw.call(this, text, ...rest);
};
"""


@pytest.fixture(scope="module")
def watched(console: ConsoleServer) -> Iterator[Watched]:
    """Return a page of the admin."""
    with chromium() as browser, admin_page(browser, console.url) as page:
        yield page


@pytest.fixture
def page(watched: Watched, console: ConsoleServer) -> Iterator[Page]:
    """Return the page of SQL; the test fails if the browser's log has an error at its end."""
    with without_errors(watched) as page:
        page.goto("/c/local/sql")
        yield page
        page.unroute_all()
    # A failed test leaves no query to the next one.
    console.console.queries.cancel("admin")


def run(page: Page, sql: str) -> None:
    """Write a statement and run it."""
    page.get_by_label("Statement (DuckDB's SELECT)").fill(sql)
    page.get_by_role("button", name="Run").click()


def hold_one(page: Page, address: str) -> list[Route]:
    """Hold the next POST request to an address; it is in the list as soon as it was sent."""
    held: list[Route] = []

    def on_request(route: Route) -> None:
        if route.request.method == "POST" and not held:
            held.append(route)
        else:
            route.continue_()

    page.route(address, on_request)
    return held


def wait_for_a_query(console: ConsoleServer) -> None:
    """Return when a query of the admin runs."""
    deadline, pause = RealClock().monotonic() + _PATIENCE_S, threading.Event()
    while not console.console.queries.running("admin"):
        assert RealClock().monotonic() < deadline, "no query runs"
        pause.wait(0.01)


def expect_cancelled(page: Page, watched: Watched, console: ConsoleServer) -> None:
    """The page says why the query has ended, and the next one runs."""
    expect(page.get_by_role("alert")).to_have_text("The query is cancelled.")
    expect(page.get_by_role("button", name="Cancel")).to_be_hidden()
    assert not console.console.queries.running("admin")
    run(page, _QUICK)
    expect(page.locator("#result tbody")).to_have_text("42")
    expect(page.get_by_role("alert")).to_have_count(0)
    # The browser reports the status of the response about the cancelled query.
    assert all("status of 400" in text for text in watched.errors), watched.errors
    watched.forgive()


def test_a_running_query_is_cancelled(page: Page, watched: Watched, console: ConsoleServer) -> None:
    """The page stays while the query runs, and its statement can be edited."""
    expect(page.get_by_role("button", name="Cancel")).to_be_hidden()
    run(page, ENDLESS)
    expect(page.locator("#query-state")).to_have_text("The query is running …")
    wait_for_a_query(console)
    page.get_by_label("Statement (DuckDB's SELECT)").fill("SELECT 1 AS edited")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("alert")).to_have_text("The query is cancelled.")
    statement = page.get_by_label("Statement (DuckDB's SELECT)")
    expect(statement).to_have_value("SELECT 1 AS edited")
    expect_cancelled(page, watched, console)


def test_a_query_is_cancelled_before_it_begins(
    page: Page, watched: Watched, console: ConsoleServer
) -> None:
    """The cancel overtakes the statement: the statement is rejected when it arrives."""
    held = hold_one(page, "**/c/local/sql")
    run(page, ENDLESS)
    with page.expect_response("**/sql/cancel") as response:
        page.get_by_role("button", name="Cancel").click()
    assert response.value.ok
    held[0].continue_()
    expect_cancelled(page, watched, console)


def test_a_late_cancel_leaves_the_result(
    page: Page, watched: Watched, console: ConsoleServer
) -> None:
    """The result arrives before the cancel: it is shown, and the next query runs."""
    held = hold_one(page, "**/sql/cancel")
    run(page, ENDLESS)
    wait_for_a_query(console)
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#query-state")).to_have_text("The query is being cancelled …")
    assert console.console.queries.cancel("admin")
    expect(page.get_by_role("alert")).to_have_text("The query is cancelled.")
    watched.forgive()
    run(page, ENDLESS)
    wait_for_a_query(console)
    with page.expect_response("**/sql/cancel") as response:
        held[0].continue_()
    assert response.value.ok
    assert console.console.queries.running("admin")
    page.get_by_role("button", name="Cancel").click()
    expect_cancelled(page, watched, console)


def test_a_result_is_shown_again_after_a_reload(page: Page) -> None:
    """The address names the last result; its statement is in the form."""
    run(page, _QUICK)
    expect(page.locator("#result tbody")).to_have_text("42")
    page.reload()
    expect(page.locator("#result tbody")).to_have_text("42")
    expect(page.get_by_label("Statement (DuckDB's SELECT)")).to_have_value(_QUICK)


def test_a_query_that_cannot_be_sent_is_reported(page: Page, watched: Watched) -> None:
    """The statement stays in the form, and can be run again."""
    page.route("**/c/local/sql", lambda route: route.abort())
    run(page, _QUICK)
    expect(page.locator("#query-state")).to_contain_text("Run the query again")
    page.unroute("**/c/local/sql")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#result tbody")).to_have_text("42")
    watched.forgive()


def sell(cluster: Cluster) -> None:
    """Write sales of the last hours to a topic."""
    cluster.create_topic("sales")
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    now_ms = RealClock().time_ms()
    for number in range(_SALES):
        value = {
            "country": ("de", "fr")[number % 2],
            "price": round(20 + 8 * math.sin(number / 40 + number % 2) + number % 5, 2),
        }
        at_ms = now_ms - (_SALES - 1 - number) * _STEP_MS
        producer.produce("sales", json.dumps(value), timestamp=at_ms)
    assert producer.flush(10) == 0


def test_a_statement_is_drawn_with_the_times_of_its_rows(
    page: Page, watched: Watched, cluster: Cluster, console: ConsoleServer
) -> None:
    """A line for each column of numbers; the ticks are minutes apart."""
    sell(cluster)
    console.console.clusters.get("local").forget()
    run(page, _REVENUE)
    expect(page.locator(".chart canvas")).to_be_visible()
    expect(page.locator(".chart .u-legend")).to_contain_text("france")
    assert watched.violations() == []
    watched.picture("sql", is_dark=True)


@pytest.mark.parametrize(
    ("step", "pattern"),
    [
        ("1 MILLISECOND", r"\d\d:\d\d:\d\d\.\d{3}"),
        ("1 SECOND", r"\d\d:\d\d:\d\d"),
        ("10 MINUTE", r"\d\d:\d\d|\d\d-\d\d"),
        ("1 DAY", r"\d\d-\d\d"),
    ],
)
def test_ticks_are_as_exact_as_their_distance(page: Page, step: str, pattern: str) -> None:
    """No two ticks of a time axis have the same text."""
    page.add_init_script(_RECORD_TEXTS)
    page.reload()
    start = "TIMESTAMPTZ '2026-01-05 10:00:00+00'"
    run(page, f"SELECT {start} + i * INTERVAL {step} AS at, i AS n FROM range(20) AS t(i)")
    expect(page.locator(".chart canvas")).to_be_visible()
    page.wait_for_function("window.drawn.some((text) => /^\\d\\d[:-]/.test(text))")
    texts = [text for text in page.evaluate("window.drawn") if re.match(r"\d\d[:-]", text)]
    # A chart may be drawn several times.
    (draws,) = set(Counter(texts).values())
    assert len(texts) // draws >= 3
    assert all(re.fullmatch(pattern, text) for text in texts), texts


def test_the_first_rows_are_shown_until_the_result_is_there(page: Page, watched: Watched) -> None:
    """The page names how many records are read; nothing in a row becomes an element."""
    hostile = "<img src=x onerror=alert(1)>"
    rows = {
        "note": "Partial result: 2 of 9",
        "columns": ["a", "b"],
        "rows": [[1, None], [2, hostile]],
    }
    page.route("**/sql/partial.json", lambda route: route.fulfill(json={"partial": rows}))
    run(page, ENDLESS)
    shown = page.locator("#partial")
    expect(shown.get_by_role("status")).to_have_text("Partial result: 2 of 9")
    expect(shown.locator("tbody tr")).to_have_text(["1NULL", f"2{hostile}"])
    page.get_by_role("button", name="Cancel").click()
    expect(shown).to_be_hidden()
    # The browser logs the response to the cancelled query.
    watched.forgive()
    run(page, _QUICK)
    expect(page.locator("#result")).to_contain_text("42")
    expect(shown).to_be_hidden()
