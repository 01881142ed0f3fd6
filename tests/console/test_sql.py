"""SQL on its page and in the API: result, chart, downloads, roles, masking, wrong input."""

import io

import pyarrow.parquet
import pytest

from ottla.console.model.messages.masking import MaskingRule
from ottla.console.server import ConsoleServer
from tests.console.conftest import HOSTILE
from tests.console.session import PASSWORD, ConsoleSession

pytestmark = pytest.mark.slow

SQL = "SELECT _partition, count(*) AS n FROM orders WHERE _time > now() - INTERVAL 1 DAY GROUP BY 1"


@pytest.fixture
def viewer(console: ConsoleServer) -> ConsoleSession:
    """Return a session of a viewer."""
    session = ConsoleSession(console.url)
    session.login("viewer", PASSWORD)
    return session


def test_a_viewer_runs_a_statement_and_downloads_its_result(viewer: ConsoleSession) -> None:
    """The page has the table; CSV and Parquet have the same rows; text of records is escaped."""
    page = viewer.post("/c/local/sql", "run", {"sql": f"{SQL} ORDER BY 1"})
    assert page.status == 200
    assert page.alert == ""
    assert '<td class="n">30</td>' in page.text
    csv = viewer.get("/c/local/sql/result.csv")
    assert csv.text == "_partition,n\n0,30\n1,30\n"
    assert "attachment" in csv.headers["content-disposition"]
    hostile = viewer.post("/c/local/sql", "run", {"sql": "SELECT note, _offset FROM orders"})
    assert "<img" not in hostile.text
    assert HOSTILE.replace("<", "&lt;").replace(">", "&gt;") in hostile.text


def test_parquet_is_a_file_that_arrow_reads(viewer: ConsoleSession) -> None:
    """The names and values come from the statement."""
    viewer.post("/c/local/sql", "run", {"sql": "SELECT 7 AS n, 'x' AS t"})
    data = viewer.get("/c/local/sql/result.parquet").data
    table = pyarrow.parquet.read_table(io.BytesIO(data))
    assert table.to_pylist() == [{"n": 7, "t": "x"}]
    response = viewer.request("HEAD", "/c/local/sql/result.parquet")
    assert response.headers["content-type"] == "application/vnd.apache.parquet"


def test_charts_are_chosen_by_the_columns(viewer: ConsoleSession) -> None:
    """Times and numbers are lines; labels and numbers are bars; a spread-sheet's formula is text."""
    times = "SELECT _time, _offset * 2 AS value FROM orders ORDER BY _time"
    assert "data-points=" in viewer.post("/c/local/sql", "run", {"sql": times}).text
    bars = "SELECT _key, count(*) AS n FROM orders GROUP BY 1"
    assert '<svg class="bar"' in viewer.post("/c/local/sql", "run", {"sql": bars}).text
    viewer.post("/c/local/sql", "run", {"sql": "SELECT '=1+1' AS f"})
    assert viewer.get("/c/local/sql/result.csv").text == "f\n'=1+1\n"


def test_masked_fields_stay_masked_for_a_viewer(
    viewer: ConsoleSession, admin: ConsoleSession, console: ConsoleServer
) -> None:
    """An admin reads them, and a viewer does not, whatever the statement is."""
    console.console.masking.add(MaskingRule("orders", "value", "$.order.card"))
    (rule,) = console.console.masking.all()
    try:
        form = {"sql": "SELECT upper(\"order\".card) FROM orders WHERE _value LIKE '%0007%'"}
        assert "4000-0007" in admin.post("/c/local/sql", "run", form).text
        response = viewer.post("/c/local/sql", "run", form)
        assert "4000-0007" not in response.text.replace(form["sql"], "")
        assert response.status == 200
    finally:
        console.console.masking.delete(rule.id)


@pytest.mark.parametrize(
    "sql", ["", "DROP TABLE orders", "SELECT * FROM '/etc/passwd'", "SELECT <script>"]
)
def test_a_wrong_statement_is_shown_again_with_the_reason(viewer: ConsoleSession, sql: str) -> None:
    """The statement stays in the form, escaped."""
    page = viewer.post("/c/local/sql", "run", {"sql": sql})
    assert 400 <= page.status < 500
    assert page.alert
    assert "<script>SELECT" not in page.text
    assert sql.replace("<", "&lt;").replace(">", "&gt;").replace("'", "&#39;") in page.text


def test_results_are_of_their_user(admin: ConsoleSession, console: ConsoleServer) -> None:
    """A user without a result has nothing to download, whatever others have run."""
    admin.post("/c/local/sql", "run", {"sql": "SELECT 1"})
    session = ConsoleSession(console.url)
    session.login("editor", PASSWORD)
    assert session.get("/c/local/sql/result.csv").status == 404
    assert "No query of yours is running." in session.post("/c/local/sql", "cancel").notice


def test_the_api_runs_statements(viewer: ConsoleSession) -> None:
    """The result has columns with types, rows, and what was read."""
    headers = {"content-type": "application/json", "x-csrf-token": viewer.csrf()}
    body = '{"sql": "SELECT count(*) AS n FROM payments"}'
    response = viewer.request("POST", "/api/v1/clusters/local/sql", body, headers)
    assert response.status == 200, response.text
    assert response.json["columns"] == [{"name": "n", "type": "BIGINT"}]
    assert response.json["rows"] == [[1]]
    assert response.json["topics"][0]["topic"] == "payments"
    wrong = viewer.request("POST", "/api/v1/clusters/local/sql", '{"sql": "DROP"}', headers)
    assert wrong.status == 400
    cancelled = viewer.request("POST", "/api/v1/clusters/local/sql/cancel", "{}", headers)
    assert cancelled.json == {"was_running": False}
