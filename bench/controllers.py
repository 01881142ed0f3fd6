"""Measure how a controller scales: 10 to 200 brokers, 1 000 to 200 000 partitions.

`python -m bench.controllers [--cases 10x1000,50x10000]` runs each case in a process of its own, on
virtual time and a simulated ensemble (a round trip takes about 2 ms), and saves a table, the data
and a chart in bench/results/. Two times are measured of each figure: simulated seconds, which count
the round trips, and CPU seconds, which are measured for the controller, the tree and the
simulation.

Not measured: the brokers' own work, and sending; the encoding of the complete metadata for one
broker is a figure of its own.
"""

import argparse
import asyncio
import gc
import json
import logging
import math
import resource
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.base.rng import SeededRng
from ottla.base.tasks import Tasks
from ottla.cluster.image import BrokerImage, ClusterImage, PartitionState
from ottla.cluster.options import option_tables
from ottla.controller import registration
from ottla.controller.loop import Controller
from ottla.controller.planning.notices import Fence, MetadataUpdate, TopicPartition
from ottla.controller.planning.requests import TopicRequest
from ottla.controller.term_context import Dependencies
from ottla.server.brokers import states
from ottla.testing.sim.coordination import SimCoordination
from ottla.testing.sim.world import World
from ottla.wire import headers
from ottla.wire.messages.update_metadata import UpdateMetadataRequest

RESULTS = Path(__file__).parent / "results"
CASES = (
    "10x1000,10x10000,10x100000,50x1000,50x10000,50x100000,200x1000,200x10000,200x100000,200x200000"
)
FIGURES = {
    "fail over, simulated s": "s",
    "fail over, CPU s": "s",
    "leaders of a lost broker, simulated s": "s",
    "leaders of a lost broker, CPU s": "s",
    "create 10,000 partitions, simulated s": "s",
    "create 10,000 partitions, CPU s": "s",
    "complete metadata for one broker, CPU s": "s",
    "image of the controller, MB": "MB",
}
_SESSION_MS = 6000
_PER_TOPIC = 100
_REPLICAS = 3
_CREATED = 10_000
_POLL_SECONDS = 0.005
# An exponent above this is more than linear, and not only noise.
_LINEAR = 1.1
_LARGE = 10_000

Figures = dict[str, float]


