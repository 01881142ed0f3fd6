"""A search of the console through 10 million records: `python -m bench.console_search [RECORDS]`.

A broker and a console run in processes of their own. Each search is read from the page's stream of
events, once with the brokers' HTTP port (the broker searches) and once without it (the console
reads the records). Reported are the time, the events, the peak of resident memory of both processes
during the search, and the time until both are idle after the reader has gone.
"""

import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from confluent_kafka import Producer

from bench.console import PASSWORD, Reader, memory_mib
from ottla.client.admin.topics import create_topic
from ottla.client.brokers import Brokers
from ottla.console.server import ConsoleServer
from ottla.console.state import ConsoleSettings
from ottla.operations.survey.connections import ClusterSettings
from ottla.testing.process import BrokerProcess

RECORDS, PARTITIONS = 10_000_000, 4
_NEEDLES = 10
_LIMIT_S = 600.0
_IDLE_SHARE, _IDLE_WINDOW_S = 0.1, 0.2
_RESULTS = Path(__file__).parent / "results"
SEARCHES = {
    "text in the value": {"field0": "value", "operator0": "contains", "text0": "needle"},
    "regular expression": {"field0": "value", "operator0": "regex", "text0": r"needle-\d+"},
    "JSON path": {
        "field0": "value",
        "operator0": "json-path",
        "path0": "$.kind",
        "comparison0": "=",
        "text0": "needle",
    },
}


@dataclass(frozen=True)
class Measured:
    """One search; memory in MiB, `gap_s` the longest time between two events."""

    seconds: float
    found: int
    events: int
    gap_s: float
    broker_before: float
    broker_peak: float
    console_before: float
    console_peak: float


class Process:
    """The memory and the processor time of another process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def forget_peak(self) -> float:
        """Let the peak begin again; return the present memory."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")
        return memory_mib(self.pid)

    def peak_mib(self) -> float:
        """Return the peak of the resident memory."""
        rows = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        (row,) = (row for row in rows if row.startswith("VmHWM"))
        return int(row.split()[1]) / 1024

    def cpu_s(self) -> float:
        """Return the processor time."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def serve(bootstrap: str, http_url: str) -> None:
    """Run a console until standard input ends; print its address."""
    urls = {1: http_url} if http_url else {}
    cluster = ClusterSettings("big", bootstrap, http_urls=urls)
    server = ConsoleServer(ConsoleSettings((cluster,), ":memory:", port=0, first_password=PASSWORD))
    server.start()
    print(server.url, flush=True)
    sys.stdin.read()
    server.stop()


def fill(bootstrap: str, count: int) -> None:
    """Write the records; ten of them, evenly spread, are those that the searches find."""
    with Brokers(bootstrap, timeout_s=60) as brokers:
        create_topic(brokers, "events", partitions=PARTITIONS)
    options = {
        "bootstrap.servers": bootstrap,
        "compression.type": "lz4",
        "linger.ms": 50,
        "queue.buffering.max.messages": 1_000_000,
    }
    producer = Producer(options)
    step = max(1, count // _NEEDLES)
    for number in range(count):
        kind = "needle" if number % step == step // 2 else "plain"
        value = (
            f'{{"id":{number},"kind":"{kind}","note":"{kind}-{number}",'
            f'"customer":"c{number % 5003}","amount":{number % 997}.50}}'
        )
        while True:
            try:
                producer.produce("events", value, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0


def open_search(url: str, cookie: str, form: dict[str, str]) -> tuple[HTTPConnection, HTTPResponse]:
    """Open the stream of a search from the oldest record."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=120)
    query = urlencode({"seek": "oldest", **form})
    path = f"/c/big/topics/events/search.events?{query}"
    connection.request("GET", path, headers={"cookie": cookie})
    response = connection.getresponse()
    assert response.status == 200, response.read()
    return connection, response


def events(response: HTTPResponse) -> Iterator[tuple[str, str]]:
    """Yield the names and the data of a stream."""
    name = ""
    for line in response:
        key, _, value = line.decode().rstrip("\n").partition(": ")
        if key == "event":
            name = value
        elif key == "data":
            yield name, value


