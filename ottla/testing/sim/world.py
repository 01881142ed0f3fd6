"""A simulation from one seed: machines with a disk and a network address, on virtual time.

    with World(seed) as world:
        world.run(scenario(world))

Each purpose has its own stream of random numbers, so that one more draw for one purpose does not
change the others. Two runs of one seed have the same `trace.digest`, in any process.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ottla.base.rng import SeededRng
from ottla.testing.sim.disk import Disk
from ottla.testing.sim.faults import PowerLoss
from ottla.testing.sim.files import SimFileSystem
from ottla.testing.sim.guard import real_world_forbidden
from ottla.testing.sim.loop import Process, SimLoop, VirtualClock
from ottla.testing.sim.net import SimNetwork
from ottla.testing.sim.trace import Trace

T = TypeVar("T")


class Machine:
    """One computer; its disk outlives the processes that run on it, one after another."""

    def __init__(self, world: "World", name: str, disk: Disk) -> None:
        self.name = name
        self.clock = VirtualClock(world.loop)
        self.net = world.network.host(name)
        self.files = SimFileSystem(
            disk, clock=self.clock, rng=world.stream(f"files {name}"), trace=world.trace
        )
        self.lives = 0
        self._world = world
        # Set while no process runs on this machine.
        self.is_off = asyncio.Event()
        self.is_off.set()
        self._power = world.stream(f"power {name}")
        self._process: Process | None = None

    def rng(self) -> SeededRng:
        """Return the Random port of the life that is about to start."""
        return self._world.stream(f"life {self.name} {self.lives}")

    def start(self, work: Callable[[], Coroutine[Any, Any, T]]) -> "asyncio.Task[T]":
        """Run `work()` in a new process and return its task; `work` may start other tasks."""
        assert self._process is None, f"{self.name} is already running"
        self.lives += 1
        self.is_off.clear()
        process = self._process = self._world.loop.process(f"{self.name} #{self.lives}")
        self._world.trace.record("start", process.name)
        return self._world.loop.spawn(process, _later(work))

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> "asyncio.Task[T]":
        """Run `work()` in the running process, and return its task."""
        assert self._process is not None, f"nothing runs on {self.name}"
        return self._world.loop.spawn(self._process, _later(work))

    def kill(self) -> None:
        """End the process like `kill -9`: its writes are kept, synced or not."""
        self._end("kill")
        self.files = self.files.kill()

    def power_off(self) -> None:
        """End everything immediately: unsynced writes may be lost, in whole or in part."""
        self._end("power off")
        self.files = self.files.power_loss(self._power)

    def pause(self) -> None:
        """Stop the running process like SIGSTOP; its memory and its connections are kept."""
        assert self._process is not None, f"nothing runs on {self.name}"
        self._world.trace.record("pause", self.name)
        self._process.pause()

    def resume(self) -> None:
        """Continue a paused process; no effect if it has ended."""
        if self._process is not None and self._process.is_paused:
            self._world.trace.record("resume", self.name)
            self._world.loop.resume(self._process)

    def _end(self, event: str) -> None:
        self._world.trace.record(event, self.name)
        process, self._process = self._process, None
        if process is not None:
            # First the disk, then the process: writes from its `finally` blocks must not reach the
            # disk.
            self.files.is_alive = False
            process.kill()
        self.is_off.set()


async def _later(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    # Objects that `work` creates before its first await belong to the process too.
    return await work()


class World:
    """Virtual time, a network and machines; use it in a `with` statement."""

    def __init__(self, seed: int, *, keep_trace: int = 200) -> None:
        self.seed = seed
        self.trace = Trace(keep_trace)
        self.loop = SimLoop(self.stream("loop"), self.trace)
        self.network = SimNetwork(self.stream("network"), self.trace)
        self.machines: dict[str, Machine] = {}
        self._guard = contextlib.ExitStack()

    def stream(self, name: str) -> SeededRng:
        """Return the random numbers for one purpose."""
        digest = hashlib.blake2b(f"{self.seed} {name}".encode(), digest_size=8).digest()
        return SeededRng(int.from_bytes(digest, "big"))

    def machine(self, name: str, disk: Disk | None = None) -> Machine:
        """Return the machine with this name, which is also its address."""
        machine = self.machines.get(name)
        if machine is None:
            machine = self.machines[name] = Machine(self, name, disk or Disk())
        return machine

    def run(self, scenario: Coroutine[Any, Any, T]) -> T:
        """Run a scenario to its end; a machine that loses power inside a call is powered off there."""
        task = self.loop.create_task(scenario)
        while True:
            try:
                result = self.loop.run_until_complete(task)
            except PowerLoss as loss:
                self._power_off(self._machine_of(loss))
            else:
                self.loop.raise_failures()
                return result

    def _power_off(self, machine: Machine) -> None:
        """Power off a machine as if inside the loop, before any other task runs."""
        asyncio._set_running_loop(self.loop)
        try:
            machine.power_off()
        finally:
            asyncio._set_running_loop(None)

    def _machine_of(self, loss: PowerLoss) -> Machine:
        return next(
            machine for machine in self.machines.values() if machine.files.faults is loss.faults
        )

    def __enter__(self) -> "World":
        self._guard.enter_context(real_world_forbidden())
        return self

    def __exit__(self, *_: object) -> None:
        self._guard.close()
        self.loop.close()
