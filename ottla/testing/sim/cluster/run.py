"""One run of a scenario: a cluster with its workload, faults from a schedule, recovery, judgement.

    result = simulate(load(path), seed=7)
    assert result.is_good, result.report()

One seed gives one run, bit for bit, in any process. `schedule` replaces the faults that the seed
draws and leaves everything else as it is.
"""

import asyncio
import gc
from collections import Counter
from dataclasses import dataclass, field

from ottla.base.errors import ErrorCode, OttlaError
from ottla.testing.checkers.kafka import Polled, check
from ottla.testing.sim.cluster.brokers import SimCluster
from ottla.testing.sim.cluster.clients import ClusterClient, Refused, Unavailable
from ottla.testing.sim.cluster.clients import check as check_code
from ottla.testing.sim.cluster.consumers import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Consumer,
    end_offset,
    read_everything,
)
from ottla.testing.sim.cluster.groups import ConsumerProtocolMember, GroupMember
from ottla.testing.sim.cluster.invariants import Invariants
from ottla.testing.sim.cluster.movers import Mover
from ottla.testing.sim.cluster.nemesis import Nemesis
from ottla.testing.sim.cluster.operators import ClusterOperator
from ottla.testing.sim.cluster.producers import IdempotentProducer, WeakProducer
from ottla.testing.sim.cluster.replicas import divergences
from ottla.testing.sim.cluster.scenario import Scenario, Schedule
from ottla.testing.sim.cluster.transactions import TransactionalProducer
from ottla.testing.sim.cluster.workers import JOINT, LOOSE, STRICT, Work, Worker
from ottla.testing.sim.world import World
from ottla.wire.messages import create_topics

SETTINGS = {
    "log.cleaner.enable": "false",
    "replica.lag.time.max.ms": "1500",
    "replica.fetch.backoff.ms": "200",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
    "auto.leader.rebalance.enable": "false",
    # Clocks jump, and the timestamps of clients must not be rejected for that.
    "log.message.timestamp.after.max.ms": str(2**62),
}
START_SECONDS = 60.0
# The beginning of a problem that is none of safety.
NOT_RECOVERED = "not recovered"
# Virtual seconds between two looks at the markers of the last transactions.
_MARKERS_POLL_S = 0.1
TOPICS = (STRICT, LOOSE, JOINT)


