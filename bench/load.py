"""A load generator on raw sockets: prepared requests, a fixed number in flight per connection.

Runs in a separate process (`python -m bench.load KIND …`) and prints one JSON object. If there is a
C compiler, the loop is bench/generator.c. Otherwise it is the loop in this file, in Python: a fast
broker then waits for the generator, so compare the broker's CPU time and not the rates.
"""

import argparse
import json
import select
import socket
import statistics
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from bench.compiled import compiled
from bench.servers import receive_exactly
from ottla.wire import headers
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest
from ottla.wire.records.records import Record, encode_batch

PRODUCE_VERSION, FETCH_VERSION = 9, 12


def produce_request(
    topic: str,
    partition: int,
    records: int,
    value_bytes: int,
    version: int = PRODUCE_VERSION,
    *,
    acks: int = 1,
) -> bytes:
    """Return a framed Produce request of one batch."""
    value = (b'{"n":12345,"text":"the quick brown fox"}' * (value_bytes // 40 + 1))[:value_bytes]
    batch = encode_batch([Record(None, value, (), 1_700_000_000_000)] * records)
    body = ProduceRequest(
        acks=acks,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(
                name=topic,
                partition_data=[PartitionProduceData(index=partition, records=bytes(batch))],
            )
        ],
    )
    return frame(headers.encode_request(body, version, 7, "bench"))


def fetch_request(
    topic: str,
    partitions: int | Sequence[int],
    max_bytes: int,
    offset: int = 0,
    version: int = FETCH_VERSION,
) -> bytes:
    """Return a framed Fetch request, without a session, of one partition or several.

    `max_bytes` is the limit of each partition.
    """
    numbers = [partitions] if isinstance(partitions, int) else partitions
    body = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=max_bytes * len(numbers),
        session_epoch=-1,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(
                        partition=number, fetch_offset=offset, partition_max_bytes=max_bytes
                    )
                    for number in numbers
                ],
            )
        ],
    )
    return frame(headers.encode_request(body, version, 7, "bench"))


def metadata_request(topics: list[str]) -> bytes:
    """Return a framed Metadata v9 for named topics."""
    body = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in topics])
    return frame(headers.encode_request(body, 9, 7, "bench"))


def login_requests(mechanism: str, message: bytes) -> tuple[bytes, bytes]:
    """Return the framed requests that begin an exchange of SASL; of PLAIN they are all of it."""
    return (
        frame(headers.encode_request(SaslHandshakeRequest(mechanism=mechanism), 1, 7, "bench")),
        authenticate_request(message),
    )


def authenticate_request(message: bytes) -> bytes:
    """Return a framed SaslAuthenticate v2 with a message of an exchange."""
    body = SaslAuthenticateRequest(auth_bytes=message)
    return frame(headers.encode_request(body, 2, 7, "bench"))


def plain_message(user: str, password: str) -> bytes:
    """Return the only message of SASL PLAIN (RFC 4616)."""
    return f"\0{user}\0{password}".encode()


def frame(body: bytes) -> bytes:
    """Prefix a request with its length."""
    return len(body).to_bytes(4, "big") + body


def exchange(connection: socket.socket, request: bytes) -> bytearray:
    """Send one framed request and return its response without the length."""
    connection.sendall(request)
    size = int.from_bytes(receive_exactly(connection, 4), "big")
    return receive_exactly(connection, size)


class Lane:
    """One connection: sends its prepared request again after every response.

    The requests of the greeting are sent before, one after the response to another.
    """

    def __init__(
        self, port: int, request: bytes, depth: int, greeting: Sequence[bytes] = ()
    ) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for first in greeting:
            exchange(self.socket, first)
        self.request = request
        self.sent: deque[int] = deque()
        self.buffer = bytearray(1 << 20)
        self.left = 0
        self.head = b""
        self.bytes_in = 0
        for _ in range(depth):
            self.send()

    def send(self) -> None:
        """Send the request again."""
        self.sent.append(time.perf_counter_ns())
        self.socket.sendall(self.request)

    def receive(self) -> int:
        """Read the available bytes; return the number of completed responses."""
        count = self.socket.recv_into(self.buffer)
        if not count:
            raise SystemExit("the broker closed the connection")
        self.bytes_in += count
        position = responses = 0
        while position < count:
            if self.left:
                step = min(self.left, count - position)
                self.left -= step
                position += step
                responses += not self.left
                continue
            need = 4 - len(self.head)
            self.head += self.buffer[position : position + need]
            position = min(count, position + need)
            if len(self.head) == 4:
                self.left, self.head = int.from_bytes(self.head, "big"), b""
        return responses


