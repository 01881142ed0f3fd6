"""One broker that loses power repeatedly, clients that continue, and the checks of their results.

Run `python -m tests.sim.one_broker SEED [on|off]` to replay a seed; it prints the trace's hash.
"""

import asyncio
import errno
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from ottla.base.errors import ErrorCode, StorageError
from ottla.server.node import Node
from ottla.testing.checkers.history import AllowedViolations, ReadRecord, Violation, check
from ottla.testing.sim.client import SimConnection
from ottla.testing.sim.nodes import node_on
from ottla.testing.sim.world import World
from ottla.wire.messages import create_topics

from .clients import (
    TOPIC,
    Mover,
    Producer,
    Reader,
    Recreator,
    Retry,
    Setting,
    fetch_records,
    judge,
    list_offset,
    new_topic,
)

PARTITIONS = 2
PRODUCERS = 2
DIRECTORIES = ("/data/one", "/data/two")
SETTINGS = {
    "listeners": "PLAINTEXT://0.0.0.0:9092",
    "allow.insecure.listeners": "true",
    "advertised.listeners": "PLAINTEXT://broker:9092",
    "log.dirs": ",".join(DIRECTORIES),
    "offsets.topic.num.partitions": "2",
    "replica.high.watermark.checkpoint.interval.ms": "500",
}
# Segments roll by time, several a life.
TOPIC_CONFIG = {"segment.ms": "400", "index.interval.bytes": "300"}


@dataclass
class Scenario(Setting):
    """One run of a broker, its power, and its clients."""

    lives: int = 4
    node: Node | None = None

    # -- the broker and its power -----------------------------------------------------------------

    async def broker(self) -> None:
        """Start the broker; returns when clients are served."""
        machine = self.machine
        node = node_on(machine, SETTINGS)
        await node.start()
        self.node = node

    async def live(self, seconds: float) -> None:
        """Start the broker with a prepared fault, and end it after at most `seconds`."""
        faults = self.machine.files.faults
        plan = self.rng.below(4)
        if plan < 2:
            faults.lose_power_at(1 + self.rng.below(250))
        elif plan == 2:
            operation = ("append", "sync", "replace", "sync_directory")[self.rng.below(4)]
            faults.fail(operation, nth=1 + self.rng.below(60))
        elif self.rng.below(2):
            # A full disk stays full until space is freed.
            faults.fail("append", nth=1 + self.rng.below(200), error=errno.ENOSPC, times=-1)
        try:
            await self._start()
        except StorageError:
            assert plan >= 2, "a broker starts on what a loss of power left"
        await self._end(seconds)
        self.clock.move_wall(self.rng.below(3_600_000) - 1_800_000)
        await self.clock.sleep(0.01 + self.rng.below(100) / 1000)

    async def _end(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self.machine.is_off.wait()
        except TimeoutError:
            end = self.rng.below(4)
            if end == 0:
                await self._stop()
            if end <= 1:
                # Nothing that was written is lost, so this is the same life of the disk.
                self.machine.kill()
                return
            self.machine.power_off()
        self.history.power_lost()

    async def _stop(self) -> None:
        """Stop the broker cleanly, if it has started and has not lost its disk."""
        if self.node is not None:
            stopped = self.machine.run(self.node.stop)
            await asyncio.wait([stopped], timeout=60)
            assert stopped.done(), "a broker stops in time"

    async def _start(self) -> None:
        self.node = None
        started = self.machine.start(self.broker)
        died = asyncio.ensure_future(self.machine.is_off.wait())
        await asyncio.wait([started, died], return_when=asyncio.FIRST_COMPLETED)
        died.cancel()
        if not self.machine.is_off.is_set():
            started.result()

    async def run(self) -> list[Violation]:
        """Run all steps, then read everything and check it."""
        async with asyncio.TaskGroup() as workers:
            workload = workers.create_task(self._workload())
            for _ in range(self.lives - 1):
                await self.live(0.05 + self.rng.below(1500) / 1000)
            await self._start()
            await self.clock.sleep(1)
            self.is_over = True
            async with asyncio.timeout(120):
                await workload
        final = {
            (TOPIC, number): await self._read_everything(number) for number in range(PARTITIONS)
        }
        return check(self.history, final, AllowedViolations(may_lose_tail=not self.flush_on_ack))

    async def _workload(self) -> None:
        await self._persist(self._create_topic)
        self.mover = Mover(self, PARTITIONS, DIRECTORIES)
        clients: list[Coroutine[Any, Any, None]] = [Recreator(self).run(), self.mover.run()]
        for number in range(PARTITIONS):
            clients.append(Reader(self, number).run())
            clients += [Producer(self, f"p{who}", number).run() for who in range(PRODUCERS)]
        async with asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(client)

    # -- clients ----------------------------------------------------------------------------------

    async def _persist(self, work: Callable[[SimConnection], Coroutine[Any, Any, None]]) -> None:
        """Retry some work until it succeeds."""
        while True:
            connection, _ = await self.connect("admin")
            try:
                await work(connection)
                return
            except (ConnectionError, Retry):
                await self.clock.sleep(0.02)
            finally:
                connection.close()

    async def _create_topic(self, connection: SimConnection) -> None:
        config = TOPIC_CONFIG | {"flush.on.ack": "true" if self.flush_on_ack else "false"}
        response = await connection.request(
            new_topic(TOPIC, PARTITIONS, config), 7, create_topics.CreateTopicsResponse
        )
        code = response.topics[0].error_code
        # An earlier request may have succeeded without a response.
        if code != ErrorCode.TOPIC_ALREADY_EXISTS:
            judge(code)

    async def _read_everything(self, partition: int) -> list[ReadRecord]:
        connection, _ = await self.connect("final")
        start = await list_offset(connection, partition, -2)
        assert start == 0, "nothing was deleted, so the log begins where it began"
        end = await list_offset(connection, partition, -1)
        result: list[ReadRecord] = []
        position = start
        while position < end:
            records, position = await fetch_records(connection, partition, position)
            result += records
        assert position == end
        assert [record.offset for record in result] == list(range(start, end)), "offsets have gaps"
        connection.close()
        return result


def simulate(
    seed: int, *, flush_on_ack: bool, keep_trace: int = 200
) -> tuple[Scenario, list[Violation]]:
    """Run one seed; return the events and the violations."""
    with World(seed, keep_trace=keep_trace) as world:
        scenario = Scenario(world, flush_on_ack)
        return scenario, world.run(scenario.run())


if __name__ == "__main__":
    done, violations = simulate(int(sys.argv[1]), flush_on_ack=sys.argv[2:] != ["off"])
    for violation in violations:
        print(violation, file=sys.stderr)
    print(done.world.trace.digest, len(done.history.attempts), len(done.history.reads))
