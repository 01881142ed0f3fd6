"""Measure how the costs of a cluster grow with its brokers and its partitions.

`python -m bench.growth --cluster [--cases 10x1000,30x1000] [--rows FILE]` runs real brokers
(controller, followers, coordinators) in the simulator, on virtual time: a cluster of a hundred
brokers is one process. Each event is performed once in each case, and measured until every broker
knows its result. Processor time is measured for each broker, with the simulated network that its
steps use; virtual seconds count the round trips (about 2 ms each), because code takes no time.

Each partition has three replicas. The exponents of a power law, brokers^a x partitions^b, are
fitted by least squares to the logarithms.
"""

import asyncio
import gc
import json
import logging
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.growth_report import FIGURES, REST, Figures, Row, chart, tables
from ottla.base.errors import ErrorCode
from ottla.cluster.image import ClusterImage, PartitionImage
from ottla.server.node import Node
from ottla.testing.sim.cluster.brokers import SimCluster
from ottla.testing.sim.cluster.clients import ClusterClient
from ottla.testing.sim.cluster.producers import batch_of, produce_request
from ottla.testing.sim.loop import Process
from ottla.testing.sim.trace import Trace
from ottla.testing.sim.world import World
from ottla.tools.output import ProgressBar
from ottla.wire.fields import Message
from ottla.wire.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.wire.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.produce import ProduceResponse

RESULTS = Path(__file__).parent / "results"
CASES = "10x100,10x1000,10x10000,30x100,30x1000,30x10000,100x100,100x1000,100x10000"
REPLICAS = 3
# The requests of a topic's creation may have as many partitions.
TOPIC_PARTITIONS_MAX = 10_000
ISR_PARTITIONS_MAX = 20
REST_SECONDS = 4.0
SETTLE_SECONDS = 2.0
REQUEST_SECONDS = 300.0
WAIT_SECONDS = 600.0
LAG_SECONDS = 1.5
SETTINGS = {
    "log.cleaner.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "replica.lag.time.max.ms": str(int(LAG_SECONDS * 1000)),
    "offsets.topic.replication.factor": str(REPLICAS),
}


class Meter(Trace):
    """Counts what the brokers do; it takes the place of the network's trace.

    `clock` returns the processor time in seconds, or any other measure of work.
    """

    def __init__(self, world: World, cluster: SimCluster, clock: Callable[[], float]) -> None:
        super().__init__(keep=0)
        self._world = world
        self._cluster = cluster
        self._clock = clock
        self._work: Counter[str] = Counter()
        self._since = clock()
        self._running = ""
        self._bytes = 0
        self._nodes: dict[int, Node] = {}
        self._hosts = frozenset(cluster.hosts)
        world.network.trace = self
        world.loop.watch_step = self._step

    def _step(self, process: Process | None) -> None:
        now = self._clock()
        self._work[self._running] += now - self._since
        self._running = "" if process is None else process.name.partition(" ")[0]
        self._since = now

    def record(self, kind: str, *details: object) -> None:
        """Count the bytes that one broker receives from another."""
        if kind != "net":
            return
        event, source, _, target, _, size_bytes = details
        if event == "bytes" and source in self._hosts and target in self._hosts:
            assert isinstance(size_bytes, int)
            self._bytes += size_bytes

    def _requests(self) -> Counter[str]:
        """Return the requests by API; those of brokers that have ended count, too."""
        self._nodes.update((id(node), node) for node in self._cluster.nodes.values())
        requests: Counter[str] = Counter()
        for node in self._nodes.values():
            for route in node.sources.routes():
                requests[route.probe.name] += route.requests_count
        return requests

    def work_since(self, before: Mapping[str, float]) -> Figures:
        """Return the work of the controller, and the mean of the others, since `work` returned
        `before`.
        """
        work = {name: self._work[name] - before.get(name, 0) for name in self._cluster.hosts}
        controller = work.pop(f"b{self._cluster.controllers[0]}")
        return {"controller, CPU s": controller, "a broker, CPU s": statistics.fmean(work.values())}

    def work(self) -> Mapping[str, float]:
        """Return the work of each broker since the beginning."""
        return dict(self._work)

    def read(self) -> Figures:
        """Return what else has been counted since the beginning."""
        tree = self._cluster.coordination
        requests = self._requests()
        fetches = requests.pop("Fetch", 0)
        return {
            "messages": 2 * sum(requests.values()),
            "fetches": 2 * fetches,
            "bytes": self._bytes,
            "tree reads": tree.reads_count,
            "tree writes": tree.writes_count,
            "seconds": self._world.loop.time(),
        }


