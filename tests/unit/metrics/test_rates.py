"""Rates of meters that are computed when they are read."""

import pytest

from ottla.metrics.beans import SHARES, Beans, Distribution, Idle, Properties
from ottla.metrics.jmx_json import attributes_of
from ottla.metrics.object_names import object_name
from ottla.metrics.rates import MeterRates


def test_first_reading_has_the_mean() -> None:
    """Nothing is known about the last minutes yet."""
    rates = MeterRates(started_at=100.0)
    assert rates.of("m", 50, now=110.0) == (5.0, 5.0, 5.0, 5.0)


def test_averages_approach_the_present_rate() -> None:
    """The shorter the window, the faster; after many windows the former rate is forgotten."""
    rates = MeterRates(started_at=0.0)
    rates.of("m", 0, now=1.0)
    count = 0
    for second in range(2, 62):
        count += 10
        actual = rates.of("m", count, now=float(second))
    assert 6 < actual.one_minute < 7
    assert 1.5 < actual.five_minutes < 2.5
    assert actual.fifteen_minutes < actual.five_minutes
    assert rates.of("m", count, now=3600.0).one_minute == pytest.approx(0, abs=1e-6)


def test_quick_readings_do_not_change_the_averages() -> None:
    """Two tools that read one after the other get the same averages."""
    rates = MeterRates(started_at=0.0)
    first = rates.of("m", 100, now=10.0)
    assert rates.of("m", 900, now=10.5)[1:] == first[1:]


def test_attributes_have_the_names_of_kafkas_beans() -> None:
    """Meters, timers, idle meters and gauges."""
    rates = MeterRates(started_at=0.0)
    beans = Beans("kafka.server", "X")

    def shown(bean: object, value: object) -> dict[str, object]:
        return attributes_of(bean, object_name(bean, Properties()), value, rates, 10.0)  # type: ignore[arg-type]

    assert shown(beans.meter("APerSec", ""), 20) == {
        "Count": 20, "EventType": "events", "RateUnit": "SECONDS",
        "MeanRate": 2.0, "OneMinuteRate": 2.0, "FiveMinuteRate": 2.0, "FifteenMinuteRate": 2.0,
    }  # fmt: skip
    timer = shown(beans.timer("BMs", ""), Distribution(2, 5.0, (float("nan"),) * len(SHARES)))
    assert timer == {
        "Count": 2, "Mean": 2.5, "50thPercentile": 0.0, "75thPercentile": 0.0, "95thPercentile": 0.0,
        "98thPercentile": 0.0, "99thPercentile": 0.0, "999thPercentile": 0.0,
    }  # fmt: skip
    idle = shown(beans.idle("CPercent", ""), Idle(5_000_000_000, 0.75))
    assert (idle["Count"], idle["MeanRate"], idle["OneMinuteRate"]) == (5_000_000_000, 0.5, 0.75)
    assert shown(beans.gauge("D", ""), "text") == {"Value": "text"}
    assert shown(beans.attribute("e-count", ""), 3) == {"e-count": 3}


@pytest.mark.parametrize(
    ("name", "counted"),
    [
        ("MessagesInPerSec", "messages"),
        ("ReplicationBytesInPerSec", "bytes"),
        ("FailedProduceRequestsPerSec", "requests"),
        ("ErrorsPerSec", "requests"),
        ("FailedIsrUpdatesPerSec", "failedUpdates"),
        ("UncleanLeaderElectionsPerSec", "elections"),
        ("ZooKeeperExpiresPerSec", "expires"),
    ],
)
def test_meters_say_what_they_count(name: str, counted: str) -> None:
    """EventType has the value of Kafka's meter of that name."""
    bean = Beans("kafka.server", "X").meter(name, "")
    attributes = attributes_of(bean, object_name(bean, Properties()), 1, MeterRates(0.0), 10.0)
    assert attributes["EventType"] == counted
