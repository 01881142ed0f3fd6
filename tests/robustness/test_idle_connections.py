"""Thousands of idle connections, and others that open and close (scenario 22)."""

import resource

import pytest

from bench import connections
from tests.robustness.conftest import Start

pytestmark = [pytest.mark.slow, pytest.mark.alone]

COUNT = 4_000
KIB_EACH_MAX = 40
PAUSE_MS_MAX = 100.0


def test_idle_connections_cost_little_and_do_not_affect_others(start: Start) -> None:
    """`python -m bench.connections` uses ten thousand; the limits are the same."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] < COUNT + 500:
        pytest.skip(f"{before[1]} descriptors are too few here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    try:
        actual = connections.measure(start(connections.SETTINGS), COUNT, 200)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert actual.kib_each < KIB_EACH_MAX
    assert actual.median_ms < 2 * actual.median_ms_alone + 10
    assert actual.pause_ms < PAUSE_MS_MAX
    assert actual.leaked <= 0