class Receiver:
    """A broker that acknowledges every notice at once (implements BrokerPort)."""

    def __init__(self) -> None:
        self.brokers: Iterable[int] = ()
        self.controller_epoch = 0
        self.is_complete = False

    async def introduce(self, fence: Fence, brokers: Mapping[int, BrokerImage]) -> None:
        """Ignore the brokers: `update_metadata` brings them, too."""

    async def apply_leader_and_isr(
        self, fence: Fence, states: Sequence[PartitionState]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Report no error."""
        return {}

    async def update_metadata(self, fence: Fence, update: MetadataUpdate) -> None:
        """Note what the controller knows."""
        if fence.controller_epoch > self.controller_epoch:
            self.is_complete = update.is_complete
        self.controller_epoch = fence.controller_epoch
        if update.brokers is not None:
            self.brokers = update.brokers.keys()

    async def stop_replicas(
        self, fence: Fence, partitions: Sequence[TopicPartition], *, delete: bool
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Report no error."""
        return {}

    async def wait_until_gone(self, reached: Callable[[], None]) -> None:
        """Wait for ever: these brokers end with their sessions."""
        reached()
        await asyncio.get_running_loop().create_future()

    def close(self) -> None:
        """Do nothing: there is no connection."""


class Cluster:
    """An ensemble, registered brokers, and controllers on brokers 1 and 2."""

    def __init__(self, world: World, count: int) -> None:
        self.clock = world.machine("b1").clock
        self.coordination = SimCoordination(world.network, self.clock)
        self.receivers = {number: Receiver() for number in range(1, count + 1)}
        self.gone: set[int] = set()
        self._world = world
        self._options = option_tables.parse_broker_settings(
            {"auto.leader.rebalance.enable": "false"}
        ).snapshot

    async def start(self) -> tuple[Controller, Controller]:
        """Start all brokers; the first of the controllers is elected."""
        first, second = self._controller(1), self._controller(2)
        await first.start()
        for number in self.receivers:
            if number > 2:
                session = self.coordination.access(f"b{number}").session(_SESSION_MS)
                await registration.register(session, _broker(number), self.clock.time_ms())
        await second.start()
        await self.until(lambda: len(first.image.brokers) == len(self.receivers))
        return first, second

    def _controller(self, number: int) -> Controller:
        access = self.coordination.access(f"b{number}")

        async def connect() -> Any:
            return access.session(_SESSION_MS)

        dependencies = Dependencies(
            clock=self.clock,
            rng=self._world.stream(f"controller {number}"),
            tasks=Tasks(clock=self.clock),
            options=lambda: self._options,
            topic_options=lambda _: option_tables.topic_snapshot(self._options, {}),
            port_of=lambda broker: self.receivers[broker.id],
            connect=connect,
        )
        return Controller(access.session(_SESSION_MS), _broker(number), dependencies)

    def expire(self, number: int) -> None:
        """End the session of a broker."""
        self.gone.add(number)
        self.coordination.expire(f"b{number}")

    def is_informed(self, controller_epoch: int) -> bool:
        """Return True if every live broker knows the controller, and which brokers are gone."""
        return all(
            receiver.controller_epoch == controller_epoch and self.gone.isdisjoint(receiver.brokers)
            for number, receiver in self.receivers.items()
            if number not in self.gone
        )

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition is true."""
        async with asyncio.timeout(3600):
            while not condition():
                await self.clock.sleep(_POLL_SECONDS)


def _broker(number: int) -> BrokerImage:
    return BrokerImage(number, f"b{number}", 9092)


async def _create(controller: Controller, prefix: str, partitions: int) -> None:
    """Create topics with so many partitions together, a hundred topics in each request."""
    requests = [
        TopicRequest(f"{prefix}-{start}", min(_PER_TOPIC, partitions - start), _REPLICAS)
        for start in range(0, partitions, _PER_TOPIC)
    ]
    for start in range(0, len(requests), 100):
        results = await controller.create_topics(requests[start : start + 100])
        assert all(result.error is None for result in results), results


async def scenario(world: World, brokers: int, partitions: int) -> Figures:
    """Return the figures of one case."""
    cluster = Cluster(world, brokers)
    first, second = await cluster.start()
    await _create(first, "t", partitions)
    figures: Figures = {}

    async def lose_broker() -> None:
        cluster.expire(3)
        await cluster.until(lambda: cluster.is_informed(1))
        assert all(item.leader not in (3, -1) for item in _partitions(first.image))

    async def fail_over() -> None:
        cluster.expire(1)
        await cluster.until(lambda: second.is_active and cluster.is_informed(2))
        assert sum(1 for _ in _partitions(second.image)) == partitions

    await _timed(cluster, "leaders of a lost broker", lose_broker, figures)
    await first.stop()
    await _timed(cluster, "fail over", fail_over, figures)
    figures["image of the controller, MB"] = deep_size(second.image) / 1e6
    began = _cpu_seconds()
    _encode(second.image)
    figures["complete metadata for one broker, CPU s"] = _cpu_seconds() - began
    creation = lambda: _create(second, "u", _CREATED)  # noqa: E731
    await _timed(cluster, "create 10,000 partitions", creation, figures)
    figures["process, MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    await second.stop()
    return figures


async def _timed(
    cluster: Cluster, name: str, work: Callable[[], Awaitable[None]], figures: Figures
) -> None:
    gc.collect()
    began, began_cpu = cluster.clock.monotonic(), _cpu_seconds()
    await work()
    figures[f"{name}, simulated s"] = cluster.clock.monotonic() - began
    figures[f"{name}, CPU s"] = _cpu_seconds() - began_cpu


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _partitions(image: ClusterImage) -> Iterable[Any]:
    return (item for topic in image.topics.values() for item in topic.partitions)


def _encode(image: ClusterImage) -> None:
    """Encode the complete metadata as for one broker."""
    update = MetadataUpdate(image.brokers, tuple(image.topics.values()), (), is_complete=True)
    for topics in states.in_chunks(states.SentImage().changes(update), 1, 5000):
        request = UpdateMetadataRequest(
            topic_states=topics, live_brokers=states.live_brokers(image.brokers.values())
        )
        headers.encode_request_parts(request, 8, 1, None)


def deep_size(root: object) -> int:
    """Return the bytes of an object and of everything that only data refers to."""
    seen: set[int] = set()
    pending, size_bytes = [root], 0
    while pending:
        item = pending.pop()
        if id(item) in seen or isinstance(item, type | ModuleType | FunctionType):
            continue
        seen.add(id(item))
        size_bytes += sys.getsizeof(item)
        pending += gc.get_referents(item)
    return size_bytes


def one(brokers: int, partitions: int) -> Figures:
    """Measure one case in this process."""
    logging.disable(logging.CRITICAL)
    gc.disable()
    with World(SeededRng(1).below(1000), keep_trace=0) as world:
        return world.run(scenario(world, brokers, partitions))


# -- the report
# -------------------------------------------------------------------------------------


def exponents(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return for each figure the largest exponent k of its growth with the partitions: time ∝ n^k.

    For each number of brokers, between the first case of 10,000 partitions or more and the largest:
    constants dominate smaller ones.
    """
    entries: dict[str, float] = {}
    for name in FIGURES:
        slopes = [0.0]
        for brokers in sorted({row["brokers"] for row in rows}):
            some = [row for row in rows if row["brokers"] == brokers]
            large = [row for row in some if row["partitions"] >= _LARGE]
            if len(large) > 1:
                grown = large[-1]["partitions"] / large[0]["partitions"]
                ratio = max(large[-1][name], 1e-3) / max(large[0][name], 1e-3)
                slopes.append(math.log(ratio) / math.log(grown))
        entries[name] = max(slopes)
    return entries


def table(rows: Sequence[Mapping[str, float]], title: str, command: str) -> str:
    """Return the report as Markdown."""
    names = [*FIGURES, "process, MB"]
    lines = [
        f"# {title}: scale of the controller",
        "",
        f"Simulated ensemble and brokers, virtual time; {_REPLICAS} replicas, {_PER_TOPIC} partitions"
        f" in a topic. Command: `{command}`.",
        "",
        f"| brokers | partitions | {' | '.join(names)} |",
        "|--:" * (len(names) + 2) + "|",
    ]
    for row in rows:
        cells = " | ".join(f"{row[name]:,.2f}" for name in names)
        lines.append(f"| {row['brokers']:,.0f} | {row['partitions']:,.0f} | {cells} |")
    lines += ["", f"![CPU seconds over partitions]({title}.svg)", ""]
    lines += ["| figure | largest exponent of its growth | linear or better |", "|---|--:|---|"]
    for name, exponent in exponents(rows).items():
        lines.append(f"| {name} | {exponent:.2f} | {'yes' if exponent <= _LINEAR else 'no'} |")
    return "\n".join(lines) + "\n"


def chart(rows: Sequence[Mapping[str, float]]) -> str:
    """Return an SVG: CPU seconds over partitions on logarithmic axes, one panel for each figure."""
    names = [name for name in FIGURES if name.endswith("CPU s")]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{320 * len(names)}" height="320"'
        ' font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for column, name in enumerate(names):
        parts.append(f'<g transform="translate({320 * column},0)">')
        parts += _panel(rows, name)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(rows: Sequence[Mapping[str, float]], name: str) -> list[str]:
    parts = [f'<text x="50" y="20">{name}</text>']

    def at(partitions: float, seconds: float) -> tuple[float, float]:
        x = 50 + 80 * (math.log10(partitions) - 3)
        return x, 280 - 48 * (math.log10(min(max(seconds, 1e-3), 1e2)) + 3)

    for power in range(-3, 3):
        _, y = at(1000, 10.0**power)
        parts.append(f'<path d="M50 {y:.0f}H290" stroke="#ddd"/>')
        parts.append(f'<text x="44" y="{y + 4:.0f}" text-anchor="end">{10.0**power:g} s</text>')
    for power in range(3, 6):
        x, _ = at(10**power, 1)
        parts.append(f'<text x="{x:.0f}" y="300" text-anchor="middle">{10**power:,}</text>')
    colors = ("#1565c0", "#2e7d32", "#c62828", "#6a1b9a")
    for index, brokers in enumerate(sorted({row["brokers"] for row in rows})):
        points = [at(row["partitions"], row[name]) for row in rows if row["brokers"] == brokers]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(
            f'<polyline points="{line}" fill="none" stroke="{colors[index % 4]}" stroke-width="2"/>'
        )
        parts.append(
            f'<text x="60" y="{40 + 14 * index}" fill="{colors[index % 4]}">{brokers:.0f} brokers</text>'
        )
    return parts


def main() -> None:
    """Measure the cases and save the report, or measure one case in this process."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", default=CASES, help="BROKERSxPARTITIONS, separated by commas")
    parser.add_argument("--one", help="measure one case in this process and print its figures")
    parser.add_argument("--rows", help="a file of rows: cases in it are not measured again")
    options = parser.parse_args()
    if options.one:
        brokers, partitions = map(int, options.one.split("x"))
        figures = one(brokers, partitions)
        print(json.dumps({"brokers": brokers, "partitions": partitions, **figures}))
        return
    saved = Path(options.rows) if options.rows else None
    lines = saved.read_text("utf-8").splitlines() if saved is not None and saved.exists() else []
    known = {f"{row['brokers']}x{row['partitions']}": row for row in map(json.loads, lines)}
    rows = []
    for case in options.cases.split(","):
        if case not in known:
            command = [sys.executable, "-m", "bench.controllers", "--one", case]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            known[case] = json.loads(done.stdout.splitlines()[-1])
            if saved is not None:
                with saved.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(known[case]) + "\n")
        rows.append(known[case])
        print(case, {name: round(value, 2) for name, value in rows[-1].items()}, flush=True)
    title = f"{datetime.now(UTC):%Y-%m-%d-%H%M%S}-controllers"
    output = f"python -m bench.controllers --cases {options.cases}"
    (RESULTS / f"{title}.json").write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    (RESULTS / f"{title}.svg").write_text(chart(rows), "utf-8")
    (RESULTS / f"{title}.md").write_text(table(rows, title, output), "utf-8")
    print(table(rows, title, output))


if __name__ == "__main__":
    main()
