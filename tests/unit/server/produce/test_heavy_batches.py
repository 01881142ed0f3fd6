"""Lanes for heavy batches: their order and the waits of other batches, on virtual time."""

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ottla.base.clock import RealClock
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.rng import SeededRng
from ottla.server.produce.heavy_batches import FairLock, HeavyBatches
from ottla.storage.config import LogConfig
from ottla.storage.log.validation import Vetted
from ottla.testing.sim.loop import SimLoop
from ottla.wire.records.records import Record, encode_batch

NOW_MS = 1_767_225_600_000
COMPACTED = LogConfig(cleanup_policy=frozenset({"compact"}))


class LoopClock(RealClock):
    """A clock that shows the virtual time of the loop."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def time_ms(self) -> int:
        return NOW_MS


class SlowFiles:
    """A thread pool in which a batch takes 4 microseconds for each record and header."""

    def __init__(self) -> None:
        self.running = self.most = 0

    async def in_background(self, work: Callable[[], Vetted]) -> Vetted:
        self.running += 1
        self.most = max(self.most, self.running)
        data, *_ = work.args  # type: ignore[attr-defined]
        count = int.from_bytes(data[57:61], "big")
        await asyncio.sleep(count * 4e-6)
        self.running -= 1
        return work()


class Peer(SimpleNamespace):
    """A connection that sends batches."""

    __hash__ = object.__hash__  # type: ignore[assignment]


def run(scenario: Callable[[], Coroutine[Any, Any, Any]], seed: int = 1) -> Any:
    """Run a scenario on virtual time."""
    loop = SimLoop(SeededRng(seed))
    try:
        return loop.run(scenario())
    finally:
        loop.close()


def batch(count: int) -> bytearray:
    """Return a valid batch of `count` records."""
    return encode_batch([Record(b"k", None, (), NOW_MS)] * count, compression=4)


async def judged_after(
    batches: HeavyBatches, sender: Peer, data: bytearray, acks: int = 1
) -> float:
    """Validate a batch; return the seconds that it took."""
    loop = asyncio.get_running_loop()
    started, target = loop.time(), SimpleNamespace(log=SimpleNamespace(config=COMPACTED))
    vetted = await batches.validate(cast(Any, sender), data, cast(Any, target), acks)
    assert vetted.config == COMPACTED
    return loop.time() - started


def test_small_batch_does_not_wait_for_large_ones() -> None:
    """Four clients keep sending batches of a quarter of a second; 2 500 records take 10 ms."""

    async def scenario() -> None:
        batches = HeavyBatches(cast(Any, SlowFiles()), LoopClock())
        large, small = batch(60_000), batch(2500)

        async def attack() -> None:
            sender = Peer(is_closed=False)
            while True:
                await judged_after(batches, sender, large)

        attackers = [asyncio.create_task(attack()) for _ in range(4)]
        await asyncio.sleep(0.1)
        honest = Peer(is_closed=False)
        for _ in range(20):
            assert await judged_after(batches, honest, small) < 0.02
        for task in attackers:
            task.cancel()
        await asyncio.gather(*attackers, return_exceptions=True)

    run(scenario)


def test_at_most_two_batches_are_in_memory() -> None:
    """Each lock has one batch."""

    async def scenario() -> int:
        files = SlowFiles()
        batches = HeavyBatches(cast(Any, files), LoopClock())
        data = [batch(60_000), batch(3000)]
        sent = [judged_after(batches, Peer(is_closed=False), data[n % 2]) for n in range(8)]
        await asyncio.gather(*sent)
        return files.most

    assert run(scenario) == 2


def test_batch_of_many_headers_moves_to_the_other_lane() -> None:
    """Its header says one record, so its cost is known only after decoding."""

    async def scenario() -> None:
        batches = HeavyBatches(cast(Any, SlowFiles()), LoopClock())
        headers = (("", None),) * 60_000
        data = encode_batch([Record(b"k", None, headers, NOW_MS)], compression=4)
        assert await judged_after(batches, Peer(is_closed=False), data) < 0.01

    run(scenario)


@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_batch_of_a_disconnected_client_is_not_validated(acks: int) -> None:
    """The response has no receiver; with acks=0 there is no response at all."""

    async def scenario() -> None:
        batches = HeavyBatches(cast(Any, SlowFiles()), LoopClock())
        gone = Peer(is_closed=True)
        if not acks:
            assert await judged_after(batches, gone, batch(3000), acks) < 0.02
            return
        with pytest.raises(ApiError) as refused:
            await judged_after(batches, gone, batch(3000), acks)
        assert refused.value.code is ErrorCode.NETWORK_EXCEPTION
        assert await judged_after(batches, Peer(is_closed=False), batch(3000)) < 0.02

    run(scenario)


async def _hold(lock: FairLock, log: list[str], sender: str, seconds: float) -> None:
    async with lock.turn(sender, seconds):
        await asyncio.sleep(seconds)
        log.append(sender)


def test_sender_with_the_least_use_comes_first() -> None:
    """If one sender queues five batches, a later sender waits for only one of them."""

    async def scenario() -> list[str]:
        lock, log = FairLock(LoopClock()), list[str]()
        greedy = [asyncio.create_task(_hold(lock, log, "greedy", 1.0)) for _ in range(5)]
        await asyncio.sleep(0.5)
        await _hold(lock, log, "modest", 1.0)
        await asyncio.gather(*greedy)
        return log

    assert run(scenario) == ["greedy", "modest", *["greedy"] * 4]


def test_large_batch_is_not_starved_by_small_ones() -> None:
    """New connections keep sending small batches, and the large one still gets its share in time."""

    async def scenario() -> float:
        lock, log = FairLock(LoopClock()), list[str]()
        loop = asyncio.get_running_loop()

        async def stream(name: str) -> None:
            number = 0
            while True:
                number += 1
                await _hold(lock, log, f"{name} {number}", 0.01)

        small = [asyncio.create_task(stream(name)) for name in "abc"]
        await asyncio.sleep(0.1)
        started = loop.time()
        await _hold(lock, log, "large", 1.0)
        took = loop.time() - started
        for task in small:
            task.cancel()
        await asyncio.gather(*small, return_exceptions=True)
        return took

    assert run(scenario) < 6


@pytest.mark.parametrize("seed", range(5))
def test_cancelled_task_leaves_the_lock_to_the_next(seed: int) -> None:
    """The task is cancelled while it waits, or at the moment when it gets the lock."""

    async def scenario() -> list[str]:
        lock, log = FairLock(LoopClock()), list[str]()
        tasks = []
        for name in ("first", "waiting", "let in", "last"):
            tasks.append(asyncio.create_task(_hold(lock, log, name, 1.0)))
            await asyncio.sleep(0.1)
        tasks[1].cancel()
        tasks[0].add_done_callback(lambda _: tasks[2].cancel())
        await asyncio.gather(*tasks, return_exceptions=True)
        await _hold(lock, log, "after", 1.0)
        return log

    assert run(scenario, seed) == ["first", "last", "after"]