class Measured:
    """One case: a cluster, and the figures of the events that have been performed."""

    def __init__(self, world: World, brokers: int, partitions: int, meter: Meter,
                 cluster: SimCluster) -> None:  # fmt: skip
        self.figures: dict[str, Figures] = {}
        self._world = world
        self._cluster = cluster
        self._meter = meter
        self._brokers, self._partitions = brokers, partitions
        self._topics = {
            f"t{start // TOPIC_PARTITIONS_MAX}": min(TOPIC_PARTITIONS_MAX, partitions - start)
            for start in range(0, partitions, TOPIC_PARTITIONS_MAX)
        }
        self._client = ClusterClient(cluster, "bench")

    async def run(self) -> None:
        """Perform every event."""
        await self._measure("start", self._start, self._brokers)
        await self._create_group()
        await self._measure("create", self._create, self._partitions)
        await self._rest()
        moved = self._pair()
        await self._measure("isr change", lambda: self._change_isr(*moved), 2 * len(moved[2]))
        victim = next(key for key in reversed(self._cluster.ids) if key != self._controller)
        led = sum(victim in item.replicas for item in self._every())
        await self._measure("loss", lambda: self._lose(victim), led)
        await self._measure("return", lambda: self._return(victim), led)
        moves = sum(item.leader != item.preferred_leader for item in self._every())
        await self._measure("leader move", self._move, moves)
        former = self._controller
        led = sum(former in item.replicas for item in self._every())
        await self._measure("fail over", self._fail_over, led)
        # Its replicas would be deleted only when it returns.
        await self._return(former)
        await self._measure("delete", self._delete, self._partitions)

    # -- measuring ----------------------------------------------------------------------------

    async def _measure(self, name: str, event: Callable[[], Awaitable[None]], changed: int) -> None:
        """Measure an event, less the costs that the cluster has at rest."""
        gc.collect()
        figures = await self._counted(event)
        rest = self.figures.get(REST)
        if rest is not None:
            for key in FIGURES:
                if key != "seconds":
                    figures[key] = max(0.0, figures[key] - rest[key] * figures["seconds"])
        self.figures[name] = {**self.figures.get(name, {}), **figures, "changed": changed}

    async def _counted(self, event: Callable[[], Awaitable[None]]) -> Figures:
        before, work = self._meter.read(), self._meter.work()
        await event()
        after = self._meter.read()
        counted = {key: after[key] - before[key] for key in after}
        return counted | self._meter.work_since(work)

    async def _rest(self) -> None:
        await self._cluster.clock.sleep(SETTLE_SECONDS)
        figures = await self._counted(lambda: self._cluster.clock.sleep(REST_SECONDS))
        self.figures[REST] = {key: figures[key] / REST_SECONDS for key in FIGURES} | {"changed": 1}

    # -- events -------------------------------------------------------------------------------

    async def _start(self) -> None:
        starts = [self._cluster.begin(number) for number in self._cluster.ids]
        await asyncio.gather(*starts)
        await self._until_known(lambda image: len(image.brokers) == self._brokers)

    async def _create_group(self) -> None:
        request = FindCoordinatorRequest(key="group", key_type=0)
        while True:
            response = await self._ask(request, 3, FindCoordinatorResponse)
            if response.error_code == ErrorCode.NONE:
                break
            await self._cluster.clock.sleep(0.1)
        await self._cluster.clock.sleep(1)

    async def _create(self) -> None:
        for name, count in self._topics.items():
            topic = CreatableTopic(name=name, num_partitions=count, replication_factor=REPLICAS)
            request = CreateTopicsRequest(topics=[topic], timeout_ms=int(REQUEST_SECONDS * 1000))
            response = await self._ask(request, 7, CreateTopicsResponse)
            assert response.topics[0].error_code == ErrorCode.NONE, response
        await self._until_known(lambda image: self._topics.keys() <= image.topics.keys())

    async def _change_isr(
        self, leader: int, follower: int, keys: Sequence[tuple[str, int]]
    ) -> None:
        """Cut a follower from a leader until it has left the ISR of these partitions; heal."""
        self._cluster.isolate(follower, [f"b{leader}"])
        for name, number in keys:
            data = batch_of(self._client, ["value"])
            await self._client.ask_leader(
                name, number, produce_request(name, number, data, 1), 9, ProduceResponse
            )
        await self._cluster.until(
            lambda: all(follower not in self._isr(key) for key in keys), WAIT_SECONDS
        )
        self._cluster.heal()
        await self._cluster.until(
            lambda: all(follower in self._isr(key) for key in keys), WAIT_SECONDS
        )
        await self._until_known(
            lambda image: all(follower in _partition(image, key).isr for key in keys)
        )

    async def _lose(self, victim: int) -> None:
        begin = self._world.loop.time()
        self._cluster.kill(victim)
        # A process that has ended is noticed before its session ends.
        await self._cluster.until(
            lambda: (
                victim not in self._image.brokers
                and all(item.leader not in (victim, -1) for _, item in self._all())
            ),
            WAIT_SECONDS,
        )
        elected = self._world.loop.time() - begin
        await self._until_known(lambda image: victim not in image.brokers)
        self.figures["loss"] = {"elected after, s": elected}

    async def _return(self, victim: int) -> None:
        await self._cluster.begin(victim)
        waiting = [key for key, item in self._all() if victim in item.replicas]

        def is_in_sync() -> bool:
            while waiting and victim in self._isr(waiting[-1]):
                waiting.pop()
            return not waiting

        await self._cluster.until(is_in_sync, WAIT_SECONDS)
        await self._until_known(
            lambda image: (
                victim in image.brokers
                and all(len(item.isr) == REPLICAS for _, item in _partitions(image, self._topics))
            )
        )

    async def _move(self) -> None:
        request = ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=60_000)
        response = await self._ask(request, 2, ElectLeadersResponse)
        assert response.error_code == ErrorCode.NONE, response
        await self._until_known(
            lambda image: all(
                item.leader == item.preferred_leader for _, item in _partitions(image, self._topics)
            )
        )

    async def _fail_over(self) -> None:
        former = self._controller
        self._cluster.kill(former)
        await self._cluster.until(
            lambda: self._cluster.controllers and self._controller != former, WAIT_SECONDS
        )
        await self._until_known(
            lambda image: (
                former not in image.brokers
                and image.controller_id == self._controller
                and all(item.leader not in (former, -1) for _, item in self._partitions_of(image))
            )
        )

    def _partitions_of(
        self, image: ClusterImage
    ) -> Iterator[tuple[tuple[str, int], PartitionImage]]:
        return _partitions(image, self._topics)

    async def _delete(self) -> None:
        for name in self._topics:
            request = DeleteTopicsRequest(
                topics=[DeleteTopicState(name=name)], timeout_ms=int(REQUEST_SECONDS * 1000)
            )
            response = await self._ask(request, 6, DeleteTopicsResponse)
            assert response.responses[0].error_code == ErrorCode.NONE, response
        await self._until_known(lambda image: self._topics.keys().isdisjoint(image.topics))

    # -- what the cluster knows ---------------------------------------------------------------

    @property
    def _controller(self) -> int:
        return self._cluster.controllers[0]

    @property
    def _image(self) -> ClusterImage:
        """The image of the controller."""
        return self._cluster.nodes[self._controller].broker.controller.image

    def _all(self) -> Iterator[tuple[tuple[str, int], PartitionImage]]:
        return _partitions(self._image, self._topics)

    def _every(self) -> Iterator[PartitionImage]:
        """Yield the partitions of all topics, the internal ones included."""
        return (item for _, item in _partitions(self._image, self._image.topics))

    def _isr(self, key: tuple[str, int]) -> tuple[int, ...]:
        return _partition(self._image, key).isr

    def _pair(self) -> tuple[int, int, list[tuple[str, int]]]:
        """Return a leader and a follower of it, both not the controller, and their partitions."""
        by_pair: dict[tuple[int, int], list[tuple[str, int]]] = {}
        for key, item in self._all():
            for follower in item.isr:
                if self._controller not in (item.leader, follower) and follower != item.leader:
                    by_pair.setdefault((item.leader, follower), []).append(key)
        (leader, follower), keys = max(by_pair.items(), key=lambda entry: len(entry[1]))
        return leader, follower, keys[:ISR_PARTITIONS_MAX]

    async def _until_known(self, is_known: Callable[[ClusterImage], bool]) -> None:
        """Wait until a condition holds for the image of every broker."""
        waiting = list(self._cluster.nodes.values())

        def do_all_know() -> bool:
            while waiting and is_known(waiting[-1].broker.image):
                waiting.pop()
            return not waiting

        await self._cluster.until(do_all_know, WAIT_SECONDS)

    async def _ask(self, request: Message, version: int, response: type[Any]) -> Any:
        """Send a request of an administrator to the controller."""
        return await self._client.ask(self._controller, request, version, response, REQUEST_SECONDS)


