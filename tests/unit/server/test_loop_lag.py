"""The event loop's lag: its histogram, its timer and the reports of pauses."""

import logging
from typing import Any

import pytest

from ottla.base.rng import SeededRng
from ottla.server.loop_lag import BUCKETS, INTERVAL_SECONDS, LoopLag, LoopWatch
from ottla.testing.sim.loop import SimLoop, VirtualClock


class SlowClock(VirtualClock):
    """The clock of a loop whose callbacks take the time `pass_by`."""

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


def test_lags_are_counted_in_their_buckets() -> None:
    """A bound belongs to its own bucket, and lags above the last bound have another one."""
    lag = LoopLag()
    for seconds in (-0.001, 0.0, BUCKETS[0], BUCKETS[0] * 1.01, BUCKETS[-1] + 1):
        lag.note(seconds)
    assert lag.counts[:2] == [3, 1]
    assert lag.counts[-1] == 1
    assert lag.count == 5
    assert lag.sum_seconds == pytest.approx(BUCKETS[0] * 2.01 + BUCKETS[-1] + 1)


def test_reading_resets_the_maximum() -> None:
    """The maximum restarts at zero after each read, and the histogram does not."""
    lag = LoopLag()
    lag.note(0.02)
    lag.note(0.01)
    assert (lag.longest_seconds, lag.take_longest(), lag.take_longest()) == (0.02, 0.02, 0.0)
    assert lag.count == 2


def test_only_more_than_a_hundred_milliseconds_is_a_pause() -> None:
    """A pause is a lag of more than 100 ms, the bound for hostile input."""
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


def test_idle_loop_has_no_lag() -> None:
    """There are fifty lags a second, all zero, and none after the stop."""

    async def idle(clock: SlowClock, watch: LoopWatch) -> None:
        await clock.sleep(1 + INTERVAL_SECONDS / 2)
        assert watch.lag.count == 50
        assert watch.lag.longest_seconds < 1e-6
        watch.stop()
        await clock.sleep(1)
        assert watch.lag.count == 50

    run(idle)


def test_slow_callback_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    """The report names the callback that blocked the loop with its time, and the requests before
    it.
    """

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
def test_short_pause_of_a_busy_machine_is_no_warning(
    caplog: pytest.LogCaptureFixture, seconds: float, is_own: bool, level: int
) -> None:
    """Time that the loop's own thread did not use is a warning only if it is long."""
    caplog.set_level(logging.INFO)

    async def wait(clock: SlowClock, watch: LoopWatch) -> None:
        clock.pass_by(seconds, is_own=is_own)
        await clock.sleep(0.05)

    run(wait)
    assert [record.levelno for record in caplog.records] == [level]


def test_pauses_are_logged_once_in_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    """Further pauses are counted in the next line, so the log is not flooded."""

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


def test_idle_time_covers_the_last_minute() -> None:
    """Idle time is what the loop's own thread has not used in the last minute."""

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