@dataclass
class RunResult:
    """The result of one run; `problems` are the violations, each as one line.

    `recovery_seconds` is the simulated time from the end of the faults until every replica was in
    sync, every client had made progress and every consumer had reached the end.
    """

    seed: int
    schedule: Schedule
    problems: list[str] = field(default_factory=list)
    digest: str = ""
    recovery_seconds: float = 0.0
    # The longest time in which a producer with acks=all received no acknowledgement.
    gap_seconds: float = 0.0
    acknowledged: int = 0
    polled: int = 0
    simulated_seconds: float = 0.0
    applied: dict[str, int] = field(default_factory=dict)
    # Unexpected exceptions of background tasks in the brokers, by kind of task.
    task_failures: dict[str, int] = field(default_factory=dict)
    trace: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Return True if nothing was violated."""
        return not self.problems

    def report(self) -> str:
        """Return the problems and the schedule that led to them."""
        lines = [f"seed {self.seed}", *self.problems[:20], "schedule:", *map(str, self.schedule)]
        return "\n".join(lines)


def simulate(
    scenario: Scenario, seed: int, schedule: Schedule | None = None, *, keep_trace: int = 0
) -> RunResult:
    """Run a scenario. A fault of the brokers is reported in the result and never raised."""
    # Cycles of dead brokers are collected between runs: during a run it takes a third of the time.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        with World(seed, keep_trace=keep_trace) as world:
            if schedule is None:
                schedule = scenario.schedule(world.stream("schedule"))
            run = _Run(world, scenario, RunResult(seed, schedule))
            try:
                world.run(run.play())
            except (AssertionError, ExceptionGroup, OSError, OttlaError) as error:
                run.result.problems.append(_describe(error))
            run.finish()
            return run.result
    finally:
        gc.collect()
        if was_enabled:
            gc.enable()


def _describe(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    cause = error.__cause__
    because = f" because of {type(cause).__name__}: {cause}" if cause is not None else ""
    text = str(error).partition("\n")[0]
    return f"crash: {type(error).__name__}: {text}{because}"


class _Run:
    def __init__(self, world: World, scenario: Scenario, result: RunResult) -> None:
        self.result = result
        self._world = world
        self._scenario = scenario
        factor = str(scenario.replicas)
        settings = {
            **SETTINGS,
            "offsets.topic.replication.factor": factor,
            "transaction.state.log.replication.factor": factor,
            "transaction.state.log.min.isr": str(scenario.min_insync_replicas),
            "min.insync.replicas": str(scenario.min_insync_replicas),
            "log.flush.on.ack": "true" if scenario.flush_on_ack else "false",
            **scenario.settings,
        }
        self._cluster = SimCluster(world, scenario.brokers, settings)
        self._work = Work(self._cluster, scenario.partitions)
        self._invariants = Invariants(self._cluster)
        self._workers = self._make_workers()
        self._nemesis = Nemesis(
            self._cluster,
            world.stream("nemesis"),
            loses_unflushed=not scenario.flush_on_ack,
        )

    def _make_workers(self) -> list[Worker]:
        counts, work = self._scenario.workers, self._work
        workers: list[Worker] = []
        for partition in range(self._scenario.partitions):
            for number in range(counts.idempotent):
                workers.append(IdempotentProducer(work, f"p{number}-{partition}", partition))
            for number in range(counts.weak):
                workers.append(WeakProducer(work, f"w{number}-{partition}", partition))
            for number in range(counts.consumers):
                for topic, level in (
                    (STRICT, READ_UNCOMMITTED),
                    (LOOSE, READ_UNCOMMITTED),
                    (JOINT, READ_COMMITTED),
                ):
                    name = f"c{number}-{topic}-{partition}"
                    workers.append(Consumer(work, name, topic, partition, level))
        for number in range(counts.members):
            workers.append(GroupMember(work, f"g{number}", "shared"))
        for number in range(counts.consumer_members):
            workers.append(ConsumerProtocolMember(work, f"m{number}", "assigned"))
        for number in range(counts.movers):
            workers.append(Mover(work, f"r{number}", self._scenario.replicas))
        for number in range(counts.operators):
            workers.append(ClusterOperator(work, f"o{number}", self._scenario.replicas))
        for number in range(counts.transactional):
            workers.append(TransactionalProducer(work, f"t{number}"))
        return workers

    def finish(self) -> None:
        """Fill the result."""
        result, history = self.result, self._work.history
        result.digest = self._world.trace.digest
        result.trace = list(self._world.trace.lines)
        result.simulated_seconds = self._world.loop.time() - 1000.0
        result.acknowledged = sum(worker.progress for worker in self._workers)
        result.polled = len(history.polls)
        result.gap_seconds = self._work.longest_gap_seconds
        result.applied = dict(sorted(self._nemesis.applied.items()))
        result.problems += self._work.complaints
        failures: Counter[str] = Counter(self._cluster.task_failures)
        for node in self._cluster.nodes.values():
            failures += node.task_failures
        result.task_failures = dict(sorted(failures.items()))
        result.problems += [f"unexpected error in a task: {kind}" for kind in result.task_failures]
        result.problems += self._invariants.problems

    async def play(self) -> None:
        """Start the cluster, apply the faults, heal, wait for the recovery, and judge."""
        cluster = self._cluster
        for broker_id in cluster.ids:
            cluster.keep_running(broker_id)
        async with asyncio.timeout(START_SECONDS):
            await self._create_topics()
            await cluster.until(lambda: not cluster.problems())
        tasks = [asyncio.ensure_future(worker.run()) for worker in self._workers]
        watch = asyncio.ensure_future(self._invariants.run())
        try:
            self._nemesis.start(self.result.schedule)
            await self._until_over(tasks)
            self._nemesis.heal()
            self._work.is_healed = True
            self._nemesis.raise_failures()
            healed_at = cluster.clock.monotonic()
            if await self._recover(tasks):
                self.result.recovery_seconds = cluster.clock.monotonic() - healed_at
                await self._judge()
            if watch.done():
                watch.result()
        finally:
            for task in (*tasks, watch):
                task.cancel()
            cluster.close()

    async def _until_over(self, tasks: "list[asyncio.Task[None]]") -> None:
        """Wait for the time of the faults; an error of a worker ends it."""
        ended, _ = await asyncio.wait(
            tasks, timeout=self._scenario.seconds, return_when=asyncio.FIRST_EXCEPTION
        )
        for task in ended:
            task.result()

    async def _recover(self, tasks: "list[asyncio.Task[None]]") -> bool:
        """Return True if the cluster and its clients recover in time."""
        cluster = self._cluster
        waiting_for = "the cluster"
        try:
            async with asyncio.timeout(self._scenario.recovery_seconds):
                await cluster.until(lambda: not cluster.problems())
                waiting_for = "progress of every producer"
                producers = [
                    worker
                    for worker in self._workers
                    if not isinstance(worker, Consumer | GroupMember | Mover | ClusterOperator)
                ]
                marks = {worker: worker.progress for worker in producers}
                await cluster.until(
                    lambda: all(worker.progress > mark for worker, mark in marks.items())
                )
                self._work.is_over = True
                waiting_for = "the end of every worker"
                # Not awaited themselves: a timeout must leave them as they are, for the report.
                await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
                for task in tasks:
                    task.result()
                waiting_for = "replicas in sync"
                await cluster.until(lambda: not cluster.problems())
        except TimeoutError:
            states = [f"{worker.name}: {worker.state}" for worker, task in
                      zip(self._workers, tasks, strict=True) if not task.done()]  # fmt: skip
            self.result.problems.append(
                f"{NOT_RECOVERED}: waits for {waiting_for}; {cluster.problems()[:5]}; {states[:8]}"
            )
            return False
        return True

    async def _ends(self, client: ClusterClient, topic: str, partition: int) -> tuple[int, int]:
        """Return the last stable offset and the high watermark, equal if they become so in time.

        The markers of the last transactions may be on a network that was slow a moment ago.
        """
        clock = self._cluster.clock
        deadline = clock.monotonic() + self._scenario.recovery_seconds
        while True:
            stable = await end_offset(client, topic, partition, READ_COMMITTED)
            high = await end_offset(client, topic, partition, READ_UNCOMMITTED)
            if stable == high or clock.monotonic() > deadline:
                return stable, high
            await clock.sleep(_MARKERS_POLL_S)

    async def _judge(self) -> None:
        client = ClusterClient(self._cluster, "final")
        history = self._work.history
        for topic in TOPICS:
            for partition in range(self._scenario.partitions):
                stable, high = await self._ends(client, topic, partition)
                if stable != high:
                    self.result.problems.append(
                        f"hanging transaction: {topic}-{partition} is stable up to {stable} of {high}"
                    )
                for level in (READ_UNCOMMITTED, READ_COMMITTED):
                    history.final += await self._read(client, topic, partition, level)
        client.close()
        self.result.problems += map(str, check(history))
        self.result.problems += [f"replicas differ: {text}" for text in divergences(self._cluster)]

    async def _read(
        self, client: ClusterClient, topic: str, partition: int, level: int
    ) -> list[Polled]:
        async with asyncio.timeout(START_SECONDS):
            while True:
                try:
                    return await read_everything(client, topic, partition, level)
                except Unavailable:
                    await client.pause()

    async def _create_topics(self) -> None:
        client = ClusterClient(self._cluster, "admin")
        scenario = self._scenario
        request = create_topics.CreateTopicsRequest(
            topics=[
                create_topics.CreatableTopic(
                    name=name,
                    num_partitions=scenario.partitions,
                    replication_factor=scenario.replicas,
                )
                for name in TOPICS
            ],
            timeout_ms=3000,
        )
        is_done = False
        while not is_done:
            try:
                await self._cluster.until(
                    lambda: all(map(self._cluster.is_serving, self._cluster.ids))
                )
                response = await client.ask_any(request, 7, create_topics.CreateTopicsResponse)
                codes = {topic.error_code for topic in response.topics}
                if codes <= {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
                    is_done = True
                else:
                    check_code(max(codes))
            except (Unavailable, Refused):
                await client.pause()
        client.close()