def _partitions(
    image: ClusterImage, topics: Iterable[str]
) -> Iterator[tuple[tuple[str, int], PartitionImage]]:
    for name in topics:
        for partition in image.topics[name].partitions:
            yield (name, partition.partition), partition


def _partition(image: ClusterImage, key: tuple[str, int]) -> PartitionImage:
    partition = image.partition(*key)
    assert partition is not None, key
    return partition


def measure(
    brokers: int, partitions: int, clock: Callable[[], float] = time.thread_time
) -> dict[str, Figures]:
    """Return the figures of one case by event; `clock` measures the work."""
    with World(1, keep_trace=0) as world:
        cluster = SimCluster(world, brokers, SETTINGS)
        measured = Measured(world, brokers, partitions, Meter(world, cluster, clock), cluster)
        world.run(measured.run())
        return measured.figures


# -- the cases
# -------------------------------------------------------------------------------------


def one(case: str) -> Row:
    """Measure a case in this process."""
    logging.disable(logging.CRITICAL)
    gc.disable()
    brokers, partitions = map(int, case.split("x"))
    began = time.process_time()
    events = measure(brokers, partitions)
    return {
        "brokers": brokers,
        "partitions": partitions,
        "events": events,
        "process, CPU s": time.process_time() - began,
        "process, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
    }


