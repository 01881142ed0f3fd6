"""Brokers that do not respond while tasks are opened delay these tasks only."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.streams.local.cluster import TopicPositions
from ottla.testing import Cluster
from tests.integration.streams.local.applications import WAIT_S, counting, produce
from tests.process.broker_cluster import wait

_KEYS = "abcdefgh"
_SILENCE_S = 5.0


class Silence:
    """Makes the brokers not respond to one kind of request."""

    def __init__(self) -> None:
        self._responds = threading.Event()
        self._responds.set()
        self.is_waiting = threading.Event()

    def __call__(self, request: Any) -> Any:
        """Return a function that waits while there is silence."""

        def waiting(*arguments: Any, **options: Any) -> Any:
            if not self._responds.is_set():
                self.is_waiting.set()
            self._responds.wait(10 * WAIT_S)
            return request(*arguments, **options)

        return waiting

    def begin(self) -> None:
        """Stop responding."""
        self._responds.clear()

    def end(self) -> None:
        """Respond again."""
        self._responds.set()


@pytest.fixture(params=["committed", "spans"])
def silence(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Silence]:
    """Requests for committed positions, or for the ends of changelogs, which can be delayed."""
    silence = Silence()
    monkeypatch.setattr(
        TopicPositions, request.param, silence(getattr(TopicPositions, request.param))
    )
    yield silence
    silence.end()


def test_tasks_that_stay_continue_while_brokers_do_not_respond(
    silence: Silence, ottla_cluster: Cluster
) -> None:
    """An instance takes tasks over, and their positions or changelogs are not known for 5 s."""
    ottla_cluster.create_topic("words", partitions=4)
    options = {"processing_guarantee": "exactly_once_v2", "default_dsl_store": "in_memory"}
    produce(ottla_cluster, _KEYS)
    with counting(ottla_cluster.bootstrap, **options) as app:
        app.await_running(WAIT_S)
        other = counting(ottla_cluster.bootstrap, **options)
        other.start()
        other.await_running(WAIT_S)
        for instance in (app, other):
            wait(lambda row=instance: row.progress().tasks["active"] == 2, "two tasks each", WAIT_S)
        counts = app.store("counts", is_local=True)
        app.await_idle(WAIT_S)
        staying = dict(counts.all())
        assert set(staying) < set(_KEYS)
        silence.begin()
        other.close()
        assert silence.is_waiting.wait(WAIT_S)
        started, longest = time.monotonic(), 0.0
        rounds = 0
        while time.monotonic() < started + _SILENCE_S:
            sent = time.monotonic()
            produce(ottla_cluster, staying)
            rounds += 1
            expected = dict.fromkeys(staying, 1 + rounds)
            wait(lambda row=expected: dict(counts.all()) == row, "new counts", WAIT_S)
            longest = max(longest, time.monotonic() - sent)
        print(f"longest pause of tasks that stay: {longest:.2f} s in {rounds} rounds")
        assert app.progress().tasks == {"active": 2, "restoring": 2, "standby": 0}
        assert dict(counts.all()) == dict.fromkeys(staying, 1 + rounds)
        silence.end()
        app.await_idle(WAIT_S)
        assert set(dict(counts.all())) == set(_KEYS)
        assert longest < _SILENCE_S