def run(
    port: int,
    requests: list[bytes],
    depth: int,
    seconds: float,
    greeting: Sequence[bytes] = (),
) -> dict[str, float]:
    """Keep `depth` requests in flight on one connection per canned request for `seconds`."""
    lanes = [Lane(port, request, depth, greeting) for request in requests]
    poll = select.epoll()
    by_fd = {lane.socket.fileno(): lane for lane in lanes}
    for fd in by_fd:
        poll.register(fd, select.EPOLLIN)
    now = time.perf_counter_ns
    times: list[int] = []
    begin = now()
    end = begin + int(seconds * 1e9)
    while now() < end:
        for fd, _ in poll.poll(1):
            lane = by_fd[fd]
            for _ in range(lane.receive()):
                times.append(now() - lane.sent.popleft())
                lane.send()
    elapsed = (now() - begin) / 1e9
    for lane in lanes:
        lane.socket.close()
    cuts = statistics.quantiles(times, n=100) if len(times) > 1 else [0.0] * 99
    return {
        "requests": len(times),
        "requests_s": len(times) / elapsed,
        "p50_us": cuts[49] / 1000,
        "p99_us": cuts[98] / 1000,
        "sent_mb_s": sum(map(len, requests)) / len(requests) * len(times) / elapsed / 1e6,
        "received_mb_s": sum(lane.bytes_in for lane in lanes) / elapsed / 1e6,
    }


def run_compiled(
    program: Path,
    port: int,
    requests: list[bytes],
    depth: int,
    seconds: float,
    greeting: Sequence[bytes] = (),
) -> dict[str, float]:
    """Do the same as `run` in a program that needs little CPU time."""
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder:
        paths = [Path(folder) / str(number) for number in range(len(requests))]
        for path, request in zip(paths, requests, strict=True):
            path.write_bytes(request)
        first = Path(folder) / "greeting"
        first.write_bytes(b"".join(greeting))
        command = [str(program), "-g", str(first), str(port), str(depth), str(seconds)]
        command += map(str, paths)
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the load of port {port} ended: {done.stderr.strip()}")
    return dict(json.loads(done.stdout))


def main() -> None:
    """Run one kind of load and print its figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["produce", "fetch", "metadata"])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--connections", type=int, default=10)
    parser.add_argument("--depth", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--records", type=int, default=1)
    parser.add_argument("--value-bytes", type=int, default=100)
    parser.add_argument("--max-bytes", type=int, default=1 << 20)
    parser.add_argument("--offset", type=int, default=0, help="of fetches")
    parser.add_argument("--version", type=int, default=0, help="of the request; 0: the default")
    parser.add_argument(
        "--user", default="", help="log in with PLAIN; the password follows a colon"
    )
    options = parser.parse_args()
    requests = []
    for number in range(options.connections):
        if options.kind == "produce":
            size = (options.records, options.value_bytes)
            partition, version = number % options.partitions, options.version or PRODUCE_VERSION
            requests.append(produce_request(options.topic, partition, *size, version))
        elif options.kind == "fetch":
            version = options.version or FETCH_VERSION
            place = (range(options.partitions), options.max_bytes, options.offset)
            requests.append(fetch_request(options.topic, *place, version))
        else:
            requests.append(metadata_request(options.topic.split(",")))
    program = compiled("generator.c")
    user, _, password = options.user.partition(":")
    greeting = login_requests("PLAIN", plain_message(user, password)) if user else ()
    load = (options.port, requests, options.depth, options.seconds, greeting)
    print(json.dumps(run_compiled(program, *load) if program else run(*load)))


if __name__ == "__main__":
    main()
