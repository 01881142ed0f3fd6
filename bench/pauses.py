"""Measure how long the event loop stops while the broker does long work: one line per kind of work.

`python -m bench.pauses [--only NAME] [--partitions N] [--gigabytes N] [--members N] [--commits N]`.
Each kind of work runs in its own broker, with a client that produces one small record after the
other. `lag` is the longest delay of the loop; `cpu` is the largest CPU time of its own thread
between two checks. If other processes use the machine, the first is larger than the second. `p99`
is the client's latency. `stopped in` is the time from the signal to the end of the process.
`bench.cluster_pauses` measures the loops of three brokers with many partitions.
"""

import argparse
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from bench import servers
from bench.load import produce_request
from bench.observed import ObservedBroker, raise_descriptor_limit
from ottla.client.admin import configs, offsets, topics
from ottla.client.admin.configs import Resource, ResourceType
from ottla.client.brokers import Brokers
from ottla.wire import headers
from ottla.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from ottla.wire.records.records import Record, encode_batch

LIMIT_MS = 50.0
# For 10 000 partitions with a record each. Apache Kafka takes about 20 s.
STOP_LIMIT_S = 5.0
EVERY_BROKER = Resource(ResourceType.BROKER, "")
_TIMEOUT_S = 300.0


class Sizes(NamedTuple):
    """The amounts of work."""

    partitions: int
    gigabytes: float
    members: int
    commits: int


class Line:
    """A blocking connection that sends one request after the other."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), _TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, request: Any, version: int) -> None:
        """Send a request without waiting for the response."""
        body = headers.encode_request(request, version, 1, "bench")
        self._socket.sendall(len(body).to_bytes(4, "big") + body)

    def receive(self, response: type[Any], version: int) -> Any:
        """Read one response."""
        return headers.decode_response(response, version, self.receive_bytes())[1]

    def send_bytes(self, data: bytes) -> None:
        """Send a request with its size prefix."""
        self._socket.sendall(data)

    def has_answer(self) -> bool:
        """Return True if a response has begun to arrive."""
        return bool(select.select([self._socket], [], [], 0)[0])

    def receive_bytes(self) -> bytes:
        """Read one response without decoding it."""
        size = int.from_bytes(self._read(4), "big")
        return self._read(size)

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            assert more, "the broker closed the connection"
            data += more
        return bytes(data)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


class Neighbour:
    """A client that produces one small record after the other; its latencies are in milliseconds."""

    def __init__(self, port: int, topic: str = "neighbour") -> None:
        self.latencies: list[float] = []
        servers.produce_until_acknowledged(port, topic)
        self._line = Line(port)
        self._request = produce_request(topic, 0, 1, 100)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            begin = time.perf_counter()
            self._line.send_bytes(self._request)
            self._line.receive_bytes()
            self.latencies.append((time.perf_counter() - begin) * 1000)
            time.sleep(0.001)

    def stop(self) -> tuple[float, float]:
        """Stop the client; return p99 and the maximum."""
        self._stop.set()
        self._thread.join()
        self._line.close()
        result = sorted(self.latencies) or [0.0]
        return result[int(len(result) * 0.99)], result[-1]


worst = 0.0
slowest_stop = 0.0


@contextmanager
def measured(broker: ObservedBroker, name: str, *, has_neighbour: bool = True) -> Iterator[None]:
    """Print a line with the measurements of the code in the context."""
    global worst
    neighbour = Neighbour(broker.port) if has_neighbour else None
    before = broker.take()
    begin = time.perf_counter()
    try:
        yield
    finally:
        seconds = time.perf_counter() - begin
        p99, longest = neighbour.stop() if neighbour else (0.0, 0.0)
        result = broker.take()
    worst = max(worst, min(result.lag_ms, result.cpu_ms))
    mark = "  <-- too long" if min(result.lag_ms, result.cpu_ms) > LIMIT_MS else ""
    print(
        f"{name:44s} {seconds:7.2f} s  lag {result.lag_ms:6.1f}  cpu {result.cpu_ms:6.1f}  "
        f"p99 {p99:6.1f}  max {longest:6.1f} ms  rss {before.rss_mib:5.0f} -> {result.rss_mib:5.0f} MiB"
        f"{mark}",
        flush=True,
    )
    if result.lag_ms > LIMIT_MS:
        print(f"    {result.stack}", flush=True)


def fill(port: int, topic: str, total_bytes: int, *, partitions: int = 1, keys: int = 0) -> None:
    """Produce batches of about a megabyte each; `keys` is the number of different keys of the
    records.
    """
    value = bytes(range(256)) * 4
    count = 900
    requests = []
    for number in range(max(1, min(8, keys // count or 1))):
        records = [
            Record(b"%08d" % (number * count + at) if keys else None, value, (), 1_790_000_000_000)
            for at in range(count)
        ]
        requests.append(bytes(encode_batch(records)))
    line, sent = Line(port), 0
    frames = [
        produce_frame(topic, partition, batch)
        for partition in range(partitions)
        for batch in requests
    ]
    flying = 0
    while sent < total_bytes:
        for frame in frames:
            line.send_bytes(frame)
            sent += len(frame)
            flying += 1
            if flying >= 4:
                line.receive_bytes()
                flying -= 1
    for _ in range(flying):
        line.receive_bytes()
    line.close()


def produce_frame(topic: str, partition: int, batch: bytes) -> bytes:
    """Return a framed Produce request with one batch."""
    request = servers.ProduceRequest(
        acks=1,
        timeout_ms=30_000,
        topic_data=[
            servers.TopicProduceData(
                name=topic,
                partition_data=[servers.PartitionProduceData(index=partition, records=batch)],
            )
        ],
    )
    body = headers.encode_request(request, 9, 1, "fill")
    return len(body).to_bytes(4, "big") + body


def topic_resource(name: str) -> Resource:
    """Return the resource of a topic's configuration."""
    return Resource(ResourceType.TOPIC, name)


