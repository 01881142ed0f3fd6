"""Measure what one request costs the broker: CPU time of its process, by kind of request.

`python -m bench.hotpath [--only NAME] [--profile FILE]` starts a broker and the load generator of
`bench.load` in separate processes. Compare the broker's CPU time; the rate also depends on the
speed of the generator. `--profile` writes a cProfile of the broker instead.
"""

import argparse
import cProfile
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench import servers
from ottla.server.loop import run
from ottla.server.node import Node
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

TOPIC = "hot"


class Case(NamedTuple):
    """A load, and the prototype's CPU µs per request (None if the prototype does not have the
    load).
    """

    name: str
    words: Sequence[str]
    prototype_us: float | None


ONE_BATCH = ("--records", "150", "--value-bytes", "100")
CASES = (
    Case("tiny produce, 10 x 1", ("produce",), 11.2),
    Case("tiny produce, 10 x 5", ("produce", "--depth", "5"), 5.5),
    Case("16 KB produce, 10 x 4", ("produce", "--depth", "4", *ONE_BATCH), 20.0),
    Case("16 KB fetch, 10 x 1", ("fetch", "--max-bytes", "20000"), 20.0),
    Case("1 MB fetch, 2 x 1", ("fetch", "--connections", "2"), 256.0),
    Case("metadata of 100 topics, 10 x 1", ("metadata",), None),
)


def serve(folder: str, port: int, profile: str | None) -> None:
    """Run the broker."""
    settings = {"log.dirs": folder, "listeners": f"PLAINTEXT://127.0.0.1:{port}"}
    # The prepared batches are years old; they must not be deleted.
    node = Node({**settings, "log.retention.ms": "-1"})
    profiler = cProfile.Profile() if profile else None
    run(node, lambda _: profiler.enable() if profiler else None)
    if profiler and profile:
        profiler.disable()
        profiler.dump_stats(profile)


def cpu_us(pid: int) -> float:
    """Return the CPU time of the process, from the scheduler's statistics."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1000


def load(port: int, words: Sequence[str], topic: str, seconds: float) -> dict[str, float]:
    """Run the generator once."""
    command = [sys.executable, "-m", "bench.load", *words, "--port", str(port), "--topic", topic]
    done = subprocess.run(
        [*command, "--seconds", str(seconds)], check=True, capture_output=True, text=True
    )
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def start(folder: str, profile: str | None) -> tuple["subprocess.Popen[bytes]", int]:
    """Start the broker's process and wait until it responds."""
    port = servers.free_port()
    command = [sys.executable, "-m", "bench.hotpath", "--serve", folder, "--port", str(port)]
    process = subprocess.Popen(command + (["--profile", profile] if profile else []))
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            servers.produce_until_acknowledged(port, "ready")
        except OSError:
            time.sleep(0.02)
            continue
        # A topic without the small first record: every fetch begins with a batch of 16 KB.
        topics = [MetadataRequestTopic(name=TOPIC)]
        servers.ask(port, MetadataRequest(topics=topics), MetadataResponse, 4)
        return process, port
    raise SystemExit("the broker did not start")


def main() -> None:
    """Run the cases and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--profile")
    parser.add_argument("--serve")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.port, options.profile)
        return
    folder = tempfile.mkdtemp(prefix="ottla-hotpath-")
    process, port = start(folder, options.profile)
    try:
        load(port, ("produce", *ONE_BATCH, "--depth", "4"), TOPIC, 1.0)
        for case in CASES:
            if options.only in case.name:
                show(case, process.pid, port, options.seconds)
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def show(case: Case, pid: int, port: int, seconds: float) -> None:
    """Run one case and print its line."""
    topic = TOPIC
    if case.words[0] == "metadata":
        topic = ",".join(f"topic-{number}" for number in range(100))
        for name in topic.split(","):
            servers.produce_until_acknowledged(port, name)
    load(port, case.words, topic, 0.3)
    before = cpu_us(pid)
    figures = load(port, case.words, topic, seconds)
    cost = (cpu_us(pid) - before) / figures["requests"]
    ratio = f"{cost / case.prototype_us:5.2f} x" if case.prototype_us else "       "
    print(
        f"{case.name:32} {cost:8.1f} us CPU {ratio} {figures['requests_s']:9.0f} /s "
        f"p50 {figures['p50_us']:6.0f} us p99 {figures['p99_us']:6.0f} us",
        flush=True,
    )


if __name__ == "__main__":
    main()
