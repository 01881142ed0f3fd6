"""The console's times of pages, its start and its memory: `bench.console [TOPICS [IDLE_S]]`.

One broker with TOPICS topics of PARTITIONS partitions runs in another process, so that the memory
is the console's. Each page is read ROUNDS times over HTTP after a first time; the median is
reported, and the console's processor time for each (including its own samples).
`cold` is the first time, with an empty cache. Some pages are read again as an open page does. Then
the console samples the cluster by itself for IDLE_S seconds without a reader, and the steps of a
sample are timed in this process. At last `ottla up` starts on the same data without and with its
console: the difference is the console's memory inside the broker's process.
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
from ottla.console.model.controllers import ControllerReader
from ottla.console.model.overview import take_sample
from ottla.console.state import ConsoleSettings, open_console
from ottla.operations.survey.connections import ClusterSettings
from ottla.operations.survey.metadata import read_metadata
from ottla.testing.process import COMMAND, BrokerProcess

TOPICS, PARTITIONS, ROUNDS, IDLE_S, SETTLE_S = 1000, 10, 11, 120, 15
T = TypeVar("T")
PASSWORD = "a long password"
REFRESH_S, REFRESHES = 5, 4
REFRESHED = ("/c/big/overview", "/c/big/topics", "/c/big/brokers", "/c/big/groups")
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


def report_idle(pid: int, idle_s: int) -> None:
    """Print the processor time and the memory of the console while it only samples."""
    used, before = cpu_s(pid), memory_mib(pid)
    peak = before
    for _ in range(idle_s):
        time.sleep(1)
        peak = max(peak, memory_mib(pid))
    share = (cpu_s(pid) - used) * 60 / idle_s
    print(
        f"idle: {share:.2f} s of processor time per minute; memory {before:.0f} MiB before,", end=""
    )
    print(f" {peak:.0f} MiB at most, {memory_mib(pid):.0f} MiB after {idle_s} s")


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


def start_up(data: str, *words: str) -> tuple[subprocess.Popen[str], str, float]:
    """Start `ottla up`; return the process, the console's address, and the seconds it took.

    The seconds are the time from the line of the ready broker to the line of the ready console;
    without `--console` they are 0.
    """
    process = subprocess.Popen(
        [*COMMAND, "up", "--port", "0", "--data", data, *words],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OTTLA_CONSOLE_PASSWORD": PASSWORD, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("Ottla is ready")
    began = time.perf_counter()
    if "--console" not in words:
        return process, "", 0.0
    for line in process.stdout:
        if line.startswith("The console is on "):
            return process, line.split()[4].rstrip(":"), time.perf_counter() - began
    raise AssertionError("the command has ended")


def settled_mib(pid: int, seconds: int = SETTLE_S) -> float:
    """Return the memory of a process after some seconds, in which the console samples."""
    time.sleep(seconds)
    return memory_mib(pid)


def report_beside(data: str) -> None:
    """Print what the console adds to the start and the memory of `ottla up`."""
    process, _, _ = start_up(data)
    alone = settled_mib(process.pid)
    stop(process)
    process, url, ready_s = start_up(data, "--console", "--console-port", "0")
    try:
        beside = settled_mib(process.pid)
        reader = Reader(url)
        for path in PAGES:
            reader.read(path.replace("/c/big", "/c/local"))
        paged = memory_mib(process.pid)
        later = settled_mib(process.pid)
        print(
            f"beside the broker: ready {ready_s:.2f} s after it; memory {alone:.0f} MiB without"
            f" the console, +{beside - alone:.0f} MiB with it, +{paged - alone:.0f} MiB after the"
            f" pages, +{later - alone:.0f} MiB {SETTLE_S} s later"
        )
    finally:
        stop(process)


def stop(process: subprocess.Popen[str]) -> None:
    """End a process and wait."""
    process.terminate()
    process.communicate()


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
    idle_s = int(sys.argv[2]) if len(sys.argv) > 2 else IDLE_S
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
                used = cpu_s(process.pid)
                times, sizes = zip(*(reader.read(path) for _ in range(ROUNDS)), strict=True)
                used_ms = (cpu_s(process.pid) - used) * 1000 / ROUNDS
                median = statistics.median(times)
                print(
                    f"{median:7.1f} ms  (cold {cold:6.1f} ms, processor {used_ms:5.1f} ms,"
                    f" {sizes[0] / 1024:6.1f} KiB)  {path}"
                )
            print("pages of a browser that reads again every 5 s:")
            for path in REFRESHED:
                times = []
                for _ in range(REFRESHES):
                    time.sleep(REFRESH_S)
                    times.append(Reader(url).read(path)[0])
                print(f"{statistics.median(times):7.1f} ms  (most {max(times):6.1f} ms)  {path}")
            after = memory_mib(process.pid)
            print(f"memory {before:.0f} MiB at the start, {after:.0f} MiB after the pages")
            report_idle(process.pid, idle_s)
        finally:
            stop(process)
        report_steps(broker.bootstrap, folder)
        broker.stop()
        report_beside(f"{folder}/data")


if __name__ == "__main__":
    main()
