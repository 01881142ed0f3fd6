"""Scenario 23: frames that lie, all APIs, against a living broker; `attack.py` plays millions of them."""

import pytest

from ottla.server.transport.apis import ROWS
from tests.robustness import attack
from tests.robustness.attack import ANSWERED, CLOSED, SETTINGS
from tests.robustness.conftest import Start
from tests.robustness.hostile import api_names, valid_requests


def complaints(start: Start, cases: int, seed: int) -> list[str]:
    """Play cases; return what they did to the broker beyond the bounds."""
    broker = start(SETTINGS)
    verdict, attacker, neighbour = attack.attack(broker, cases, seed)
    # Damage must neither be all harmless nor all fatal.
    assert attacker.outcomes[ANSWERED] > cases / 10
    assert attacker.outcomes[CLOSED] > cases / 10
    assert len(neighbour.latencies) > 100
    assert broker.stop() == 0
    return verdict.complaints


def test_every_api_that_is_served_is_attacked() -> None:
    """In every version: what is served must stand what a stranger sends."""
    versions = {(each.cls.API_KEY, each.version) for each in valid_requests()}
    served = {
        (int(row.handler.API), version)
        for row in ROWS
        for version in range(row.handler.MIN_VERSION, row.handler.MAX_VERSION + 1)
    }
    # ApiVersions is the sentinel behind every case as well; Produce has no golden batch in v3.
    assert not served - versions, sorted(served - versions)
    assert len(api_names()) >= len(ROWS)


def test_some_malformed_frames_do_no_harm(start: Start) -> None:
    """A few thousand cases, in the quick tests."""
    assert complaints(start, 2_000, 7) == []


@pytest.mark.slow
def test_many_malformed_frames_do_no_harm(start: Start) -> None:
    """No crash, no bug told in the log, no storm of lines, no pause, bounded memory."""
    assert complaints(start, 30_000, 1) == []
