"""The secret of a cluster in its coordination tree, and how another one replaces it."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from ottla.base.clock import RealClock
from ottla.base.rng import SeededRng
from ottla.base.tasks import Tasks
from ottla.cluster.broker_secret import SECRET_BYTES, BrokerSecret
from ottla.cluster.secret_znodes import BrokerSecretNode, SecretContent
from ottla.cluster.zk.embedded import EmbeddedTree
from ottla.testing.sim.files import SimFileSystem

OVERLAP_MS = 600_000


class Clock(RealClock):
    """Virtual time: a sleep is over when `pass_time` has reached its end."""

    def __init__(self, ahead_ms: int = 0) -> None:
        self.now = 0.0
        self.ahead_ms = ahead_ms
        self._sleeping: list[tuple[float, asyncio.Future[None]]] = []

    def monotonic(self) -> float:
        return self.now

    def time_ms(self) -> int:
        return 1_700_000_000_000 + round(self.now * 1000) + self.ahead_ms

    async def sleep(self, seconds: float) -> None:
        end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleeping.append((self.now + seconds, end))
        await end

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        for until, end in self._sleeping:
            if until <= self.now and not end.done():
                end.set_result(None)


class World:
    """A tree, and the secret as several brokers see it."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.tree = EmbeddedTree(SimFileSystem(), RealClock())
        self.tasks = Tasks()
        self.retired: list[int] = []

    async def broker(self, seed: int, clock: Clock | None = None) -> BrokerSecret:
        """Return the secret as a broker sees it that starts now."""
        secret = BrokerSecret(clock or self.clock, SeededRng(seed), self.tasks, OVERLAP_MS)
        secret.on_retired = self.retired.append
        await secret.start(self.tree.session())
        return secret

    async def until(self, condition: Callable[[], bool]) -> None:
        """Run the other tasks until the condition is true."""
        async with asyncio.timeout(5):
            while not condition():
                await asyncio.sleep(0)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """Yield a world, whose tasks end with the test."""
    world = World()
    yield world
    await world.tasks.close()
    await world.tree.close()


async def test_all_brokers_of_a_cluster_have_the_secret_of_the_first(world: World) -> None:
    """A broker that starts later, or again, reads it."""
    first, second = await world.broker(1), await world.broker(2)
    assert first.valid_keys() == second.valid_keys()
    assert list(first.valid_keys()) == [1]
    assert len(first.valid_keys()[1]) == SECRET_BYTES


async def test_node_of_an_earlier_version_has_the_first_generation() -> None:
    """It has no generation."""
    content = BrokerSecretNode.decode(b'{"version":1,"secret":"00ff"}')
    assert content == SecretContent(b"\0\xff")


async def test_secret_is_replaced_once_for_all_brokers(world: World) -> None:
    """All of them see the option; the first one writes the new secret, and the others read it."""
    brokers = [await world.broker(number) for number in range(3)]
    (former,) = brokers[0].valid_keys().values()
    for broker in brokers:
        broker.want(2)
    await world.until(lambda: all(len(broker.valid_keys()) == 2 for broker in brokers))
    keys = brokers[0].valid_keys()
    assert [broker.valid_keys() for broker in brokers] == [keys] * 3
    assert keys[1] == former != keys[2]


async def test_former_secret_is_valid_for_a_bounded_time(world: World) -> None:
    """Then its connections are closed."""
    broker = await world.broker(1)
    broker.want(7)
    await world.until(lambda: list(broker.valid_keys()) == [7, 1])
    world.clock.pass_time(OVERLAP_MS / 1000 - 1)
    assert list(broker.valid_keys()) == [7, 1]
    assert world.retired == []
    world.clock.pass_time(1)
    await world.until(lambda: world.retired == [1])
    assert list(broker.valid_keys()) == [7]


@pytest.mark.parametrize(
    ("ahead_ms", "valid"), [(0, True), (OVERLAP_MS, False), (-3 * OVERLAP_MS, True)]
)
async def test_broker_that_starts_later_counts_from_the_replacement(
    world: World, ahead_ms: int, valid: bool
) -> None:
    """A clock that is behind does not make the time longer than the others'."""
    broker = await world.broker(1)
    broker.want(2)
    await world.until(lambda: len(broker.valid_keys()) == 2)
    later = Clock(ahead_ms)
    secret = await world.broker(2, later)
    assert (1 in secret.valid_keys()) is valid
    later.pass_time(OVERLAP_MS / 1000)
    assert list(secret.valid_keys()) == [2]


async def test_secret_is_not_replaced_while_the_last_one_is_learned(world: World) -> None:
    """A broker that missed one of two quick changes could not reach the others."""
    broker = await world.broker(1)
    broker.want(2)
    await world.until(lambda: len(broker.valid_keys()) == 2)
    broker.want(3)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert list(broker.valid_keys()) == [2, 1]
    world.clock.pass_time(OVERLAP_MS / 1000)
    await world.until(lambda: list(broker.valid_keys()) == [3, 2])


async def test_lower_generation_changes_nothing(world: World) -> None:
    """The option was reset."""
    broker = await world.broker(1)
    broker.want(2)
    await world.until(lambda: len(broker.valid_keys()) == 2)
    keys = broker.valid_keys()
    broker.want(1)
    await asyncio.sleep(0)
    assert broker.valid_keys() == keys


async def test_new_session_reads_the_secret_again(world: World) -> None:
    """It may have been replaced while the broker had no session."""
    broker = await world.broker(1)
    lost = world.tree.session()
    await broker.start(lost)
    lost.expire()
    other = await world.broker(2)
    other.want(2)
    await world.until(lambda: len(other.valid_keys()) == 2)
    await broker.start(world.tree.session())
    assert broker.valid_keys() == other.valid_keys()
