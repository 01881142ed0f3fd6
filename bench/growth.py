"""Measure how costs grow with the log, the partitions and the connections.

`python -m bench.growth [--only log,partitions,connections] [--large]` measures a broker at sizes
that differ by a factor of ten or a hundred: the CPU time of a tiny produce and of a fetch, the time
of a lookup by timestamp, of a start after a clean stop and after kill −9, and memory. `--large`
adds 10 GB. The costs should not depend on the size of the log, and should grow linearly in
everything else.

`python -m bench.growth --cluster [--cases 10x1000,30x1000]` measures clusters in the simulator:
`bench.growth_cluster`. `--output json` prints the data instead of tables, for both.
"""

import argparse
import json
import random
import resource
import shutil
import signal
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench import growth_cluster, load, servers
from bench.contest import Topics, in_process
from ottla.wire import headers
from ottla.wire.messages.fetch import FetchResponse
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

Row = dict[str, float | str]
_PROBES = 300
_KEEP = {"log.retention.ms": "-1"}


class Broker:
    """A broker that can be stopped, killed and started again with the same data."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ottla-growth-"))
        self.server = self._start()

    def _start(self) -> servers.Server:
        return servers.start_ottla(_KEEP, self.folder / "data")

    def restart(self, sign: signal.Signals) -> float:
        """End the process with `sign` and return the seconds until the next one responds."""
        self.server.end(sign)
        self.server = self._start()
        return self.server.started_s

    def close(self) -> None:
        """Stop the broker and remove its data."""
        self.server.end(signal.SIGTERM)
        shutil.rmtree(self.folder, ignore_errors=True)

    def tiny_us(self, topic: str, connections: int = 10) -> tuple[float, float]:
        """Return CPU µs of a tiny produce, and the 99th percentile of its time in µs."""
        arguments = ["produce", "--port", self.server.port, "--topic", topic]
        in_process("bench.load", *arguments, "--seconds", 0.5)
        before = self.server.cpu_seconds()
        result = in_process("bench.load", *arguments, "--seconds", 2, "--connections", connections)
        cpu = self.server.cpu_seconds() - before
        return cpu / result["requests"] * 1e6, result["p99_us"]


class Asker:
    """A connection that sends one request at a time and waits for the response."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 30)

    def ask(self, framed: bytes) -> tuple[float, bytearray]:
        """Return the µs until the whole response was received, and the response."""
        begin = time.perf_counter_ns()
        self._socket.sendall(framed)
        size = int.from_bytes(servers.receive_exactly(self._socket, 4), "big")
        body = servers.receive_exactly(self._socket, size)
        return (time.perf_counter_ns() - begin) / 1000, body


def fetch_us(port: int, topic: str, end: int) -> float:
    """Return the median µs of a small fetch at random offsets of the log."""
    chance, asker, times = random.Random(1), Asker(port), []
    for _ in range(_PROBES):
        request = load.fetch_request(topic, 0, 20_000, chance.randrange(end))
        micros, body = asker.ask(request)
        response = headers.decode_response(FetchResponse, 12, memoryview(body))[1]
        assert response.responses[0].partitions[0].error_code == 0
        times.append(micros)
    return statistics.median(times)


def list_offset(port: int, topic: str, timestamp: int) -> tuple[float, int]:
    """Return the µs of ListOffsets of partition 0, and the offset."""
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[partition])])
    micros, body = Asker(port).ask(load.frame(headers.encode_request(request, 6, 1, "bench")))
    response = headers.decode_response(ListOffsetsResponse, 6, memoryview(body))[1]
    return micros, response.topics[0].partitions[0].offset


