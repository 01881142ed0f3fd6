"""Runs an application of the local engine from a seed, under faults, on virtual time.

    python -m tests.sim.streams.simulation tails 17     # replay a seed

The seed selects the faults: kills, pauses past the session time-out, instances that join and leave,
partitions without a leader, aborted transactions, and lost state directories.
"""

import asyncio
import hashlib
import logging
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ottla.base.rng import SeededRng
from ottla.client.records import TopicPartition
from ottla.streams import Serdes
from ottla.streams.local.assignment.placement import ReplicaSettings
from ottla.streams.local.engine import LocalSettings
from ottla.streams.serdes import DefaultSerdes
from ottla.streams.task.settings import TaskSettings
from ottla.testing.sim.loop import Process, SimLoop
from ottla.testing.sim.trace import Trace
from tests.sim.streams.clients import ProcessPorts
from tests.sim.streams.groups import ModelGroup
from tests.sim.streams.instances import SimInstance, SimPorts
from tests.sim.streams.logs import CLEANUP_S, ModelCluster
from tests.sim.streams.requests import ModelAccess
from tests.sim.streams.threads import SimThreads
from tests.sim.streams.topologies import CASES, TOPICS, Case, Results

APPLICATION = "app"
RECORDS = 150
_FAULTS_S = 10.0
_HEALED_S = 30.0
_SESSION_MS = 2_000
_LOOK_S = 0.25


@dataclass(frozen=True)
class SimOptions:
    """The options of the engine that a seed selects."""

    is_exactly_once: bool
    keeps_in_memory: bool
    standbys: int


@dataclass(frozen=True)
class SimRun:
    """The result of a run; `complaint` is empty if it is right."""

    complaint: str
    digest: str
    lines: Sequence[str] = ()


class Simulation:
    """One run. Use it in a `with` statement."""

    def __init__(
        self, case: Case, seed: int, folder: Path, *, is_exactly_once: bool | None = None
    ) -> None:
        self._case, self._seed, self._folder = case, seed, folder
        self._trace = Trace(keep=0)
        self.loop = SimLoop(self._stream("loop"), self._trace)
        self.cluster = ModelCluster(self.loop, self._stream("cluster"))
        self._threads = SimThreads(self.loop, self._stream("threads"))
        self._group = ModelGroup(self.cluster, APPLICATION, self._stream("group"))
        self._rng = self._stream("faults")
        draw = self._stream("options")
        is_drawn = draw.below(5) > 0
        self.options = SimOptions(
            is_drawn if is_exactly_once is None else is_exactly_once,
            draw.below(2) == 0,
            draw.below(2),
        )
        self._arrivals = case.arrivals(self._stream("arrivals"), RECORDS)
        self._instances: list[SimInstance] = []
        self._lives = 0
        self._notes: list[str] = []
        self._began = self.loop.time()
        for topic in (*TOPICS, "out"):
            self.cluster.create(topic, case.partitions)

    def _stream(self, name: str) -> SeededRng:
        digest = hashlib.blake2b(f"{self._seed} {name}".encode(), digest_size=8).digest()
        return SeededRng(int.from_bytes(digest, "big"))

    def __enter__(self) -> "Simulation":
        """Start nothing yet."""
        return self

    def __exit__(self, *error: object) -> None:
        """Kill all instances."""
        self.loop.run_until_complete(self._end())
        self.loop.close()

    async def _end(self) -> None:
        for instance in self._instances:
            instance.kill()

    # -- instances --------------------------------------------------------------------------------

    def _start(self) -> None:
        self._lives += 1
        name = f"instance-{self._lives}"
        self._note("start", name)
        process = Process(name)
        ports = ProcessPorts(self.cluster, self._threads, process, self._stream(name))
        settings = LocalSettings(
            ModelAccess(ports),  # type: ignore[arg-type]
            is_exactly_once=self.options.is_exactly_once,
            commit_interval_ms=100,
            session_timeout_ms=_SESSION_MS,
            heartbeat_interval_ms=300,
            state_dir=str(self._folder),
            keeps_in_memory=self.options.keeps_in_memory,
            replicas=ReplicaSettings(
                num_standby_replicas=self.options.standbys,
                acceptable_recovery_lag=20,
                probing_rebalance_interval_ms=2_000,
            ),
            ports=SimPorts(ports, self._group),
        )
        defaults = DefaultSerdes(Serdes.string(), Serdes.string())
        tasks = TaskSettings(APPLICATION, defaults)
        self._instances.append(SimInstance(ports, self._case.topology(), tasks, settings))

    def _note(self, event: str, *details: object) -> None:
        self._trace.record(event, *details)
        self._notes.append(f"{self.loop.time() - self._began:.3f} {event} {details}")

    def _drawn(self) -> SimInstance:
        return self._instances[self._rng.below(len(self._instances))]

    # -- faults -----------------------------------------------------------------------------------

    async def _fault(self) -> None:
        kind = self._rng.below(10)
        if kind < 4:
            await self._kill(self._drawn(), loses_state=self._rng.below(3) == 0)
        elif kind < 6 and self.options.is_exactly_once:
            # Without transactions, a paused owner may overwrite its successor's changelog.
            await self._pause(self._drawn())
        elif kind < 8:
            self._stall()
        elif kind == 8 and len(self._instances) < 4:
            self._start()
        elif len(self._instances) > 1:
            await self._leave(self._drawn())

    async def _kill(self, instance: SimInstance, *, loses_state: bool) -> None:
        self._note("kill", instance.ports.process.name, loses_state)
        self._instances.remove(instance)
        instance.kill()
        if loses_state and not self._instances:
            shutil.rmtree(self._folder, ignore_errors=True)
        await asyncio.sleep(self._rng.below(2_500) / 1000)
        self._start()

    async def _pause(self, instance: SimInstance) -> None:
        process = instance.ports.process
        self._note("pause", process.name)
        process.pause()
        self.loop.call_later(0.2 + self._rng.below(5_000) / 1000, self._resume, process)

    def _resume(self, process: Process) -> None:
        if process.is_paused and process.is_alive:
            self._note("resume", process.name)
            self.loop.resume(process)

    def _stall(self) -> None:
        until = self.loop.time() + self._rng.below(1_500) / 1000
        for logs in self.cluster.topics.values():
            for log in logs:
                if self._rng.below(4) == 0:
                    log.stalled_until = until

    async def _leave(self, instance: SimInstance) -> None:
        if instance.ports.process.is_paused:
            return
        self._note("leave", instance.ports.process.name)
        self._instances.remove(instance)
        instance.stop()
        await asyncio.sleep(1)
        instance.kill()

    # -- the run ----------------------------------------------------------------------------------

    def run(self) -> SimRun:
        """Run, and compare the committed results with the test driver's."""
        complaint = self.loop.run(self._scenario())
        return SimRun(complaint, self._trace.digest, self._notes)

    async def _scenario(self) -> str:
        upkeep = self.loop.create_task(self._upkeep())
        load = self.loop.create_task(self._load())
        for _ in range(1 + self._rng.below(3)):
            self._start()
        end = self.loop.time() + _FAULTS_S
        while self.loop.time() < end:
            await asyncio.sleep(self._rng.below(2_500) / 1000)
            await self._fault()
        complaint = await self._heal(load)
        upkeep.cancel()
        return complaint or self._judged()

    async def _upkeep(self) -> None:
        while True:
            await asyncio.sleep(CLEANUP_S)
            self.cluster.abort_old()
            self._group.expire()

    async def _load(self) -> None:
        for row in self._arrivals:
            key = TopicPartition(row.topic, row.partition(self._case.partitions))
            self.cluster.log(key).append(row.key, row.value, row.timestamp)
            if self._case.is_live:
                await asyncio.sleep(self._rng.below(130) / 1000)

    async def _heal(self, load: "asyncio.Task[None]") -> str:
        for instance in self._instances:
            self._resume(instance.ports.process)
        await load
        end = self.loop.time() + _HEALED_S
        while self.loop.time() < end:
            for instance in self._instances:
                if instance.error is not None:
                    return f"{instance.ports.process.name} failed: {instance.error!r}"
            if self._is_done():
                return ""
            await asyncio.sleep(_LOOK_S)
        states = "; ".join(row.state for row in self._instances)
        return f"not done {_HEALED_S:g} s after the last fault: {states}"

    def _is_done(self) -> bool:
        if any(row.transaction is not None for row in self.cluster.producers.values()):
            return False
        committed = self.cluster.committed.get(APPLICATION, {})
        inputs = [name for name in self.cluster.topics if name.endswith("-repartition")]
        for topic in (*self._case.topics, *inputs):
            for number, log in enumerate(self.cluster.topics[topic]):
                last = max((row.offset for row in log.read(0, is_committed=True)), default=-1)
                if committed.get(TopicPartition(topic, number), (0, ""))[0] <= last:
                    return False
        return True

    def _judged(self) -> str:
        results: dict[bytes | None, list[bytes | None]] = defaultdict(list)
        for log in self.cluster.topics["out"]:
            for row in log.read(0, is_committed=self.options.is_exactly_once):
                results[row.key].append(row.value)
        expected = self._case.expected(self._arrivals)
        if self._case.is_final:
            expected, results = last_values(expected), last_values(results)
        if self.options.is_exactly_once:
            return difference(expected, results)
        return loss(expected, results)


