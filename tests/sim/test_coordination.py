"""The simulated ensemble: sessions that are cut off, paused, killed and expired, in virtual time."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ottla.cluster.zk.port import ConnectionSuspended, SessionLost, SessionState
from ottla.testing.sim.coordination import HOST, SimCoordination, SimSession
from ottla.testing.sim.world import World

pytestmark = pytest.mark.slow

TIMEOUT_MS = 6000
SEEDS = range(3)


class Setting:
    """Two machines, each with a process and a session."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.clock = world.machine("test").clock
        self.coordination = SimCoordination(world.network, self.clock)

    async def session(self, name: str) -> SimSession:
        """Start a machine and a session in its process."""
        future: asyncio.Future[SimSession] = asyncio.get_running_loop().create_future()

        async def live() -> None:
            future.set_result(self.coordination.access(name).session(TIMEOUT_MS))
            await self.clock.sleep(1e6)

        self.task = self.world.machine(name).start(live)
        return await future

    def cut(self, *, both_ways: bool = True) -> None:
        """Cut the first machine off from the ensemble."""
        self.world.network.partition(["m1"], [HOST], both_ways=both_ways)
        self.coordination.changed()

    def heal(self) -> None:
        """Restore the link."""
        self.world.network.heal()
        self.coordination.changed()


