"""More connections than descriptors, while the broker opens and closes files (scenario 23)."""

import resource
import socket
from contextlib import ExitStack

import pytest

from bench import servers
from bench.pauses import fill
from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse
from tests.robustness.conftest import Start
from tests.robustness.test_slow_peers import until

pytestmark = [pytest.mark.slow, pytest.mark.alone]

MIB = 1024 * 1024
LIMIT = 256
SETTINGS = {
    "log.segment.bytes": str(MIB),
    "log.flush.offset.checkpoint.interval.ms": "1000",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
}


def is_served(port: int) -> bool:
    """Return True if a new connection is accepted and gets a response."""
    try:
        servers.ask(port, MetadataRequest(topics=[]), MetadataResponse, 1)
    except OSError:
        return False
    return True


def test_more_silent_connections_than_descriptors(start: Start) -> None:
    """The broker rolls segments, writes checkpoints and serves clients all the time."""
    broker = start(SETTINGS)
    with Brokers(f"127.0.0.1:{broker.port}") as admin:
        topics.create_topic(admin, "t", partitions=1)
    fill(broker.port, "t", MIB)
    before = broker.take()
    resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (LIMIT, LIMIT))
    with ExitStack() as silent:
        for _ in range(3):
            for _ in range(150):
                peer = silent.enter_context(socket.socket())
                peer.setblocking(False)
                peer.connect_ex(("127.0.0.1", broker.port))
            # New connections are rejected as long as the silent ones are young.
            until(lambda: is_served(broker.port))
            fill(broker.port, "t", 8 * MIB)
            assert broker.take().descriptors < LIMIT
            broker.do("marks")
            broker.do("maintain")
    until(lambda: broker.take().connections == 0)
    assert broker.take().descriptors <= before.descriptors + 4
    lines = broker.lines()
    assert not [line for line in lines if "offline" in line or "Traceback" in line]
    assert len([line for line in lines if "WARNING" in line or "ERROR" in line]) < 10
    assert broker.stop() == 0