def last_values(results: Results) -> dict[bytes | None, list[bytes | None]]:
    """Return the last value of each key that has not been deleted."""
    return {key: [rows[-1]] for key, rows in results.items() if rows and rows[-1] is not None}


def difference(expected: Results, results: Results) -> str:
    """Return the first key whose values are not equal, in order; empty if all are equal."""
    for key in sorted({*expected, *results}, key=repr):
        left, right = list(expected.get(key, ())), list(results.get(key, ()))
        if left != right:
            at = next(
                (n for n, pair in enumerate(zip(left, right, strict=False)) if pair[0] != pair[1]),
                None,
            )
            at = min(len(left), len(right)) if at is None else at
            return (
                f"key {key!r}, result {at} of {len(left)}: expected {left[at : at + 3]}, "
                f"found {right[at : at + 3]} after {right[max(0, at - 2) : at]}"
            )
    return ""


def loss(expected: Results, results: Results) -> str:
    """Return the first key that lacks results (at least once: counts may be too high)."""
    for key, values in sorted(expected.items(), key=repr):
        found = results.get(key, ())
        last, least = (_count(rows[-1]) if rows else 0 for rows in (found, values))
        if last < least:
            return f"key {key!r}: {least} records were counted as {last}"
    return ""


def _count(value: bytes | None) -> int:
    return int((value or b"0").split(b":")[0])


def play(name: str | Case, seed: int, *, is_exactly_once: bool | None = None) -> SimRun:
    """Run a case with a seed, with state on disk in a new directory."""
    case = CASES[name] if isinstance(name, str) else name
    folder = Path(tempfile.mkdtemp(prefix="streams-sim-"))
    try:
        with Simulation(
            case, seed, folder / "state", is_exactly_once=is_exactly_once
        ) as simulation:
            return simulation.run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Replay a seed, with a log."""
    logging.basicConfig(level=logging.INFO)
    run = play(sys.argv[1], int(sys.argv[2]))
    print(*run.lines, sep="\n")
    print(run.complaint or "right", run.digest)


if __name__ == "__main__":
    main()