def run(seed: int, scenario: Callable[[Setting], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario; the seed replays it."""
    print(f"seed {seed}")
    with World(seed) as world:
        world.run(scenario(Setting(world)))


@pytest.mark.parametrize("seed", SEEDS)
def test_sessions_share_one_tree(seed: int) -> None:
    """A change of one session fires the watch of another, in order with its responses."""

    async def scenario(setting: Setting) -> None:
        one, other = await setting.session("m1"), await setting.session("m2")
        fired: list[str] = []
        assert await other.exists("/a", fired.append) is None
        await one.create("/a", b"1", ephemeral=True)
        await setting.clock.sleep(0.2)
        assert fired == ["/a"]
        assert (await other.get("/a"))[0] == b"1"

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("both_ways", [True, False])
def test_a_session_that_is_cut_off_is_suspended_then_lost(seed: int, both_ways: bool) -> None:
    """The client is suspended before its ephemeral nodes are removed, and learns later that the
    session is lost.
    """

    async def scenario(setting: Setting) -> None:
        one, other = await setting.session("m1"), await setting.session("m2")
        states: list[SessionState] = []
        one.on_session(states.append)
        await one.create("/a", ephemeral=True)
        setting.cut(both_ways=both_ways)
        await setting.clock.sleep(4.5)
        assert states == [SessionState.SUSPENDED]
        with pytest.raises(ConnectionSuspended):
            await one.get("/a")
        assert await other.exists("/a") is not None
        await setting.clock.sleep(2.0)
        assert await other.exists("/a") is None
        assert states == [SessionState.SUSPENDED]
        setting.heal()
        await setting.clock.sleep(0.2)
        assert states == [SessionState.SUSPENDED, SessionState.LOST]
        with pytest.raises(SessionLost):
            await one.get("/a")

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_requests_during_a_short_cut_are_performed_after_it(seed: int) -> None:
    """TCP retransmits the requests after the cut, and missed notifications arrive, too."""

    async def scenario(setting: Setting) -> None:
        one, other = await setting.session("m1"), await setting.session("m2")
        fired: list[str] = []
        await one.exists("/b", fired.append)
        setting.cut()
        creation = asyncio.ensure_future(one.create("/a"))
        await other.create("/b")
        await setting.clock.sleep(2.0)
        assert not creation.done()
        assert not fired
        setting.heal()
        assert await creation == "/a"
        await setting.clock.sleep(0.2)
        assert fired == ["/b"]
        assert one.state is SessionState.CONNECTED

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_request_whose_response_is_lost_may_have_been_performed(seed: int) -> None:
    """If only the link from the ensemble is cut, the client does not know whether its request was
    performed.
    """

    async def scenario(setting: Setting) -> None:
        one, other = await setting.session("m1"), await setting.session("m2")
        setting.world.network.partition([HOST], ["m1"], both_ways=False)
        setting.coordination.changed()
        with pytest.raises(ConnectionSuspended):
            await one.create("/a")
        assert await other.exists("/a") is not None

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_session_of_a_dead_process_expires_after_its_timeout(seed: int) -> None:
    """The session expires exactly after its timeout, and none of its watches fires afterwards."""

    async def scenario(setting: Setting) -> None:
        one, other = await setting.session("m1"), await setting.session("m2")
        fired: list[str] = []
        await one.create("/a", ephemeral=True)
        await one.exists("/b", fired.append)
        setting.world.machine("m1").kill()
        await other.create("/b")
        await setting.clock.sleep(5.8)
        assert await other.exists("/a") is not None
        await setting.clock.sleep(0.5)
        assert await other.exists("/a") is None
        assert not fired

    run(seed, scenario)


def test_a_killed_process_does_not_close_its_session() -> None:
    """Its `finally` block would remove the registration that its restart depends on."""

    async def scenario(setting: Setting) -> None:
        other, opened = await setting.session("m2"), asyncio.Event()

        async def live() -> None:
            session = setting.coordination.access("m1").session(TIMEOUT_MS)
            await session.create("/a", ephemeral=True)
            opened.set()
            try:
                await setting.clock.sleep(1e6)
            finally:
                await session.close()

        task = setting.world.machine("m1").start(live)
        await opened.wait()
        setting.world.machine("m1").kill()
        await setting.clock.sleep(1.0)
        assert await other.exists("/a") is not None
        assert not task.done()

    run(0, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_paused_process_learns_that_its_session_is_lost_when_it_continues(seed: int) -> None:
    """A process that is paused until its session is lost considers it connected until it
    continues.
    """

    async def scenario(setting: Setting) -> None:
        one, other = await setting.session("m1"), await setting.session("m2")
        states: list[SessionState] = []
        one.on_session(states.append)
        await one.create("/a", ephemeral=True)
        machine = setting.world.machine("m1")
        machine.pause()
        setting.coordination.changed()
        await setting.clock.sleep(7.0)
        assert await other.exists("/a") is None
        assert not states
        machine.resume()
        setting.coordination.changed()
        await setting.clock.sleep(0.2)
        assert states == [SessionState.LOST]

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_process_that_is_paused_while_it_is_cut_off_continues_its_session(seed: int) -> None:
    """The session continues if the process resumes before it expires, even after the client's own
    limit.
    """

    async def scenario(setting: Setting) -> None:
        one = await setting.session("m1")
        machine = setting.world.machine("m1")
        setting.cut()
        await setting.clock.sleep(2.0)
        machine.pause()
        setting.coordination.changed()
        setting.heal()
        await setting.clock.sleep(3.0)
        machine.resume()
        setting.coordination.changed()
        await setting.clock.sleep(0.5)
        assert one.state is SessionState.CONNECTED
        await one.create("/a")

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_ensemble_may_expire_a_session_at_any_time(seed: int) -> None:
    """A client whose session the ensemble has expired registers again with a new session."""

    async def scenario(setting: Setting) -> None:
        one = await setting.session("m1")
        assert setting.coordination.expire("m1") == 1
        await setting.clock.sleep(0.2)
        assert one.state is SessionState.LOST
        with pytest.raises(SessionLost):
            await one.get("/")

    run(seed, scenario)


def test_a_paused_process_takes_no_step_until_it_resumes() -> None:
    """Timers that are due while a process is paused fire after it has resumed, in their order."""
    steps: list[float] = []

    async def scenario(setting: Setting) -> None:
        loop = asyncio.get_running_loop()

        async def live() -> None:
            while True:
                await asyncio.sleep(1.0)
                steps.append(loop.time())

        machine = setting.world.machine("m1")
        task = machine.start(live)
        started = loop.time()
        await asyncio.sleep(2.5)
        machine.pause()
        await asyncio.sleep(10.0)
        assert len(steps) == 2
        machine.resume()
        await asyncio.sleep(1.2)
        assert [round(when - started, 1) for when in steps] == [1.0, 2.0, 12.5, 13.5]
        assert not task.done()

    run(0, scenario)