def in_a_process(case: str) -> Row:
    """Measure a case in a process of its own, so that its memory is its own."""
    command = [sys.executable, "-m", "bench.growth_cluster", case]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    row: Row = json.loads(done.stdout)
    return row


def report(cases: str, saved: Path | None, *, is_json: bool) -> None:
    """Measure the cases, print the tables or JSON, and save both.

    Each row is added to the file `saved`; cases that it has are not measured again.
    """
    names = cases.split(",")
    lines = saved.read_text("utf-8").splitlines() if saved is not None and saved.exists() else []
    known = {f"{row['brokers']}x{row['partitions']}": row for row in map(json.loads, lines)}
    with ProgressBar("cases", len(names)) as progress:
        for case in names:
            if case not in known:
                known[case] = in_a_process(case)
                if saved is not None:
                    with saved.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(known[case]) + "\n")
            progress.advance(1)
    rows = [known[case] for case in names]
    title = f"{datetime.now(UTC):%Y-%m-%d-%H%M%S}-growth-cluster"
    lines = [
        f"# {title}: how a cluster's costs grow",
        "",
        f"Simulated brokers and ensemble, virtual time; {REPLICAS} replicas; Python"
        f" {platform.python_version()}. Command: `python -m bench.growth --cluster --cases {cases}`.",
        "",
        *tables(rows),
    ]
    content = json.dumps(rows, indent=1) + "\n"
    (RESULTS / f"{title}.json").write_text(content, "utf-8")
    (RESULTS / f"{title}.md").write_text("\n".join(lines), "utf-8")
    (RESULTS / f"{title}.svg").write_text(chart(rows), "utf-8")
    print(content if is_json else "\n".join(lines))


if __name__ == "__main__":
    print(json.dumps(one(sys.argv[1])))
