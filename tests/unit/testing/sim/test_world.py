"""A simulated world with one seed: machines, their processes, and the guard against real effects."""

import asyncio
import gc
import threading
import time
from collections.abc import Iterator

import pytest

from ottla.base.clock import RealClock
from ottla.base.uuids import random_uuid
from ottla.testing.sim.loop import SimulationBreach
from ottla.testing.sim.transport import SimTransport
from ottla.testing.sim.world import Machine, World


@pytest.fixture
def world() -> Iterator[World]:
    """Yield a world with one seed."""
    with World(1) as created:
        yield created


def test_each_name_has_its_own_random_numbers() -> None:
    """A stream depends on the seed and its name, not on other streams."""
    with World(1) as one, World(1) as same, World(2) as other:
        one.stream("x").below(1000)
        assert random_uuid(one.stream("y")) == random_uuid(same.stream("y"))
        assert random_uuid(one.stream("y")) != random_uuid(one.stream("z"))
        assert random_uuid(one.stream("y")) != random_uuid(other.stream("y"))


async def write_for_ever(machine: Machine) -> None:
    """Append a byte every millisecond, syncing every tenth."""
    file = machine.files.open("/log", create=True)
    machine.files.sync_directory("/")
    count = file.size()
    while True:
        count += 1
        file.append(b"x")
        if count % 10 == 0:
            file.sync()
        await asyncio.sleep(0.001)


def test_files_of_a_killed_process_are_kept(world: World) -> None:
    """The next process reads every byte, and can use the ports."""
    machine = world.machine("m")

    async def main() -> None:
        machine.start(lambda: write_for_ever(machine))
        await asyncio.sleep(0.0255)
        machine.kill()
        assert machine.is_off.is_set()
        size = machine.files.size("/log")
        assert 24 <= size <= 26
        machine.start(lambda: write_for_ever(machine))
        await asyncio.sleep(0.01)
        assert machine.files.size("/log") > size
        assert machine.lives == 2

    world.run(main())


def test_power_loss_during_a_call_ends_the_process_there(world: World) -> None:
    """The process executes nothing after that change, and the synced content is kept."""
    machine = world.machine("m")

    async def main() -> None:
        machine.files.faults.lose_power_at(100)
        machine.start(lambda: write_for_ever(machine))
        await machine.is_off.wait()
        assert machine.files.faults.changes_count == 0
        size = machine.files.size("/log")
        assert 80 <= size <= 100

    world.run(main())


def test_process_can_get_further_tasks(world: World) -> None:
    """All tasks of a process end with it."""
    machine = world.machine("m")
    done: list[str] = []

    async def main() -> None:
        machine.start(lambda: write_for_ever(machine))

        async def work(seconds: float) -> None:
            await asyncio.sleep(seconds)
            done.append(f"{seconds}")

        await machine.run(lambda: work(0.1))
        machine.run(lambda: work(0.2))
        machine.kill()
        await asyncio.sleep(1)

    world.run(main())
    assert done == ["0.1"]


def test_ottla_code_cannot_use_the_real_world(world: World) -> None:
    """A module of Ottla that reads the real time gets an error that names the port; others may read
    it.
    """

    async def main() -> int:
        return RealClock().time_ms()

    with pytest.raises(SimulationBreach, match=r"ottla\.base\.clock calls time_ns"):
        world.run(main())
    assert time.time() > 0
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()


def test_the_real_world_is_back_afterwards() -> None:
    """The guard ends with the world."""
    with World(1):
        pass
    assert RealClock().time_ms() > 0


def test_threads_of_others_keep_the_real_world() -> None:
    """A thread that ran before the world, such as a client's of another test, is not guarded."""
    start, times = threading.Event(), list[int]()

    def read() -> None:
        start.wait()
        times.append(RealClock().time_ms())

    thread = threading.Thread(target=read)
    thread.start()
    with World(1):
        start.set()
        thread.join()
    assert times


def test_a_process_keeps_no_connection_that_has_ended() -> None:
    """A broker that runs for hours of virtual time does not keep all its former connections."""

    async def scenario(world: World) -> None:
        async def serve() -> None:
            await world.machine("server").net.listen("", 9, asyncio.BufferedProtocol)

        async def connect() -> None:
            net = world.machine("client").net
            for _ in range(500):
                transport, _ = await net.connect("server", 9, asyncio.BufferedProtocol)
                transport.abort()
            await asyncio.sleep(10)

        await world.machine("server").start(serve)
        await world.machine("client").start(connect)
        gc.collect()
        ends = sum(isinstance(item, SimTransport) for item in gc.get_objects())
        assert ends < 200

    with World(1) as world:
        world.run(scenario(world))