def many_partitions(sizes: Sizes) -> None:
    """Create, list, maintain, reload, load and delete a topic with many partitions."""
    global slowest_stop
    count = sizes.partitions
    with ObservedBroker({"log.segment.delete.delay.ms": "0", "log.retention.ms": "-1"}) as broker:
        with Brokers(f"127.0.0.1:{broker.port}", timeout_s=_TIMEOUT_S) as admin:
            with measured(broker, f"create {count} partitions"):
                topics.create_topic(admin, "many", partitions=count)
            with measured(broker, f"metadata of {count} partitions, 5 times"):
                line = Line(broker.port)
                for _ in range(5):
                    line.send(servers.MetadataRequest(topics=None), 9)
                    line.receive_bytes()
                line.close()
            servers.produce_to_all(broker.port, "many", count)
            for word in ("maintain", "retention", "marks"):
                with measured(broker, f"{word} of {count} partitions"):
                    broker.do(word)
            with measured(broker, "a topic's config changed"):
                configs.alter_config(
                    admin, topic_resource("many"), assign={"retention.bytes": "1000000"}
                )
                time.sleep(1)
            with measured(broker, "the broker's config changed"):
                configs.alter_config(
                    admin, EVERY_BROKER, assign={"log.retention.bytes": "10000000"}
                )
                time.sleep(1)
        for kind in ("clean", "crashed"):
            number = signal.SIGTERM if kind == "clean" else signal.SIGKILL
            begin = time.perf_counter()
            broker.stop(number)
            stopped = time.perf_counter()
            slowest_stop = max(slowest_stop, stopped - begin)
            broker.start(300)
            print(
                f"  {kind}: stopped in {stopped - begin:.2f} s, "
                f"started in {time.perf_counter() - stopped:.2f} s",
                flush=True,
            )
        admin = Brokers(f"127.0.0.1:{broker.port}", timeout_s=_TIMEOUT_S)
        with admin, measured(broker, f"delete {count} partitions"):
            topics.delete_topic(admin, "many")
            time.sleep(3)


