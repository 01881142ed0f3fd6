"""The console's times of pages, its start and its memory: `python -m bench.console`.

One broker with TOPICS topics of PARTITIONS partitions runs in another process, so that the memory
is the console's. Each page is read ROUNDS times over HTTP after a first time; the median is
reported. `cold` is the first time, with an empty cache.
"""

import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from ottla.client.admin.topics import create_topic
from ottla.client.brokers import Brokers
from ottla.testing.process import COMMAND, BrokerProcess

TOPICS, PARTITIONS, ROUNDS = 1000, 10, 11
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


def start_console(bootstrap: str, data: str) -> tuple[subprocess.Popen[str], str, float]:
    """Return the process, the address, and the seconds until it was ready."""
    words = ["console", "--cluster", f"big={bootstrap}", "--console-port", "0", "--data", data]
    began = time.perf_counter()
    process = subprocess.Popen(
        [*COMMAND, *words, "--output", "json"],
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
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
