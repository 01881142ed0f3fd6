"""Why a client has no connection: one line for each address, and the cause in the errors."""

import gc
import logging
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.errors import NotReachable
from ottla.client.reach import connection_watch
from ottla.client.reach.connection_watch import ConnectionWatch

DEAD = "nothing listens on 127.0.0.1:1"


class Report:
    """An error as librdkafka reports it."""

    def __init__(self, name: str, text: str = "1/1 brokers are down") -> None:
        self._name, self._text = name, text

    def name(self) -> str:
        return self._name

    def str(self) -> "str":
        return self._text


class Network:
    """The addresses that fail, each with its error, and how often each was tried."""

    def __init__(self, **failing: Exception) -> None:
        self.failing: dict[str, Exception] = {"": NotReachable(DEAD), **failing}
        self.tried: list[str] = []

    def connect(self, name: str) -> None:
        self.tried.append(name)
        if name in self.failing:
            raise self.failing[name]


def wait_until(condition: Callable[[], Any]) -> None:
    """Wait until a condition holds, for ten seconds at most."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.005)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_watch, "_PAUSE_S", 0.01)
    monkeypatch.setattr(connection_watch, "_PAUSE_S_MAX", 0.01)


def test_cause_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """Each attempt of librdkafka is a report; the log has one line at the level of warnings."""
    network = Network()
    client = ConnectionWatch("producer", {}, network.connect)
    for _ in range(3):
        client.pending.append(Report("_TRANSPORT"))
        client.take_reports()
    wait_until(lambda: len(network.tried) > 3)
    client.stop()
    lines = [row.getMessage() for row in caplog.records if row.levelno >= logging.WARNING]
    assert lines == [f"the producer cannot connect: {DEAD}; it keeps trying"]
    assert client.because("late") == f"late: {DEAD}"


def test_address_that_responds_is_no_cause(caplog: pytest.LogCaptureFixture) -> None:
    """A broker closes idle connections, which librdkafka reports as well."""
    network = Network()
    network.failing.clear()
    client = ConnectionWatch("consumer", {}, network.connect)
    client.report(Report("_TRANSPORT", "127.0.0.1:1/1: Disconnected (after 6ms in state UP)"))
    wait_until(lambda: network.tried and not client.is_watching)
    assert client.cause is None
    assert client.because("late") == "late"
    assert [row for row in caplog.records if row.levelno >= logging.WARNING] == []


def test_cause_ends_when_the_address_responds() -> None:
    """A later error of another cause does not name it."""
    network = Network()
    client = ConnectionWatch("producer", {}, network.connect)
    client.suspect()
    wait_until(lambda: client.cause)
    assert client.because("late") == f"late: {DEAD}"
    network.failing.clear()
    wait_until(lambda: not client.is_watching)
    assert client.because("late") == "late"


def test_advertised_address_is_tried_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    """The bootstrap servers respond, and a broker has advertised a name that is not known here."""
    network = Network(**{"kafka:9092": NotReachable("the host of kafka:9092 is not known")})
    del network.failing[""]
    client = ConnectionWatch("consumer", {}, network.connect)
    client.report(Report("_RESOLVE", "kafka:9092/2: Failed to resolve 'kafka:9092' (after 1ms)"))
    wait_until(lambda: "the consumer cannot connect: broker 2 is advertised at" in caplog.text)
    client.stop()
    assert network.tried[0] == "kafka:9092"


def test_refused_login_has_the_words_of_the_broker() -> None:
    """The connection of our own fails in the same way, or the report says it."""
    refused = ApiError(ErrorCode.SASL_AUTHENTICATION_FAILED, "no", subject="a:1 refuses the user")
    client = ConnectionWatch("producer", {}, Network(**{"": refused}).connect)
    client.report(Report("_AUTHENTICATION", "SASL authentication error: wrong password"))
    wait_until(lambda: client.cause)
    client.stop()
    assert "refuses the user: wrong password" in (client.cause or "")


def test_errors_of_records_are_not_looked_into() -> None:
    """Only errors of connections start the thread."""
    network = Network()
    client = ConnectionWatch("producer", {}, network.connect)
    client.report(Report("_MSG_TIMED_OUT"))
    assert not client.is_watching
    assert network.tried == []


def test_dropped_client_ends_its_thread() -> None:
    """A client that is neither closed nor used leaves no thread."""
    tried: list[str] = []

    def connect(name: str) -> None:
        tried.append(name)
        # A new error each time: its traceback refers to the client.
        raise NotReachable(DEAD)

    references = []
    for client in [ConnectionWatch("producer", {}, connect)]:
        client.suspect()
        wait_until(lambda: tried)
        references.append(weakref.ref(client))
    del client
    wait_until(lambda: gc.collect() + 1 and references[0]() is None)
    count = len(tried)
    threading.Event().wait(0.1)
    assert len(tried) <= count + 1


def test_first_attempt_is_undecided() -> None:
    """A producer that is closed after an error waits for it, and no longer."""
    is_tried, ends = threading.Event(), threading.Event()

    def connect(name: str) -> None:
        is_tried.set()
        ends.wait(10)
        raise NotReachable(DEAD)

    client = ConnectionWatch("producer", {}, connect)
    assert not client.is_undecided
    client.suspect()
    assert is_tried.wait(10)
    assert client.is_undecided
    ends.set()
    wait_until(lambda: client.cause)
    assert not client.is_undecided
    client.stop()
