"""The pace of a producer, on a clock of the test."""

import pytest

from ottla.tools.measuring import pace
from ottla.tools.measuring.pace import Pace


class _Clock:
    """A clock of which each pause costs a tenth of a millisecond more, as on Linux."""

    def __init__(self) -> None:
        self.now = 50.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        """Return the time in seconds."""
        self.now += 1e-6
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let the time pass."""
        self.pauses.append(seconds)
        self.now += seconds + 1e-4


@pytest.mark.parametrize("rate", [100, 5_000, 100_000])
def test_rate_is_reached(rate: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short pauses are collected until they are worth one, as in Kafka's ThroughputThrottler."""
    clock = _Clock()
    monkeypatch.setattr(pace, "time", clock)
    kept = Pace(rate)
    for number in range(1, rate + 1):
        kept.keep(number)
    assert clock.now - 50 == pytest.approx(1, abs=0.02)
    assert min(clock.pauses) >= 0.002


def test_no_rate_is_no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zero and negative rates have no limit."""
    clock = _Clock()
    monkeypatch.setattr(pace, "time", clock)
    for rate in (0, -1):
        Pace(rate).keep(1_000_000)
    assert clock.pauses == []


def test_work_before_a_pause_is_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time that `before` takes shortens the pause."""
    clock = _Clock()
    monkeypatch.setattr(pace, "time", clock)
    Pace(10, lambda: clock.sleep(0.03)).keep(1)
    assert clock.pauses[1] == pytest.approx(0.07, abs=0.001)
