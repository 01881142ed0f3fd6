"""The console's times of pages, its start and its memory: `python -m bench.console`.

One broker with TOPICS topics of PARTITIONS partitions runs in another process, so that the memory
is the console's. Each page is read ROUNDS times over HTTP after a first time; the median is
reported. `cold` is the first time, with an empty cache. Then the console samples the cluster by
itself for IDLE_S seconds without a reader, and the steps of a sample are timed in this process.
"""

import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlencode, urlsplit

from ottla.base.clock import RealClock
from ottla.client.admin.topics import create_topic
from ottla.client.brokers import Brokers
from ottla.console.model.connections import ClusterSettings
from ottla.console.model.overview import take_sample
from ottla.console.model.requests.controllers import ControllerReader
from ottla.console.model.requests.metadata import read_metadata
from ottla.console.state import ConsoleSettings, open_console
from ottla.testing.process import COMMAND, BrokerProcess

TOPICS, PARTITIONS, ROUNDS, IDLE_S = 1000, 10, 11, 120
T = TypeVar("T")
PASSWORD = "a long password"
PAGES = (
    "/",
    "/c/big/overview",
    "/c/big/brokers",
    "/c/big/topics",
    "/c/big/topics?q=topic-0009",
    "/c/big/topics/topic-0050",
    "/c/big/topics/topic-0050/messages",
    "/c/big/topics/topic-0050/partitions",
    "/c/big/topics/topic-0050/settings",
    "/c/big/groups",
    "/c/big/transactions",
    "/c/big/search.json?q=topic-0099",
    "/audit",
)


class Reader:
    """One connection to the console, with the session of the admin."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        form = urlencode({"user": "admin", "password": PASSWORD})
        headers = {"content-type": "application/x-www-form-urlencoded"}
        self._connection.request("POST", "/login", form, headers)
        response = self._connection.getresponse()
        response.read()
        self.cookie = (response.headers["set-cookie"] or "").partition(";")[0]

    def read(self, path: str) -> tuple[float, int]:
        """Return the milliseconds and the bytes of a page."""
        began = time.perf_counter()
        self._connection.request("GET", path, headers={"cookie": self.cookie})
        response = self._connection.getresponse()
        size = len(response.read())
        assert response.status == 200, f"{path}: {response.status}"
        return (time.perf_counter() - began) * 1000, size


def memory_mib(pid: int) -> float:
    """Return the resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def cpu_s(pid: int) -> float:
    """Return the processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def report_idle(pid: int) -> None:
    """Print the processor time and the memory of the console while it only samples."""
    used, before = cpu_s(pid), memory_mib(pid)
    peak = before
    for _ in range(IDLE_S):
        time.sleep(1)
        peak = max(peak, memory_mib(pid))
    share = (cpu_s(pid) - used) * 60 / IDLE_S
    print(
        f"idle: {share:.2f} s of processor time per minute; memory {before:.0f} MiB before,", end=""
    )
    print(f" {peak:.0f} MiB at most, {memory_mib(pid):.0f} MiB after {IDLE_S} s")


def report_steps(bootstrap: str, folder: str) -> None:
    """Print the time of each step of a sample, and of each listener that stores it."""
    times: dict[str, list[float]] = {}

    def timed(name: str, call: Callable[[], T]) -> T:
        began = time.perf_counter()
        value = call()
        times.setdefault(name, []).append((time.perf_counter() - began) * 1000)
        return value

    clusters = (ClusterSettings("big", bootstrap),)
    settings = ConsoleSettings(clusters, f"{folder}/steps.sqlite3", first_password=PASSWORD)
    with closing(open_console(settings)) as console:
        connection = console.clusters.get("big")
        reader = ControllerReader(connection, RealClock())
        for _ in range(ROUNDS):
            connection.forget()
            metadata = timed("metadata", partial(read_metadata, connection, is_fresh=True))
            controller = timed("controller", partial(reader.read, metadata))
            timed(
                "timeline stored",
                partial(console.timeline.on_metadata, "big", metadata, controller),
            )
            sample = timed("sample", partial(take_sample, connection, metadata, controller))
            timed("history stored", partial(console.history.on_sample, sample))
            timed("alerts evaluated", partial(console.alerts.on_sample, sample))
    for name, values in times.items():
        print(f"{statistics.median(values):7.1f} ms  (first {values[0]:6.1f} ms)  {name}")


def start_console(bootstrap: str, data: str) -> tuple[subprocess.Popen[str], str, float]:
    """Return the process, the address, and the seconds until it was ready."""
    arguments = ["console", "--cluster", f"big={bootstrap}", "--console-port", "0", "--data", data]
    began = time.perf_counter()
    process = subprocess.Popen(
        [*COMMAND, *arguments, "--output", "json"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OTTLA_CONSOLE_PASSWORD": PASSWORD},
    )
    assert process.stdout is not None
    facts = json.loads(process.stdout.readline())
    return process, facts["console"], time.perf_counter() - began


def main() -> None:
    """Create the topics, read the pages, and print a line for each."""
    topics = int(sys.argv[1]) if len(sys.argv) > 1 else TOPICS
    with tempfile.TemporaryDirectory() as folder, BrokerProcess(f"{folder}/data") as broker:
        with Brokers(broker.bootstrap, timeout_s=120) as brokers:
            for number in range(topics):
                create_topic(brokers, f"topic-{number:04}", partitions=PARTITIONS)
        process, url, ready_s = start_console(broker.bootstrap, f"{folder}/console")
        try:
            before = memory_mib(process.pid)
            reader = Reader(url)
            print(f"{topics} topics of {PARTITIONS} partitions; ready after {ready_s:.2f} s")
            for path in PAGES:
                cold, _ = reader.read(path)
                times, sizes = zip(*(reader.read(path) for _ in range(ROUNDS)), strict=True)
                median = statistics.median(times)
                print(
                    f"{median:7.1f} ms  (cold {cold:6.1f} ms, {sizes[0] / 1024:6.1f} KiB)  {path}"
                )
            after = memory_mib(process.pid)
            print(f"memory {before:.0f} MiB at the start, {after:.0f} MiB after the pages")
            report_idle(process.pid)
        finally:
            process.terminate()
            process.wait()
        report_steps(broker.bootstrap, folder)


if __name__ == "__main__":
    main()
