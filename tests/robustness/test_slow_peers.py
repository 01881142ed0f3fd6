"""Peers that do not read, read slowly, or never finish a request do not affect others (scenario
21).
"""

import socket
import struct
import time
from collections.abc import Callable

import pytest

from bench.load import fetch_request
from bench.observed import ObservedBroker
from bench.pauses import Line, Neighbour, fill
from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from ottla.net.receiving import PREFIX_BYTES
from tests.robustness.conftest import Start

pytestmark = [pytest.mark.slow, pytest.mark.alone]

MIB = 1024 * 1024
FETCH_BYTES = MIB
PAUSE_MS_MAX = 100.0
# The CPU time of the loop's own thread excludes the time of other processes.


def loaded(start: Start, settings: dict[str, str]) -> ObservedBroker:
    """Return a broker with a topic of 16 MiB."""
    broker = start(settings)
    with Brokers(f"127.0.0.1:{broker.port}") as admin:
        topics.create_topic(admin, "t", partitions=1)
    fill(broker.port, "t", 16 * MIB)
    return broker


def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for an event in another process."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        select_nothing(0.05)


def select_nothing(seconds: float) -> None:
    """Let another process work."""
    probe, other = socket.socketpair()
    with probe, other:
        probe.settimeout(seconds)
        with pytest.raises(TimeoutError):
            probe.recv(1)


def median_ms(broker: ObservedBroker, seconds: float) -> float:
    """Return the median time of another client's request."""
    neighbour = Neighbour(broker.port)
    select_nothing(seconds)
    neighbour.stop()
    rows = sorted(neighbour.latencies)
    return rows[len(rows) // 2]


def test_peer_that_never_reads_costs_little_and_is_disconnected(start: Start) -> None:
    """Twenty clients request megabytes and read nothing: memory is bounded, and others are served."""
    broker = loaded(start, {"connections.max.idle.ms": "3000"})
    usual = median_ms(broker, 0.5)
    before = broker.take()
    request = fetch_request("t", 0, FETCH_BYTES)
    greedy = [socket.create_connection(("127.0.0.1", broker.port)) for _ in range(20)]
    for peer in greedy:
        peer.setblocking(False)
        # As many bytes as the kernel accepts.
        for _ in range(200):
            try:
                peer.send(request)
            except BlockingIOError:
                break
    beside = median_ms(broker, 1.0)
    during = broker.take()
    # One response for each is read from the log; a second one only after the first is sent.
    assert during.unsent_bytes <= 20 * 2 * FETCH_BYTES
    assert during.rss_mib - before.rss_mib < 20 * 3 * FETCH_BYTES / MIB
    assert min(during.lag_ms, during.cpu_ms) < PAUSE_MS_MAX
    assert beside < 2 * usual + 10
    until(lambda: broker.take().connections == 0)
    after = broker.take()
    assert after.unsent_bytes == 0
    assert after.descriptors <= before.descriptors
    for peer in greedy:
        peer.close()


def test_readers_that_never_read_cost_no_memory_for_records(start: Start) -> None:
    """Three hundred responses of a megabyte wait in the segment file, not in the broker's memory."""
    broker = loaded(start, {})
    before = broker.take()
    request = fetch_request("t", 0, FETCH_BYTES)
    greedy = [socket.socket() for _ in range(300)]
    for peer in greedy:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.connect(("127.0.0.1", broker.port))
        peer.sendall(request)
    until(lambda: broker.take().connections >= 300)
    during = broker.take()
    assert during.rss_mib - before.rss_mib < 40
    for peer in greedy:
        peer.close()


def test_slow_reader_gets_its_whole_response(start: Start) -> None:
    """A client that reads a little at a time is not idle, however long a response takes."""
    broker = loaded(start, {"connections.max.idle.ms": "1000"})
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * 1024)
    peer.connect(("127.0.0.1", broker.port))
    peer.settimeout(10)
    peer.sendall(fetch_request("t", 0, 4 * MIB))
    (size,) = struct.unpack(">i", peer.recv(PREFIX_BYTES, socket.MSG_WAITALL))
    begin, left = time.monotonic(), size
    while left:
        data = peer.recv(min(left, 96 * 1024))
        assert data, f"closed with {left} of {size} bytes to go"
        left -= len(data)
        if time.monotonic() - begin < 3:
            select_nothing(0.1)
    assert time.monotonic() - begin > 2
    peer.close()


