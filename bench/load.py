"""A load generator on raw sockets: prepared requests, a fixed number in flight per connection.

Runs in a separate process (`python -m bench.load KIND …`) and prints one JSON object. If there is a
C compiler, the loop is bench/generator.c. Otherwise it is the loop in this file, in Python: a fast
broker then waits for the generator, so compare the broker's CPU time and not the rates.
"""

import argparse
import json
import select
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from collections import deque
from pathlib import Path

from ottla.wire import headers
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records.records import Record, encode_batch


def produce_request(
    topic: str, partition: int, records: int, value_bytes: int, acks: int = 1
) -> bytes:
    """Return a framed Produce v9 of one batch."""
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
    return frame(headers.encode_request(body, 9, 7, "bench"))


def fetch_request(topic: str, partition: int, max_bytes: int, offset: int = 0) -> bytes:
    """Return a framed Fetch v12 of one partition, without a session."""
    body = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=max_bytes,
        session_epoch=-1,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(
                        partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes
                    )
                ],
            )
        ],
    )
    return frame(headers.encode_request(body, 12, 7, "bench"))


def metadata_request(topics: list[str]) -> bytes:
    """Return a framed Metadata v9 for named topics."""
    body = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in topics])
    return frame(headers.encode_request(body, 9, 7, "bench"))


def frame(body: bytes) -> bytes:
    """Prefix a request with its length."""
    return len(body).to_bytes(4, "big") + body


class Lane:
    """One connection: sends its prepared request again after every response."""

    def __init__(self, port: int, request: bytes, depth: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
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
        position = answers = 0
        while position < count:
            if self.left:
                step = min(self.left, count - position)
                self.left -= step
                position += step
                answers += not self.left
                continue
            need = 4 - len(self.head)
            self.head += self.buffer[position : position + need]
            position = min(count, position + need)
            if len(self.head) == 4:
                self.left, self.head = int.from_bytes(self.head, "big"), b""
        return answers


def run(port: int, requests: list[bytes], depth: int, seconds: float) -> dict[str, float]:
    """Keep `depth` requests in flight on one connection per canned request for `seconds`."""
    lanes = [Lane(port, request, depth) for request in requests]
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


def compiled_generator() -> Path | None:
    """Return bench/generator.c as a program, compiled if it has changed; None without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    source = Path(__file__).with_name("generator.c")
    program = Path(tempfile.gettempdir()) / f"ottla-generator-{source.stat().st_mtime_ns}"
    if not program.exists():
        fresh = program.with_suffix(".new")
        subprocess.run([compiler, "-O2", "-o", str(fresh), str(source)], check=True)
        fresh.rename(program)
    return program


def run_compiled(
    program: Path, port: int, requests: list[bytes], depth: int, seconds: float
) -> dict[str, float]:
    """Do the same as `run` in a program that needs little CPU time."""
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder:
        paths = [Path(folder) / str(number) for number in range(len(requests))]
        for path, request in zip(paths, requests, strict=True):
            path.write_bytes(request)
        command = [str(program), str(port), str(depth), str(seconds), *map(str, paths)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
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
    words = parser.parse_args()
    requests = []
    for number in range(words.connections):
        partition = number % words.partitions
        if words.kind == "produce":
            requests.append(
                produce_request(words.topic, partition, words.records, words.value_bytes)
            )
        elif words.kind == "fetch":
            requests.append(fetch_request(words.topic, partition, words.max_bytes))
        else:
            requests.append(metadata_request(words.topic.split(",")))
    program = compiled_generator()
    load = (words.port, requests, words.depth, words.seconds)
    print(json.dumps(run_compiled(program, *load) if program else run(*load)))


if __name__ == "__main__":
    main()
