"""The reason of a departure names the time-out, the option and what to do."""

import logging

import pytest

from ottla.client.group.departures import Departures


@pytest.fixture
def departures() -> Departures:
    """Departures of a member of group "g"."""
    return Departures("g", {"max.poll.interval.ms": "60000", "group.instance.id": "one"})


def test_late_poll_is_named(departures: Departures) -> None:
    """The sentence has the time that passed, and both options."""
    departures.poll_came_late()
    assert departures.reason == (
        "the member left group 'g': poll was not called for 60.0 s, and max.poll.interval.ms is "
        "60000; fetch fewer records at once (max.poll.records) or raise max.poll.interval.ms"
    )


def test_session_timeout_is_read_from_the_log(departures: Departures) -> None:
    """Other log lines are ignored."""
    for line in ("FAIL: something else", "SESSTMOUT: Consumer group session timed out"):
        departures.emit(logging.LogRecord("l", logging.INFO, "", 0, line, None, None))
    assert "session.timeout.ms (45000)" in (departures.reason or "")
    departures.removed()
    assert "answered no heartbeat" in (departures.reason or "")


def test_removal_without_another_reason(departures: Departures) -> None:
    """The coordinator's view is reported if the client knows no reason itself."""
    departures.removed()
    assert "the coordinator removed it" in departures.sentence()


def test_reason_of_an_earlier_departure_is_not_reported_again(departures: Departures) -> None:
    """After the member has rejoined, a failed commit reports a rebalance."""
    departures.fenced()
    assert "group.instance.id 'one'" in departures.sentence()
    departures.rejoined()
    assert "the group has rebalanced" in departures.sentence()
    assert "group.instance.id 'one'" in (departures.reason or "")
