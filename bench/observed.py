"""A broker in a separate process that reports how late its event loop runs, and its memory use.

The process serves a second port, the probe: one line is the request, one line of JSON the response.
`take` returns the longest lag since the last `take`, and the code that ran then; other words start
the broker's periodic work immediately. A thread inspects the loop while it is late. At the end the
process writes the last measurement to a file next to its folder: it includes the stop.
"""

import argparse
import asyncio
import gc
import json
import logging
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from bench import servers
from ottla.base import logs
from ottla.server.loop import run
from ottla.server.node import Node
from ottla.storage.cleaner import cleaning
from ottla.storage.cleaner.cleaning import Cleaner
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse

TICK_SECONDS = 0.002
# A loop with this lag is inspected.
BLAME_SECONDS = 0.03
_STACK_LINES = 9
_PLACES_MAX = 4


class Reading(NamedTuple):
    """A response of the probe: milliseconds, MiB, counts; `stack` is the loop's stack when it was
    late.
    """

    lag_ms: float
    # CPU time of the loop's own thread between two checks, without the time of other threads.
    cpu_ms: float
    # The broker's own measurement of the lag, with a timer of 20 ms.
    watch_ms: float
    pauses: int
    rss_mib: float
    descriptors: int
    connections: int
    held_bytes: int
    unsent_bytes: int
    stack: str


class _ObservedNode(Node):
    """A broker that is observed from the beginning of its start."""

    async def start(self) -> None:
        """Start to measure, and start the broker."""
        self.ticker = _Ticker()
        self.ticker.start()
        await super().start()


class _Ticker:
    """Reads the clock as often as the loop runs it."""

    def __init__(self) -> None:
        self.lag = self.cpu = 0.0
        self.at = time.monotonic()
        self._thread_cpu = 0.0
        # The stacks of the loop when it was late: their number and the longest lag.
        self._seen: Counter[str] = Counter()
        self._late: defaultdict[str, float] = defaultdict(float)
        self._thread_id = threading.get_ident()

    def start(self) -> None:
        self.at, self._thread_cpu = time.monotonic(), time.thread_time()
        asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)
        threading.Thread(target=self._blame, daemon=True).start()

    def _tick(self) -> None:
        now, cpu = time.monotonic(), time.thread_time()
        self.lag = max(self.lag, now - self.at - TICK_SECONDS)
        self.cpu = max(self.cpu, cpu - self._thread_cpu)
        self.at, self._thread_cpu = now, cpu
        asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)

    def _blame(self) -> None:
        while True:
            time.sleep(BLAME_SECONDS / 2)
            late = time.monotonic() - self.at
            if late > BLAME_SECONDS:
                frame = sys._current_frames().get(self._thread_id)
                stack = traceback.extract_stack(frame)[-_STACK_LINES:]
                stack_text = " > ".join(
                    f"{Path(each.filename).name}:{each.lineno} {each.name}" for each in stack
                )
                self._seen[stack_text] += 1
                self._late[stack_text] = max(late, self._late[stack_text])

    def take(self) -> tuple[float, float, str]:
        locations = [
            f"{count} x up to {self._late[location] * 1000:.0f} ms {location}"
            for location, count in self._seen.most_common(_PLACES_MAX)
        ]
        result = self.lag, self.cpu, "\n    ".join(locations)
        self.lag = self.cpu = 0.0
        self._seen.clear()
        self._late.clear()
        return result


def serve(folder: str, port: int, probe_port: int, settings: Mapping[str, str]) -> None:
    """Run the broker; it logs more than `ottla up` does."""
    logs.configure(sys.stderr, level=logging.INFO, levels={})
    node = _ObservedNode(
        {"listeners": f"PLAINTEXT://127.0.0.1:{port}", **settings, "log.dirs": folder}
    )
    run(node, lambda _: _open_probe(node, probe_port))
    last_reading(Path(folder)).write_text(json.dumps(_reading(node)._asdict()))


def last_reading(folder: Path) -> Path:
    """Return the file with the last measurement of a broker that was stopped."""
    return folder.with_name(folder.name + ".reading")


def _open_probe(node: _ObservedNode, port: int) -> None:
    replicas = node.broker.replicas
    works: dict[str, Callable[[], Any]] = {
        "retention": replicas.directories.upkeep.tick_retention,
        "marks": replicas.checkpoint_high_watermarks_in_background,
        "maintain": replicas.directories.upkeep.maintain,
        "clean": lambda: _clean(node),
        "collect": gc.collect,
        "nothing": lambda: None,
    }

    async def probe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            word = line.decode().strip()
            if word != "take":
                result = works[word]()
                if asyncio.iscoroutine(result):
                    await result
            response = _reading(node)._asdict() if word == "take" else {}
            writer.write(json.dumps(response).encode() + b"\n")

    node.broker.tasks.spawn(_forever(probe, port), "probe")