def fill(port: int, topic: str, megabytes: int) -> None:
    """Write batches of 900 KB until the log has that size."""
    request = load.produce_request(topic, 0, 890, 1000)
    asker = Asker(port)
    for _ in range(megabytes * 1_000_000 // len(request)):
        asker.ask(request)


def grow_log(sizes_mb: Sequence[int]) -> list[Row]:
    """Measure a partition at several sizes of its log."""
    rows: list[Row] = []
    broker = Broker()
    topic, written = Topics(broker.server.bootstrap).create(1), 0
    for size in sizes_mb:
        fill(broker.server.port, topic, size - written)
        written = size
        port = broker.server.port
        end = list_offset(port, topic, -1)[1]
        times = [list_offset(port, topic, 1_700_000_000_000)[0] for _ in range(_PROBES)]
        tiny, p99 = broker.tiny_us(topic)
        rows.append(
            {
                "log": f"{size / 1000:g} GB",
                "tiny produce, CPU us": tiny,
                "tiny produce, p99 us": p99,
                "fetch anywhere, us": fetch_us(port, topic, end),
                "offset of a time, us": statistics.median(times),
                "start after a stop, s": broker.restart(signal.SIGTERM),
                "start after kill -9, s": broker.restart(signal.SIGKILL),
            }
        )
    broker.close()
    return rows


def grow_partitions(counts: Sequence[int]) -> list[Row]:
    """Measure a broker at several numbers of partitions."""
    rows: list[Row] = []
    for count in counts:
        broker = Broker()
        topics = Topics(broker.server.bootstrap)
        begin = time.perf_counter()
        name = topics.create(count)
        created = time.perf_counter() - begin
        tiny, p99 = broker.tiny_us(name)
        rows.append(
            {
                "partitions": f"{count:,}",
                "created in, s": created,
                "tiny produce, CPU us": tiny,
                "tiny produce, p99 us": p99,
                "memory, MB": broker.server.rss_mb(),
                "idle, CPU %": idle_percent(broker.server),
                "start after a stop, s": broker.restart(signal.SIGTERM),
                "start after kill -9, s": broker.restart(signal.SIGKILL),
            }
        )
        broker.close()
    return rows


def idle_percent(server: servers.Server, seconds: float = 5) -> float:
    """Return the percentage of one core that the server uses without requests."""
    before = server.cpu_seconds()
    time.sleep(seconds)
    return (server.cpu_seconds() - before) / seconds * 100


def grow_connections(counts: Sequence[int]) -> list[Row]:
    """Measure a broker at several numbers of idle connections; ten more are busy."""
    rows: list[Row] = []
    broker = Broker()
    topic = Topics(broker.server.bootstrap).create(1)
    for count in counts:
        before, begin = broker.server.rss_mb(), time.perf_counter()
        idle = [Asker(broker.server.port) for _ in range(count)]
        accepted = count / (time.perf_counter() - begin)
        list_offset(broker.server.port, topic, -1)
        memory = broker.server.rss_mb() - before
        tiny, p99 = broker.tiny_us(topic)
        rows.append(
            {
                "idle connections": f"{count:,}",
                "accepted, /s": accepted,
                "memory of each, KB": memory * 1024 / count,
                "tiny produce, CPU us": tiny,
                "tiny produce, p99 us": p99,
            }
        )
        del idle
    broker.close()
    return rows


def show(rows: list[Row]) -> list[str]:
    """Return the lines of a Markdown table."""
    head = list(rows[0])
    lines = [f"| {' | '.join(head)} |", "|" + "--:|" * len(head)]
    for row in rows:
        cells = (cell if isinstance(cell, str) else f"{cell:,.4g}" for cell in row.values())
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def main() -> None:
    """Run the selected measurements, print tables and save them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="log,partitions,connections")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--cluster", action="store_true", help="measure simulated clusters")
    parser.add_argument("--cases", default=growth_cluster.CASES, help="BROKERSxPARTITIONS,…")
    parser.add_argument("--rows", type=Path, help="keep rows here; do not measure them again")
    parser.add_argument("--output", choices=("table", "json"), default="table")
    options = parser.parse_args()
    if options.cluster:
        growth_cluster.report(options.cases, options.rows, is_json=options.output == "json")
        return
    # A test with ten thousand connections needs as many descriptors.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    sizes = [100, 1000, 10_000] if options.large else [100, 1000]
    kinds: dict[str, Callable[[], list[Row]]] = {
        "log": lambda: grow_log(sizes),
        "partitions": lambda: grow_partitions([10, 1000, 10_000]),
        "connections": lambda: grow_connections([10, 1000, 9000]),
    }
    entries = {name: kinds[name]() for name in options.only.split(",")}
    lines = [line for rows in entries.values() for line in show(rows)]
    print(json.dumps(entries, indent=1) if options.output == "json" else "\n".join(lines))
    stamp = time.strftime("%Y-%m-%d-%H%M%S")
    results = Path(__file__).parent / "results"
    (results / f"growth-{stamp}.md").write_text("\n".join(lines))
    (results / f"growth-{stamp}.json").write_text(json.dumps(entries, indent=1))


if __name__ == "__main__":
    main()
