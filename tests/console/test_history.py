"""The history on the pages and in the API, with samples of a running broker."""

import base64

import pytest
from confluent_kafka import Producer

from ottla.console.server import ConsoleServer
from ottla.testing import Cluster
from tests.console.conftest import commit
from tests.console.session import PASSWORD, ConsoleSession

pytestmark = pytest.mark.slow


@pytest.fixture
def sampled(console: ConsoleServer, cluster: Cluster) -> str:
    """Return a group with lag and at least one sample; the console's clock stays real."""
    commit(cluster, "history-group")
    console.console.sampler.sample(console.console.clusters.get("local"))
    return "history-group"


def test_the_charts_of_a_group_and_a_topic_have_points(admin: ConsoleSession, sampled: str) -> None:
    """The lag of a group is 40 of 60 records, and the topic has 60."""
    query = f"kind=group&name={sampled}&chart=lag&period=hour"
    lag = admin.get(f"/c/local/history.json?{query}").json
    assert lag["series"]["lag (records)"][-1] == 40
    assert lag["step_s"] == 10
    size = admin.get("/c/local/history.json?kind=topic&name=orders&chart=size").json
    assert size["series"]["bytes"][-1] > 0


def test_the_pages_offer_periods_and_a_forecast(admin: ConsoleSession, sampled: str) -> None:
    """The figures of a group have the forecast, and the links keep the group."""
    page = admin.get(f"/c/local/group?id={sampled}&period=day").text
    assert "Caught up" in page
    assert f"/c/local/group?id={sampled}&amp;period=week#history" in page
    assert "history.json?kind=group" in page


def test_wrong_values_are_refused(admin: ConsoleSession) -> None:
    """An unknown period, chart or kind is an error of the reader."""
    for query in ("chart=lag&kind=group&period=year", "chart=x&kind=group", "chart=lag&kind=x"):
        response = admin.get(f"/c/local/history.json?{query}")
        assert response.status == 400
        assert "error" in response.json
    assert admin.get("/c/local/overview?period=year").status == 400


def test_the_api_has_history_and_forecast(
    console: ConsoleServer, cluster: Cluster, sampled: str
) -> None:
    """A script reads the same points; a group without lag is caught up."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    producer.produce("payments", b"v")
    producer.flush()
    session = ConsoleSession(console.url)
    credentials = base64.b64encode(f"viewer:{PASSWORD}".encode()).decode()

    def get(path: str) -> dict[str, object]:
        headers = {"authorization": f"Basic {credentials}"}
        response = session.request("GET", f"/api/v1/clusters/local{path}", headers=headers)
        assert response.status == 200, response.text
        return response.json

    group = get(f"/groups/{sampled}/history?period=hour")
    assert group["items"][-1]["lag"] == 40
    assert get("/topics/orders/history")["total"] >= 1
    assert get("/history?period=week")["items"] == []
    assert get(f"/groups/{sampled}/forecast")["verdict"] in ("unknown", "steady")