async def _forever(probe: Any, port: int) -> None:
    server = await asyncio.start_server(probe, "127.0.0.1", port)
    await server.serve_forever()


async def _clean(node: Node) -> None:
    broker = node.broker
    cleaner = Cleaner(
        broker.replicas.directories,
        files=node._files,
        clock=broker.clock,
        settings=lambda: cleaning.Settings.from_options(broker.options),
    )
    while await cleaner.clean_dirtiest():
        pass


def _reading(node: _ObservedNode) -> Reading:
    lag, cpu, stack = node.ticker.take()
    # None, if the broker was stopped before it served clients.
    endpoint = next(iter(node._listeners.endpoints), None)
    status = Path("/proc/self/status").read_text().split("VmRSS:")[1]
    return Reading(
        lag * 1000,
        cpu * 1000,
        node.loop_watches[0].lag.take_longest() * 1000,
        node.loop_watches[0].lag.pauses_count,
        int(status.split()[0]) / 1024,
        len(os.listdir("/proc/self/fd")),
        endpoint.connections_count if endpoint else 0,
        endpoint.budget.held_bytes if endpoint else 0,
        endpoint.unsent.held_bytes if endpoint else 0,
        stack,
    )


class ObservedBroker:
    """The client side: starts the process, sends requests to the probe, stops it; a context
    manager.
    """

    def __init__(
        self, settings: Mapping[str, str] | None = None, folder: Path | None = None
    ) -> None:
        self._settings = dict(settings or {})
        self._is_temporary = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="ottla-observed-"))
        self.port = 0
        self.errors = self.folder.with_name(self.folder.name + ".stderr")
        self._process: subprocess.Popen[bytes] | None = None
        self._probe: socket.socket | None = None

    def launch(self) -> int:
        """Start the process without waiting; return the port of the probe."""
        self.port, probe_port = servers.free_port(), servers.free_port()
        command = [sys.executable, "-m", "bench.observed", str(self.folder)]
        command += [str(self.port), str(probe_port), json.dumps(self._settings)]
        with self.errors.open("ab") as errors:
            self._process = subprocess.Popen(command, stderr=errors, cwd=Path(__file__).parents[1])
        return probe_port

    def start(self, patience_s: float = 60) -> "ObservedBroker":
        """Wait until the broker serves requests."""
        probe_port = self.launch()
        assert self._process is not None
        deadline = time.monotonic() + patience_s
        while True:
            try:
                servers.ask(self.port, MetadataRequest(topics=[]), MetadataResponse, 1)
                self._probe = socket.create_connection(("127.0.0.1", probe_port))
                self._probe.settimeout(120)
                return self
            except OSError as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError(self.errors.read_text()[-4000:]) from error
                time.sleep(0.02)

    @property
    def pid(self) -> int:
        """Return the process id."""
        assert self._process is not None
        return self._process.pid

    def is_alive(self) -> bool:
        """Return True if the process still runs."""
        return self._process is not None and self._process.poll() is None

    def do(self, word: str) -> dict[str, Any]:
        """Start some work; return when it is done."""
        assert self._probe is not None
        self._probe.sendall(word.encode() + b"\n")
        response = b""
        while not response.endswith(b"\n"):
            more = self._probe.recv(65536)
            assert more, self.errors.read_text()[-4000:]
            response += more
        return dict(json.loads(response))

    def take(self) -> Reading:
        """Return the measurements since the last call."""
        return Reading(**self.do("take"))

    def lines(self) -> list[str]:
        """Return the broker's log lines."""
        return self.errors.read_text(errors="replace").splitlines()

    def send_signal(self, number: int) -> None:
        """Send a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self, number: int = signal.SIGTERM, patience_s: float = 60) -> int:
        """Stop the process; return its exit code."""
        assert self._process is not None
        if self._probe is not None:
            self._probe.close()
        self._process.send_signal(number)
        code = self._process.wait(patience_s)
        self._process = None
        return code

    def __enter__(self) -> "ObservedBroker":
        """Start the process."""
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the process, and remove temporary files."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._probe is not None:
            self._probe.close()
        if self._is_temporary:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.errors.unlink(missing_ok=True)
            last_reading(self.folder).unlink(missing_ok=True)


def raise_descriptor_limit() -> int:
    """Raise the limit of descriptors to this process's maximum; return it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def main() -> None:
    """Run the broker; the arguments are folder, port, port of the probe, and settings as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("port", type=int)
    parser.add_argument("probe_port", type=int)
    parser.add_argument("settings")
    options = parser.parse_args()
    raise_descriptor_limit()
    serve(options.folder, options.port, options.probe_port, json.loads(options.settings))


if __name__ == "__main__":
    main()
