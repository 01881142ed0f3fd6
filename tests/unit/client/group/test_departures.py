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
    assert "responded to no heartbeat" in (departures.reason or "")


def test_session_timeout_of_a_member_that_polls_too_late_is_explained_by_it(
    departures: Departures, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log has the end of the session after the late poll, in a call of `close`."""
    now = [100.0]
    monkeypatch.setattr("ottla.client.group.departures.time.monotonic", lambda: now[0])
    departures.polled()
    now[0] += 61.0
    line = "SESSTMOUT: Consumer group session timed out"
    departures.emit(logging.LogRecord("l", logging.INFO, "", 0, line, None, None))
    assert "poll was not called for 61.0 s" in (departures.reason or "")


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


def test_time_between_the_late_polls_is_reported(
    departures: Departures, monkeypatch: pytest.MonkeyPatch
) -> None:
    """librdkafka reports a late poll in the next one, after the application is back."""
    now = [100.0]
    monkeypatch.setattr("ottla.client.group.departures.time.monotonic", lambda: now[0])
    departures.polled()
    now[0] += 72.5
    departures.polled()
    now[0] += 0.5
    departures.polled()
    departures.poll_came_late()
    assert "poll was not called for 72.5 s" in (departures.reason or "")
    departures.rejoined()
    departures.poll_came_late()
    assert "poll was not called for 60.0 s" in (departures.reason or "")


def test_removal_after_a_late_poll_is_explained_by_it(
    departures: Departures, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit fails before librdkafka reports the late poll."""
    now = [100.0]
    monkeypatch.setattr("ottla.client.group.departures.time.monotonic", lambda: now[0])
    departures.polled()
    departures.rejoined()
    departures.removed()
    assert "session.timeout.ms" in (departures.reason or "")
    departures.rejoined()
    now[0] += 61.0
    departures.removed()
    assert "poll was not called for 61.0 s" in departures.sentence()


def test_option_of_the_session_belongs_to_the_group_protocol() -> None:
    """With KIP-848 the broker decides how long a session lasts."""
    departures = Departures("g", {"group.protocol": "CONSUMER", "session.timeout.ms": 45000})
    departures.removed()
    assert "within the broker's group.consumer.session.timeout.ms" in (departures.reason or "")
    assert "45000" not in (departures.reason or "")