def test_incomplete_requests_cost_what_has_arrived(start: Start) -> None:
    """Fifty clients announce 100 MiB and send a few bytes; no memory is allocated for the rest."""
    broker = loaded(start, {"connections.max.idle.ms": "2000"})
    # By then the broker has imported what it defers until after the start.
    usual = median_ms(broker, 2.0)
    before = broker.take()
    dawdling = [socket.create_connection(("127.0.0.1", broker.port)) for _ in range(50)]
    for number, peer in enumerate(dawdling):
        announced = struct.pack(">i", 100 * MIB)
        peer.sendall(announced + bytes(64 * 1024) if number % 2 else announced[:2])
    for _ in range(3):
        for peer in dawdling:
            peer.sendall(b"\0")
        select_nothing(0.2)
    beside = median_ms(broker, 0.5)
    during = broker.take()
    # 25 have the buffer that a frame gets before it arrives: at most 2 MiB each, untouched pages.
    assert during.rss_mib - before.rss_mib < 64
    assert min(during.lag_ms, during.cpu_ms) < PAUSE_MS_MAX
    assert beside < 2 * usual + 10
    until(lambda: broker.take().connections == 0)
    assert broker.take().held_bytes == 0
    for peer in dawdling:
        peer.close()


def test_requests_wait_if_request_memory_is_used_up(start: Start) -> None:
    """When queued.max.request.bytes are used, the broker stops reading; it resumes when memory is
    free.
    """
    broker = loaded(
        start, {"queued.max.request.bytes": str(4 * MIB), "socket.request.max.bytes": str(4 * MIB)}
    )
    body = bytes(3 * MIB)
    hoarders = [socket.create_connection(("127.0.0.1", broker.port)) for _ in range(4)]
    for peer in hoarders:
        peer.setblocking(False)
        peer.send(struct.pack(">i", len(body)))
        sent = 0
        while sent < len(body) - 1:
            try:
                sent += peer.send(body[sent : len(body) - 1])
            except BlockingIOError:
                select_nothing(0.05)
                if not broker.take().held_bytes < 4 * MIB:
                    break
    # The kernel may have received bytes that the broker has not read yet.
    until(lambda: broker.take().held_bytes >= 4 * MIB)
    held = broker.take().held_bytes
    # Memory is granted as long as any is left: the last request may exceed the limit, once.
    assert 4 * MIB <= held <= 4 * MIB + len(body) + 2 * PREFIX_BYTES
    line = Line(broker.port)
    # Small requests that arrive completely need no memory beyond the read, so they are served.
    line.send_bytes(fetch_request("t", 0, 1000))
    assert line.receive_bytes()
    for peer in hoarders:
        peer.close()
    until(lambda: broker.take().held_bytes == 0)
    fill(broker.port, "t", 4 * MIB)
    line.close()


def test_announced_requests_do_not_delay_others(start: Start) -> None:
    """Ten connections announce 100 MiB and send 11 bytes; a producer of large requests is not
    delayed.
    """
    broker = loaded(start, {})
    announcers = [socket.create_connection(("127.0.0.1", broker.port)) for _ in range(10)]
    for peer in announcers:
        peer.sendall(struct.pack(">i", 100 * MIB) + bytes(11))
    until(lambda: broker.take().connections >= len(announcers))
    begin = time.monotonic()
    fill(broker.port, "t", 16 * MIB)
    assert time.monotonic() - begin < 10
    assert broker.take().held_bytes < 64 * MIB
    for peer in announcers:
        peer.close()
