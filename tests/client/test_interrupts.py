"""Ctrl-C ends every call that waits, and its `with` block, within 200 ms: no broker responds."""

import subprocess
import sys
from collections.abc import Iterator
from unittest.mock import Mock

import pytest

from ottla.client import Consumer
from ottla.testing import Cluster
from tests.client.interrupts import CALLS, LIMIT_S

_PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def programs() -> Iterator[dict[str, subprocess.Popen[str]]]:
    """A running program for each kind of client: they mostly wait, so they run at the same time."""
    started = {
        kind: subprocess.Popen(
            [sys.executable, "-m", "tests.client.interrupts", kind],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for kind in CALLS
    }
    yield started
    for process in started.values():
        process.kill()
        process.communicate()


@pytest.mark.parametrize("kind", CALLS)
def test_ctrl_c_ends_every_call(kind: str, programs: dict[str, subprocess.Popen[str]]) -> None:
    """The call ends, the client is closed, and the program ends although no broker responds."""
    output, errors = programs[kind].communicate(timeout=_PATIENCE_S)
    assert programs[kind].returncode == 0, errors
    assert "Traceback" not in errors
    rows = (line.rpartition(": ") for line in output.splitlines())
    delays = {name: [float(part) for part in text.split()] for name, _, text in rows}
    assert delays.keys() == CALLS[kind].keys()
    assert all(max(pair) < LIMIT_S * 1000 for pair in delays.values()), delays


def test_interrupt_that_the_binding_loses_is_raised(
    ottla_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it reports that a broker is down, it raises SystemError instead of Ctrl-C."""
    lost = SystemError("<method 'poll'> returned NULL without setting an exception")
    ottla_cluster.create_topic("t")
    with Consumer(bootstrap_servers=ottla_cluster.bootstrap) as consumer:
        consumer.assign([("t", 0)])
        with monkeypatch.context() as patch:
            patch.setattr(consumer, "_consumer", Mock(consume=Mock(side_effect=lost)))
            with pytest.raises(KeyboardInterrupt):
                consumer.poll(1)
