"""A search in the brokers needs the same memory for a topic of any size."""

from pathlib import Path

import pytest

from bench.observed import ObservedBroker
from bench.pauses import fill
from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from ottla.testing.process import run_command
from ottla.tools.broker.processes import free_port
from tests.robustness.conftest import Start

pytestmark = [pytest.mark.slow, pytest.mark.alone]

MIB = 1024 * 1024
TOPIC_BYTES = 64 * MIB
# Buffers of one search, and what the allocator keeps of them.
GROWTH_MIB = 8


def peak_mib(broker: ObservedBroker) -> float:
    """Return the largest resident memory of a broker since `reset_peak`."""
    for line in Path(f"/proc/{broker.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("Linux reports no VmHWM")


def reset_peak(broker: ObservedBroker) -> None:
    """Let Linux measure the peak from now on."""
    Path(f"/proc/{broker.pid}/clear_refs").write_text("5")


def search(broker: ObservedBroker, *words: str) -> str:
    """Search for records that do not exist; return the report."""
    line = ["topic", "search", "t", *words, "--bootstrap", f"127.0.0.1:{broker.port}"]
    done = run_command(*line)
    assert done.returncode == 1, done.stderr.decode()
    return done.stderr.decode()


def test_memory_of_a_search_does_not_depend_on_the_size_of_the_topic(start: Start) -> None:
    """Searching 64 MiB, with and without decoding each record, grows the broker by a few MiB."""
    address = f"127.0.0.1:{free_port(is_any=True)}"
    broker = start({"metrics.listener": address, "search.enable": "true"})
    with Brokers(f"127.0.0.1:{broker.port}") as admin:
        topics.create_topic(admin, "t", partitions=1)
    fill(broker.port, "t", TOPIC_BYTES)
    # The first search imports its modules.
    search(broker, "--value-regex", "needle", "-o", "-1")
    before = broker.take().rss_mib
    reset_peak(broker)
    assert "in the brokers" in search(broker, "--value", "needle")
    assert peak_mib(broker) - before < GROWTH_MIB
    report = search(broker, "--value-regex", "n[e]{2}dle|^$")
    records = int(report.split("; ")[1].split()[0])
    assert records > TOPIC_BYTES / 1100, report
    assert peak_mib(broker) - before < GROWTH_MIB
