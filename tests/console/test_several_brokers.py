"""Pages whose changes need several brokers: reassignment with its plan, throttle and cancel;
leaders.
"""

import threading
from collections.abc import Iterator

import pytest

from ottla.base.clock import RealClock
from ottla.console.model.connections import ClusterSettings
from ottla.console.server import ConsoleServer
from ottla.console.state import ConsoleSettings
from ottla.testing import Cluster
from tests.console.conftest import PASSWORD
from tests.console.session import Answer, ConsoleSession

MOVES = "/c/local/reassignments"
_PATIENCE_S = 20.0


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    """Return three brokers with a topic that has one replica, on broker 1."""
    with Cluster(3) as running:
        running.create_topic("moved", partitions=2, replication_factor=1)
        yield running


@pytest.fixture(scope="module")
def session(three: Cluster) -> Iterator[ConsoleSession]:
    """Return a session of the admin."""
    settings = ConsoleSettings(
        (ClusterSettings("local", three.bootstrap),), ":memory:", port=0, first_password=PASSWORD
    )
    server = ConsoleServer(settings)
    server.start()
    opened = ConsoleSession(server.url)
    opened.login("admin", PASSWORD)
    yield opened
    server.stop()


def plan_of(answer: Answer) -> str:
    return answer.text.split('name="plan" value="')[1].split('"')[0]


def wait_for(session: ConsoleSession, path: str, text: str) -> None:
    """Read a page until it contains a text: brokers and the cache need a moment."""
    deadline = RealClock().monotonic() + _PATIENCE_S
    pause = threading.Event()
    while text not in session.get(path).text:
        assert RealClock().monotonic() < deadline, f"{path} does not show {text!r}"
        pause.wait(0.1)


def test_partitions_are_moved_as_the_plan_shows(three: Cluster, session: ConsoleSession) -> None:
    """The preview changes nothing; the plan that was shown is executed."""
    form = {"goal": "explicit", "targets": "moved-0=2,3\nmoved-1=3,1"}
    shown = session.post(MOVES, "preview", form)
    assert shown.alert == ""
    assert "Skew after" in shown.text
    assert "Nothing has to be moved" not in shown.text
    number = plan_of(shown)
    refused = session.post(MOVES, "start", {"plan": number, "throttle": "fast"})
    assert "not a number" in refused.alert
    assert plan_of(refused) == number
    started = session.post(MOVES, "start", {"plan": number, "throttle": "50"})
    assert (started.alert, started.notice) == ("", "2 partitions are being moved.")
    assert "A throttle is set" in session.get(MOVES).text
    wait_for(session, MOVES, "No partition is being moved")
    replicas = 'title="leader">2</span><span class="replica" title="in sync">3</span>'
    wait_for(session, "/c/local/topics/moved/partitions", replicas)
    session.post(MOVES, "unthrottle", {})
    assert "A throttle is set" not in session.get(MOVES).text
    assert "reassignment" in session.get("/audit").text


def test_goals_are_planned_without_being_executed(session: ConsoleSession) -> None:
    """Each goal shows its moves, or that there is nothing to move."""
    goals: list[dict[str, object]] = [
        {"goal": "balance"},
        {"goal": "spread", "topics": "moved"},
        {"goal": "replication-factor", "factor": "3", "topics": "moved"},
        {"goal": "empty-brokers", "broker": ["1", "2"], "topics": "moved"},
    ]
    for form in goals:
        answer = session.post(MOVES, "preview", form)
        assert answer.status == 200, (form, answer.alert)
        assert "Skew after" in answer.text


def test_leaders_are_elected_and_a_dead_broker_is_shown(
    three: Cluster, session: ConsoleSession
) -> None:
    """A dead broker leaves under-replicated partitions on the overview; later it leads again."""
    three.create_topic("spread", partitions=3, replication_factor=3)
    three.kill(3)
    wait_for(session, "/c/local/overview", "Partitions that need attention")
    three.restart(3)
    assert session.post("/c/local/brokers", "elect").status in (200, 409)