def measure(
    url: str, cookie: str, form: dict[str, str], broker: Process, console: Process
) -> Measured:
    """Run a search to its end."""
    before = broker.forget_peak(), console.forget_peak()
    began = last = time.monotonic()
    result = count = 0
    gap_s, last_name = 0.0, ""
    connection, response = open_search(url, cookie, form)
    for last_name, data in events(response):
        now = time.monotonic()
        assert now - began < _LIMIT_S, "the search does not end"
        gap_s, last, count = max(gap_s, now - last), now, count + 1
        result += json.loads(data)["count"] if last_name == "records" else 0
    connection.close()
    assert last_name == "end", last_name
    seconds = time.monotonic() - began
    peaks = broker.peak_mib(), console.peak_mib()
    return Measured(seconds, result, count, gap_s, before[0], peaks[0], before[1], peaks[1])


def cancel(url: str, cookie: str, form: dict[str, str], broker: Process, console: Process) -> float:
    """Leave a search after its first event; return the seconds until both processes are idle."""
    connection, response = open_search(url, cookie, form)
    next(events(response))
    time.sleep(1)
    # The response, too, holds the socket.
    response.close()
    connection.close()
    began = time.monotonic()
    while time.monotonic() - began < 60:
        used = broker.cpu_s() + console.cpu_s()
        time.sleep(_IDLE_WINDOW_S)
        share = (broker.cpu_s() + console.cpu_s() - used) / _IDLE_WINDOW_S
        if share < _IDLE_SHARE:
            return time.monotonic() - began - _IDLE_WINDOW_S
    raise AssertionError("the search continues without its reader")


def run(count: int) -> list[str]:
    """Measure all searches and return the lines of the table."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    options = {"metrics.listener": f"127.0.0.1:{port}", "search.enable": "true"}
    lines = []
    with (
        tempfile.TemporaryDirectory() as folder,
        BrokerProcess(f"{folder}/data", options=options) as server,
    ):
        began = time.monotonic()
        fill(server.bootstrap, count)
        size = sum(path.stat().st_size for path in Path(folder).rglob("*.log"))
        lines += [
            f"{count:,} records of about 90 bytes, {PARTITIONS} partitions, lz4, "
            f"{size / 2**20:,.0f} MiB on disk; written in {time.monotonic() - began:.0f} s.",
            "",
            "| searched by | condition | s | records/s | found | events | longest gap (s) "
            "| broker MiB before → peak | console MiB before → peak | idle after leaving (s) |",
            "|---|---|---|---|---|---|---|---|---|---|",
        ]
        broker = Process(server.process_id)
        for location, http_url in (("the broker", f"http://127.0.0.1:{port}"), ("the console", "")):
            arguments = [sys.executable, "-m", "bench.console_search", "serve", server.bootstrap]
            child = subprocess.Popen(
                [*arguments, http_url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            try:
                assert child.stdout is not None
                url = child.stdout.readline().strip()
                cookie = Reader(url).cookie
                console = Process(child.pid)
                # Without the HTTP port one search shows the difference.
                names = list(SEARCHES) if http_url else list(SEARCHES)[:1]
                for name, form in ((name, SEARCHES[name]) for name in names):
                    row = measure(url, cookie, form, broker, console)
                    idle_s = cancel(url, cookie, form, broker, console)
                    lines.append(_row(location, name, count, row, idle_s))
                    print(lines[-1], flush=True)
            finally:
                child.terminate()
                child.wait()
    return lines


def _row(location: str, name: str, count: int, row: Measured, idle_s: float) -> str:
    cells = (
        location,
        name,
        f"{row.seconds:.1f}",
        f"{count / row.seconds:,.0f}",
        str(row.found),
        str(row.events),
        f"{row.gap_s:.2f}",
        f"{row.broker_before:.0f} → {row.broker_peak:.0f}",
        f"{row.console_before:.0f} → {row.console_peak:.0f}",
        f"{idle_s:.1f}",
    )
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Measure, print the table, and store it if all records were searched."""
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2], sys.argv[3])
        return
    count = int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    lines = run(count)
    at = datetime.now(UTC)
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}"
    head = [
        "# A search of the console",
        "",
        f"`python -m bench.console_search {count}`, {machine}.",
    ]
    text = "\n".join([*head, "", *lines]) + "\n"
    print(text)
    if count >= RECORDS:
        (_RESULTS / f"{at:%Y-%m-%d-%H%M%S}-console-search.md").write_text(text)


if __name__ == "__main__":
    main()
