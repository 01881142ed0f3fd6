"""Measure what idle connections cost a broker and its other clients: `python -m bench.connections`.

Opens `--count` connections that send one request and then stay idle, opens and closes others
`--churn` times a second, and lets one client produce at the same time.
"""

import argparse
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from bench.observed import ObservedBroker, raise_descriptor_limit
from bench.pauses import Neighbour
from ottla.wire import headers
from ottla.wire.messages.api_versions import ApiVersionsRequest

SETTINGS = {"max.connections": "15000", "connections.max.idle.ms": "600000"}
_KIB = 1024
_SECONDS = 3.0


class Figures(NamedTuple):
    """KiB per connection, connections per second, milliseconds, descriptors that were not closed."""

    kib_each: float
    accepted_per_second: float
    median_ms_alone: float
    median_ms: float
    p99_ms_alone: float
    p99_ms: float
    pause_ms: float
    churned: int
    leaked: int


def _request() -> bytes:
    body = headers.encode_request(ApiVersionsRequest(), 0, 1, "idle")
    return struct.pack(">i", len(body)) + body


def open_one(port: int, request: bytes) -> socket.socket:
    """Connect, send the request, and read the response."""
    peer = socket.create_connection(("127.0.0.1", port), 10)
    peer.sendall(request)
    (size,) = struct.unpack(">i", peer.recv(4))
    while size:
        size -= len(peer.recv(size))
    return peer


@contextmanager
def _opened(port: int, count: int) -> Iterator[float]:
    """Hold `count` idle connections; yields how many were accepted per second."""
    request, peers = _request(), []
    begin = time.perf_counter()
    try:
        for _ in range(count):
            peers.append(open_one(port, request))
        yield count / (time.perf_counter() - begin)
    finally:
        for peer in peers:
            peer.close()


def measure(broker: ObservedBroker, count: int, churn: int) -> Figures:
    """Measure a running broker."""
    alone = _latencies(broker, 0)
    before = broker.take()
    with _opened(broker.port, count) as rate:
        after = broker.take()
        beside = _latencies(broker, churn)
        during = broker.take()
    end = time.monotonic() + 30
    while broker.take().connections > before.connections:
        assert time.monotonic() < end, "connections are left"
        time.sleep(0.05)
    left = broker.take()
    return Figures(
        (after.rss_mib - before.rss_mib) * _KIB / count,
        rate,
        alone[len(alone) // 2],
        beside[len(beside) // 2],
        alone[int(len(alone) * 0.99)],
        beside[int(len(beside) * 0.99)],
        min(during.lag_ms, during.cpu_ms),
        int(churn * _SECONDS),
        left.descriptors - before.descriptors,
    )


def _latencies(broker: ObservedBroker, churn: int) -> list[float]:
    """Produce for a while, next to connections that open and close; return the latencies, sorted."""
    neighbour = Neighbour(broker.port)
    request, begin = _request(), time.monotonic()
    for number in range(int(churn * _SECONDS)):
        open_one(broker.port, request).close()
        time.sleep(max(0.0, begin + number / churn - time.monotonic()))
    time.sleep(max(0.0, begin + _SECONDS - time.monotonic()))
    neighbour.stop()
    return sorted(neighbour.latencies)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--churn", type=int, default=200)
    options = parser.parse_args()
    raise_descriptor_limit()
    with ObservedBroker(SETTINGS) as broker:
        result = measure(broker, options.count, options.churn)
        print(
            f"{options.count} idle connections: {result.kib_each:.1f} KiB each, accepted "
            f"{result.accepted_per_second:.0f} a second; beside {options.churn} a second that come and "
            f"go: p50 {result.median_ms:.2f} ms (alone {result.median_ms_alone:.2f}), p99 "
            f"{result.p99_ms:.2f} ms (alone {result.p99_ms_alone:.2f}), longest pause "
            f"{result.pause_ms:.1f} ms, {result.leaked} descriptors lost"
        )


if __name__ == "__main__":
    main()
