"""Clients that wait: fetches without data over many partitions, and clients that never read.

Runs as a process of its own (`python -m bench.waiting KIND …`) and prints one JSON object.
"""

import argparse
import json
import resource
import socket
import sys
import time
from collections.abc import Callable

from bench.load import fetch_request, frame, produce_request
from bench.servers import receive_exactly
from ottla.wire import headers
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

Figures = dict[str, float]
_FETCH_VERSION = 12
_WAIT_MS = 30_000
_READY_SECONDS = 60.0
_FETCH_BYTES = 1 << 20


class Line:
    """One connection that sends framed requests and receives responses."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, request: bytes) -> None:
        """Send one framed request."""
        self._socket.sendall(request)

    def receive(self) -> bytearray:
        """Return the next response without its length."""
        size = int.from_bytes(receive_exactly(self._socket, 4), "big")
        return receive_exactly(self._socket, size)


def waiting_fetch(topic: str, offsets: dict[int, int], session: tuple[int, int]) -> bytes:
    """Return a framed fetch from the given offsets that waits for a record."""
    return _fetch(topic, offsets, session, _WAIT_MS)


def _fetch(topic: str, offsets: dict[int, int], session: tuple[int, int], wait_ms: int) -> bytes:
    session_id, session_epoch = session
    partitions = [
        FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES)
        for number, offset in offsets.items()
    ]
    body = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=_FETCH_BYTES,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=[FetchTopic(topic=topic, partitions=partitions)] if partitions else [],
    )
    return frame(headers.encode_request(body, _FETCH_VERSION, 7, "bench"))


def _decoded(body: bytearray) -> FetchResponse:
    response: FetchResponse = headers.decode_response(FetchResponse, _FETCH_VERSION, body)[1]
    assert not response.error_code, response.error_code
    return response


def wait_for_leaders(line: Line, topic: str, partitions: int) -> None:
    """Return as soon as all partitions can be read: a broker may be creating them still."""
    request = _fetch(topic, dict.fromkeys(range(partitions), 0), (0, -1), 0)
    deadline = time.monotonic() + _READY_SECONDS
    while time.monotonic() < deadline:
        line.send(request)
        (answered,) = _decoded(line.receive()).responses
        if not any(partition.error_code for partition in answered.partitions):
            return
        time.sleep(0.1)
    raise SystemExit(f"not all partitions of {topic} have a leader after {_READY_SECONDS} s")


def _read_partitions(response: FetchResponse) -> dict[int, int]:
    """Return the error code of each partition that has an error or records."""
    return {
        partition.partition_index: partition.error_code
        for answered in response.responses
        for partition in answered.partitions
        if partition.error_code or partition.records
    }


def long_poll(port: int, topic: str, partitions: int, seconds: float, is_session: bool) -> Figures:
    """Wait over all partitions of a topic without records, wake the fetch by one record, and
    repeat.

    The partitions take turns. Without a session each fetch names all of them; with one, it names
    the partition whose offset has changed (KIP-227).
    """
    reader, writer = Line(port), Line(port)
    wait_for_leaders(reader, topic, partitions)
    offsets = dict.fromkeys(range(partitions), 0)
    session = (0, 0) if is_session else (0, -1)
    changed = dict(offsets)
    times: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end or not times:
        number = len(times) % partitions
        record = produce_request(topic, number, 1, 100)
        request = waiting_fetch(topic, changed if is_session else offsets, session)
        reader.send(request)
        # A request on the reader's connection would wait behind the fetch. The broker handles a
        # small fetch long before the record; a large one is given time.
        time.sleep(0.001 if is_session and len(times) else 0.02)
        begin = time.perf_counter()
        writer.send(record)
        response = _decoded(reader.receive())
        times.append(time.perf_counter() - begin)
        writer.receive()
        assert _read_partitions(response) == {number: 0}, "answered without the record"
        offsets[number] += 1
        changed = {number: offsets[number]}
        if is_session:
            session = (response.session_id, session[1] + 1)
    times.sort()
    return {"wakes": len(times), "p50_us": times[len(times) // 2] * 1e6}


def never_read(port: int, topic: str, count: int, memory_mb: Callable[[], float]) -> Figures:
    """Connect, ask for a megabyte of each of six partitions, and do not read; return the broker's
    growth.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, count + 100)), hard))
    request = fetch_request(topic, range(6), _FETCH_BYTES)
    before = memory_mb()
    peers = []
    for _ in range(count):
        peer = socket.socket()
        # Little room in the kernel, so that the response waits in the broker.
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.connect(("127.0.0.1", port))
        peer.sendall(request)
        peers.append(peer)
    # Until the broker's memory has stopped growing, for ten seconds at most.
    grown = -1.0
    for _ in range(10):
        time.sleep(1)
        now = memory_mb() - before
        if abs(now - grown) < 1:
            break
        grown = now
    for peer in peers:
        peer.close()
    return {"memory_mb": grown}


def memory_of(pid: int) -> float:
    """Return the resident memory of a process in MB."""
    with open(f"/proc/{pid}/status") as status:
        fields = next(line for line in status if line.startswith("VmRSS")).split()
    return int(fields[1]) / 1024


def main() -> None:
    """Run one kind and print its figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["poll", "session_poll", "never_read"])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--pid", type=int, default=0, help="the broker's process, for its memory")
    parser.add_argument("--partitions", type=int, default=2000)
    parser.add_argument("--count", type=int, default=1500)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    if options.kind == "never_read":
        figures = never_read(
            options.port, options.topic, options.count, lambda: memory_of(options.pid)
        )
    else:
        is_session = options.kind == "session_poll"
        figures = long_poll(
            options.port, options.topic, options.partitions, options.seconds, is_session
        )
    json.dump(figures, sys.stdout)


if __name__ == "__main__":
    main()
