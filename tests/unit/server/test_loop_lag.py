"""The gauge of the event loop's lag, its timer, and what it says of pauses."""

import logging
from typing import Any

import pytest

from ottla.base.rng import SeededRng
from ottla.server.loop_lag import BUCKETS, INTERVAL_SECONDS, LoopLag, LoopWatch
from ottla.testing.sim.loop import SimLoop, VirtualClock


class SlowClock(VirtualClock):
    """A clock of a loop whose callbacks take time: `pass_by` is that time."""

    def __init__(self, loop: SimLoop) -> None:
        super().__init__(loop)
        self.passed = self.cpu = 0.0

    def cpu_seconds(self) -> float:
        return self.cpu

    def monotonic(self) -> float:
        return super().monotonic() + self.passed

    def pass_by(self, seconds: float, *, is_own: bool = True) -> None:
        self.passed += seconds
        self.cpu += seconds if is_own else 0.0


def test_lags_fall_into_their_buckets() -> None:
    """A bound belongs to its bucket; what is later than the last bound has one of its own."""
    lag = LoopLag()
    for seconds in (-0.001, 0.0, BUCKETS[0], BUCKETS[0] * 1.01, BUCKETS[-1] + 1):
        lag.note(seconds)
    assert lag.counts[:2] == [3, 1]
    assert lag.counts[-1] == 1
    assert lag.count == 5
    assert lag.sum_seconds == pytest.approx(BUCKETS[0] * 2.01 + BUCKETS[-1] + 1)


def test_the_reader_resets_the_longest() -> None:
    """Each reader's turn begins with nothing; the histogram goes on."""
    lag = LoopLag()
    lag.note(0.02)
    lag.note(0.01)
    assert (lag.longest_seconds, lag.take_longest(), lag.take_longest()) == (0.02, 0.02, 0.0)
    assert lag.count == 2


def test_only_more_than_a_hundred_milliseconds_is_a_pause() -> None:
    """As the bound of hostile input is worded."""
    lag = LoopLag()
    assert not lag.note(0.1)
    assert lag.note(0.11)
    assert lag.pauses_count == 1


def run(work: Any) -> None:
    """Run `work(loop, clock, watch)` on virtual time, with a watch that is started and stopped."""
    with SimLoop(SeededRng(1)) as loop:

        async def watched() -> None:
            clock = SlowClock(loop)
            watch = LoopWatch(clock, lambda since: f"requests since {since - 1000:.2f}")
            watch.start()
            await work(clock, watch)
            watch.stop()

        loop.run(watched())


def test_an_idle_loop_is_not_late() -> None:
    """Fifty lags a second, all of them nothing; none after the stop."""

    async def idle(clock: SlowClock, watch: LoopWatch) -> None:
        await clock.sleep(1 + INTERVAL_SECONDS / 2)
        assert watch.lag.count == 50
        assert watch.lag.longest_seconds < 1e-6
        watch.stop()
        await clock.sleep(1)
        assert watch.lag.count == 50

    run(idle)


def test_the_watch_sees_how_long_a_callback_took(caplog: pytest.LogCaptureFixture) -> None:
    """What stopped the loop is named with its time, and so are the requests of that moment."""

    async def block(clock: SlowClock, watch: LoopWatch) -> None:
        with watch.during("retention"):
            clock.pass_by(0.25)
        with watch.during("a short thing"):
            clock.pass_by(0.001)
        await clock.sleep(0.1)
        assert watch.lag.longest_seconds == pytest.approx(0.251)

    run(block)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "ms=251" in record.message
    assert "during=retention for 250 ms, requests since 0.00" in record.message


@pytest.mark.parametrize(
    ("seconds", "is_own", "level"),
    [(0.2, True, logging.WARNING), (0.2, False, logging.INFO), (1.5, False, logging.WARNING)],
)
def test_a_busy_machine_is_nothing_to_warn_of(
    caplog: pytest.LogCaptureFixture, seconds: float, is_own: bool, level: int
) -> None:
    """What the loop's own thread has not spent is its fault only when it is long."""
    caplog.set_level(logging.INFO)

    async def wait(clock: SlowClock, watch: LoopWatch) -> None:
        clock.pass_by(seconds, is_own=is_own)
        await clock.sleep(0.05)

    run(wait)
    assert [each.levelno for each in caplog.records] == [level]


def test_pauses_are_told_of_once_in_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    """However often the loop stops, the log is not flooded; the next line counts them."""

    async def block(clock: SlowClock, watch: LoopWatch) -> None:
        for _ in range(20):
            clock.pass_by(0.2)
            await clock.sleep(0.05)
        assert len(caplog.records) == 1
        assert watch.lag.pauses_count == 20
        await clock.sleep(10)
        clock.pass_by(0.2)
        await clock.sleep(0.05)

    run(block)
    assert len(caplog.records) == 2
    assert "more_pauses_unsaid=19" in caplog.records[1].message


def test_how_idle_the_loop_is_follows_the_last_minute() -> None:
    """All of it at first, then what its own thread has not used; former work is forgotten."""

    async def work(clock: SlowClock, watch: LoopWatch) -> None:
        assert watch.idle_share() == 1.0
        for _ in range(10):
            await clock.sleep(0.75)
            clock.pass_by(0.25)
        assert watch.idle_share() == pytest.approx(0.75, abs=0.01)
        clock.pass_by(10, is_own=False)
        assert watch.idle_share() == pytest.approx(0.875, abs=0.01)
        await clock.sleep(100)
        assert watch.idle_share() == 1.0

    run(work)