def compaction(sizes: Sizes) -> None:
    """Compact a topic of short records and one of long ones."""
    settings = {"log.cleaner.enable": "false"}
    with ObservedBroker(settings) as broker:
        config = {"cleanup.policy": "compact", "segment.bytes": str(16 << 20),
                  "min.cleanable.dirty.ratio": "0.01"}  # fmt: skip
        with Brokers(f"127.0.0.1:{broker.port}", timeout_s=_TIMEOUT_S) as admin:
            topics.create_topic(admin, "long", partitions=2, config=config)
            topics.create_topic(admin, "short", partitions=2, config=config)
        total = int(sizes.gigabytes * 2**28)
        fill(broker.port, "long", total, partitions=2, keys=5000)
        fill_short(broker.port, "short", total // 4)
        time.sleep(2)
        broker.do("maintain")
        with measured(broker, f"compaction of {total * 5 // 4 >> 20} MiB"):
            broker.do("clean")


def fill_short(port: int, topic: str, total_bytes: int) -> None:
    """Produce batches of as many small records as fit."""
    count = 20_000
    records = [Record(b"%07d" % at, b"v", (), 1_790_000_000_000) for at in range(count)]
    for codec in (0, 4):
        frame = produce_frame(
            topic, 0 if codec else 1, bytes(encode_batch(records, compression=codec))
        )
        line, sent = Line(port), 0
        while sent < total_bytes // 2:
            line.send_bytes(frame)
            line.receive_bytes()
            sent += count * 16
        line.close()


def deletion(sizes: Sizes) -> None:
    """Delete a large topic, and the segments of another one by retention."""
    settings = {"log.segment.delete.delay.ms": "0"}
    with ObservedBroker(settings) as broker:
        admin = Brokers(f"127.0.0.1:{broker.port}", timeout_s=_TIMEOUT_S)
        with admin:
            for name in ("large", "old"):
                config = {"file.delete.delay.ms": "0"}
                if name == "old":
                    config["segment.bytes"] = str(64 << 20)
                topics.create_topic(admin, name, partitions=2, config=config)
                fill(broker.port, name, int(sizes.gigabytes * 2**29), partitions=2)
            time.sleep(2)
            with measured(broker, f"retention of {sizes.gigabytes / 2:g} GiB"):
                configs.alter_config(admin, topic_resource("old"), assign={"retention.bytes": "1"})
                time.sleep(0.5)
                broker.do("retention")
                broker.do("maintain")
                time.sleep(2)
            with measured(broker, f"deletion of {sizes.gigabytes / 2:g} GiB"):
                topics.delete_topic(admin, "large")
                broker.do("maintain")
                time.sleep(2)


def recovery(sizes: Sizes) -> None:
    """Start after a crash, and send a signal during the recovery."""
    with ObservedBroker({"log.segment.bytes": str(256 << 20)}) as broker:
        with Brokers(f"127.0.0.1:{broker.port}", timeout_s=_TIMEOUT_S) as admin:
            topics.create_topic(admin, "much", partitions=4)
        fill(broker.port, "much", int(sizes.gigabytes * 2**30), partitions=4)
        broker.stop(signal.SIGKILL)
        for path in broker.folder.glob("recovery-point-offset-checkpoint"):
            path.unlink()
        begin = time.perf_counter()
        broker.start(600)
        seconds = time.perf_counter() - begin
        result = broker.take()
        print(
            f"recovery of {sizes.gigabytes:g} GiB {seconds:30.2f} s  rss {result.rss_mib:.0f} MiB"
        )
        print("    " + "\n    ".join(line for line in broker.lines() if "recover" in line)[:1500])
        broker.stop()


def loading(sizes: Sizes) -> None:
    """Load a group's offsets: many commits in one partition of __consumer_offsets."""
    with ObservedBroker({"log.cleaner.enable": "false"}) as broker:
        line = Line(broker.port)
        ask_coordinator(broker.port, "group")
        done = 0
        while done < sizes.commits:
            rows = [
                OffsetCommitRequestPartition(partition_index=0, committed_offset=done + at)
                for at in range(1)
            ]
            rows *= 500
            line.send(
                OffsetCommitRequest(
                    group_id="group",
                    generation_id_or_member_epoch=-1,
                    topics=[OffsetCommitRequestTopic(name="t", partitions=rows)],
                ),
                7,
            )
            line.receive(OffsetCommitResponse, 7)
            done += 500
        line.close()
        broker.stop()
        broker.start(120)
        with measured(broker, f"loading of {done} commits"):
            ask_coordinator(broker.port, "group")
            line = Line(broker.port)
            while True:
                line.send(OffsetCommitRequest(group_id="group",
                    generation_id_or_member_epoch=-1, topics=[]), 7)  # fmt: skip
                response = line.receive(OffsetCommitResponse, 7)
                if not response.topics:
                    break
            time.sleep(2)
            line.close()


def ask_coordinator(port: int, group: str) -> None:
    """Have __consumer_offsets created."""
    servers.produce_until_acknowledged(port, "t")
    with Brokers(f"127.0.0.1:{port}", timeout_s=60) as admin:
        offsets.commit_offsets(admin, group, {("t", 0): offsets.CommittedOffset(0, -1, "")})


def large_group(sizes: Sizes) -> None:
    """Let many members join a classic group until each one has its assignment."""
    with ObservedBroker({"group.initial.rebalance.delay.ms": "1000"}) as broker:
        ask_coordinator(broker.port, "large")
        lines = [Line(broker.port) for _ in range(sizes.members)]
        with measured(broker, f"a group of {sizes.members} members"):
            protocol = JoinGroupRequestProtocol(name="range", metadata=bytes(200))

            def join(line: Line, member_id: str = "") -> None:
                line.send(
                    JoinGroupRequest(group_id="large", session_timeout_ms=60_000,
                        rebalance_timeout_ms=60_000, member_id=member_id,
                        protocol_type="consumer", protocols=[protocol]), 5)  # fmt: skip

            for line in lines:
                join(line)
            ids = [line.receive(JoinGroupResponse, 5).member_id for line in lines]
            for line, member_id in zip(lines, ids, strict=True):
                join(line, member_id)
            joined = [line.receive(JoinGroupResponse, 5) for line in lines]
            assert {each.error_code for each in joined} == {0}, joined[0]
            assert len({each.generation_id for each in joined}) == 1
            for line, response in zip(lines, joined, strict=True):
                assignments = [
                    SyncGroupRequestAssignment(member_id=member.member_id, assignment=bytes(100))
                    for member in response.members
                ]
                line.send(
                    SyncGroupRequest(group_id="large", generation_id=response.generation_id,
                        member_id=response.member_id, assignments=assignments), 4)  # fmt: skip
            responses = [line.receive(SyncGroupResponse, 4) for line in lines]
            assert {each.error_code for each in responses} == {0}
        for line in lines:
            line.close()


WORKS: dict[str, Callable[[Sizes], None]] = {
    "partitions": many_partitions,
    "compaction": compaction,
    "deletion": deletion,
    "recovery": recovery,
    "loading": loading,
    "group": large_group,
}


def main() -> None:
    """Run all kinds of work and print a line for each; exit code 1 if one stopped the loop, or a
    stop took, too long.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--members", type=int, default=1000)
    parser.add_argument("--commits", type=int, default=500_000)
    options = parser.parse_args()
    raise_descriptor_limit()
    sizes = Sizes(options.partitions, options.gigabytes, options.members, options.commits)
    for name, work in WORKS.items():
        if options.only in name:
            work(sizes)
    print(f"longest pause {worst:.1f} ms, limit {LIMIT_MS:g} ms")
    print(f"slowest stop {slowest_stop:.1f} s, limit {STOP_LIMIT_S:g} s")
    sys.exit(worst > LIMIT_MS or slowest_stop > STOP_LIMIT_S)


if __name__ == "__main__":
    main()
