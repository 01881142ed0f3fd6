"""Invalid frames of all APIs, sent to a running broker; `attack.py` sends millions of them
(scenario 23).
"""

import pytest

from ottla.server.transport.apis import ROWS
from tests.robustness import attack
from tests.robustness.attack import ANSWERED, CLOSED, SETTINGS
from tests.robustness.conftest import Start
from tests.robustness.hostile import api_names, valid_requests

pytestmark = pytest.mark.alone


def complaints(start: Start, cases: int, seed: int) -> list[str]:
    """Send cases; return the exceeded limits."""
    broker = start(SETTINGS)
    verdict, attacker, neighbour = attack.attack(broker, cases, seed)
    # Some cases must be harmless, and some must close the connection.
    assert attacker.outcomes[ANSWERED] > cases / 10
    assert attacker.outcomes[CLOSED] > cases / 10
    assert len(neighbour.latencies) > 100
    assert broker.stop() == 0
    return verdict.complaints


def test_every_api_that_is_served_is_attacked() -> None:
    """The cases cover every version of every supported API."""
    versions = {(request.cls.API_KEY, request.version) for request in valid_requests()}
    served = {
        (int(row.handler.API), version)
        for row in ROWS
        for version in range(row.handler.MIN_VERSION, row.handler.MAX_VERSION + 1)
    }
    # ApiVersions is also the request after every case; Produce has no golden batch in v3.
    assert not served - versions, sorted(served - versions)
    assert len(api_names()) >= len(ROWS)


def test_some_malformed_frames_do_no_harm(start: Start) -> None:
    """The same in each run of the tests, with fewer cases."""
    assert complaints(start, 30_000, 7) == []


@pytest.mark.timeout(900)
@pytest.mark.nightly(
    "tests/robustness/test_hostile_frames.py::test_some_malformed_frames_do_no_harm"
)
def test_many_malformed_frames_do_no_harm(start: Start) -> None:
    """There is no crash, no logged bug, no flood of log lines, no pause, and memory is bounded."""
    assert complaints(start, 100_000, 1) == []
