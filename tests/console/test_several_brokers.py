"""Pages whose changes need several brokers: reassignment with its plan, throttle and cancel;
leaders.
"""

import threading
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

from ottla.base.clock import RealClock
from ottla.console.server import ConsoleServer
from ottla.console.state import ConsoleSettings
from ottla.operations.survey.connections import ClusterSettings
from ottla.testing import Cluster
from tests.console.session import PASSWORD, ConsoleSession, PageResponse

pytestmark = pytest.mark.slow

MOVES = "/c/local/reassignments"
_PATIENCE_S = 20.0
# Several times what a follower receives before its throttle takes effect: 1 MB in each response.
_LARGE_RECORDS = 60


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
        (ClusterSettings("local", three.bootstrap),),
        ":memory:",
        port=0,
        first_password=PASSWORD,
        sample_s=2,
    )
    server = ConsoleServer(settings)
    server.start()
    opened = ConsoleSession(server.url)
    opened.login("admin", PASSWORD)
    yield opened
    server.stop()


def plan_of(response: PageResponse) -> str:
    return response.text.split('name="plan" value="')[1].split('"')[0]


def elect_leaders(session: ConsoleSession) -> None:
    """Elect the preferred leaders, as the button does; a broker that is away is no error."""
    assert session.post("/c/local/brokers", "elect").status in (200, 409, 503)


def wait_for(
    session: ConsoleSession,
    path: str,
    text: str,
    meanwhile: Callable[[ConsoleSession], None] = lambda session: None,
    patience_s: float = _PATIENCE_S,
) -> None:
    """Read a page until it contains a text: brokers and the cache need a moment.

    `meanwhile` is called after each page without the text.
    """
    deadline = RealClock().monotonic() + patience_s
    pause = threading.Event()
    while text not in session.get(path).text:
        assert RealClock().monotonic() < deadline, f"{path} does not show {text!r}"
        meanwhile(session)
        pause.wait(0.1)


def test_partitions_are_moved_as_the_plan_shows(three: Cluster, session: ConsoleSession) -> None:
    """The preview changes nothing; the plan that was shown is executed."""
    form = {"goal": "explicit", "targets": "moved-0=2,3\nmoved-1=3,1"}
    output = session.post(MOVES, "preview", form)
    assert output.alert == ""
    assert "Skew after" in output.text
    assert "Nothing has to be moved" not in output.text
    number = plan_of(output)
    refused = session.post(MOVES, "start", {"plan": number, "throttle": "fast"})
    assert "not a number" in refused.alert
    assert plan_of(refused) == number
    started = session.post(MOVES, "start", {"plan": number, "throttle": "50"})
    assert (started.alert, started.notice) == ("", "2 partitions are being moved.")
    assert "A throttle is set" in session.get(MOVES).text
    wait_for(session, MOVES, "No partition is being moved")
    replicas = 'title="leader">2</span><span class="replica" title="in sync">3</span>'
    # A machine that stalls for two seconds ends the session of broker 2, and broker 3 leads from
    # then on: the preferred leader is elected until it leads with the other replica in sync.
    wait_for(session, "/c/local/topics/moved/partitions", replicas, meanwhile=elect_leaders)
    session.post(MOVES, "unthrottle", {})
    assert "A throttle is set" not in session.get(MOVES).text
    assert "partition.reassign<" in session.get("/audit").text


def test_the_console_removes_the_throttle_when_the_moves_have_ended(
    three: Cluster, session: ConsoleSession
) -> None:
    """Without a click, within the time of two samples; the audit log has it."""
    three.create_topic("brief")
    other = next(broker for broker in three.brokers if broker != three.leader("brief"))
    output = session.post(MOVES, "preview", {"goal": "explicit", "targets": f"brief-0={other}"})
    started = session.post(MOVES, "start", {"plan": plan_of(output), "throttle": "50"})
    assert started.notice == "One partition is being moved."
    wait_for(session, "/audit?q=remove-throttle", "<td>console</td>", patience_s=60)
    assert "A throttle is set" not in session.get(MOVES).text


def test_a_reassignment_is_cancelled(three: Cluster, session: ConsoleSession) -> None:
    """A throttle keeps the move from ending; after the cancel the original replica remains."""
    three.create_topic("stays")
    producer = Producer({"bootstrap.servers": three.bootstrap})
    leader = three.leader("stays")
    target = next(broker for broker in three.brokers if broker != leader)
    for _ in range(_LARGE_RECORDS):
        producer.produce("stays", b"x" * 100_000)
    assert producer.flush(20) == 0
    output = session.post(MOVES, "preview", {"goal": "explicit", "targets": f"stays-0={target}"})
    started = session.post(MOVES, "start", {"plan": plan_of(output), "throttle": "0.001"})
    assert started.notice == "One partition is being moved."
    wait_for(session, MOVES, '<input type="hidden" name="topic" value="stays">')
    stopped = session.post(MOVES, "cancel", {"topic": "stays", "partition": "0"})
    assert (stopped.alert, stopped.notice) == ("", "The reassignment is cancelled.")
    wait_for(session, MOVES, "No partition is being moved")
    session.post(MOVES, "unthrottle", {})
    page = "/c/local/topics/stays/partitions"
    wait_for(session, page, f'<span class="replica leader" title="leader">{leader}</span></td>')
    assert "partition.cancel-reassignment" in session.get("/audit").text


def test_goals_are_planned_without_being_executed(session: ConsoleSession) -> None:
    """Each goal shows its moves, or that no move is needed."""
    goals: list[dict[str, object]] = [
        {"goal": "balance"},
        {"goal": "spread", "topics": "moved"},
        {"goal": "replication-factor", "factor": "3", "topics": "moved"},
        {"goal": "empty-brokers", "broker": ["1", "2"], "topics": "moved"},
    ]
    for form in goals:
        response = session.post(MOVES, "preview", form)
        assert response.status == 200, (form, response.alert)
        assert "Skew after" in response.text


def test_leaders_are_elected_and_a_dead_broker_is_shown(
    three: Cluster, session: ConsoleSession
) -> None:
    """A dead broker leaves under-replicated partitions on the overview; later it leads again."""
    three.create_topic("spread", partitions=3, replication_factor=3)
    three.kill(3)
    wait_for(session, "/c/local/overview", "Partitions that need attention")
    three.restart(3)
    assert session.post("/c/local/brokers", "elect").status in (200, 409)
