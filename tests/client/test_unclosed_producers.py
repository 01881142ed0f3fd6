"""Producers that are never closed: the records that are lost are reported."""

import subprocess
import sys

import pytest

from ottla.testing import Cluster

SENDS = {
    "Producer": "producer.send('t', b'x')",
    "AsyncProducer": "asyncio.run(producer.send('t', b'x'))",
}


def output_of(kind: str, call: str, bootstrap: str) -> str:
    """Return the standard error of a program that sends a record and makes a call."""
    script = (
        f"import asyncio\nfrom ottla.client import {kind}\n"
        f"producer = {kind}(bootstrap_servers={bootstrap!r}, linger_ms=60_000)\n"
        f"{SENDS[kind]}\n{call}\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0
    return done.stderr


@pytest.mark.parametrize("kind", SENDS)
@pytest.mark.parametrize("call", ["", "del producer; import gc; gc.collect(); print()"])
def test_lost_records_are_reported(kind: str, call: str) -> None:
    """At the end of the program, or when the garbage collector finds the producer."""
    text = output_of(kind, call, "127.0.0.1:1")
    assert "a producer was not closed, and unacknowledged records may be lost: use `with`" in text


def test_closed_producer_reports_nothing(cluster: Cluster) -> None:
    """Also one that is flushed and not closed."""
    for call in ("producer.close()", "producer.flush()"):
        assert output_of("Producer", call, cluster.bootstrap) == ""
