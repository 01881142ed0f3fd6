"""Latencies and rates of `ottla perf`, and its scripts."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from ottla.base.errors import ErrorCode
from ottla.client.errors import RecordsDenied
from ottla.client.raw.consumer import ConsumedRecord
from ottla.client.transport import broker_error
from ottla.tools.measuring import round_trips
from ottla.tools.measuring.consuming import Amount, rates
from ottla.tools.measuring.measured_producer import MeasuredProducer
from ottla_scripts.table import SCRIPTS

pytestmark = pytest.mark.slow


def test_latency_of_a_round_trip_has_nanoseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is printed with Java's digits, not with the digits of a difference of seconds."""
    times = iter([5, 5, 111_005_720])
    monkeypatch.setattr(round_trips, "time", SimpleNamespace(perf_counter_ns=lambda: next(times)))
    producer, consumer = Mock(), Mock()
    record = ConsumedRecord("t", 0, 0, 0, "create", None, b"A", ())
    consumer.poll.return_value = [record]
    found = round_trips.measure_round_trips(
        (producer, consumer), {("t", 0): 0}, iter([b"A"]), 1, lambda *_: None
    )
    assert [str(latency_ms) for latency_ms in found] == ["111.005715"]


def test_rates_are_those_of_an_interval() -> None:
    """Totals cover the run; the time of a rebalance is no time of fetching."""
    facts = rates(Amount(10.0, 100, 2 << 20), Amount(12.0, 300, 6 << 20), 1.0)
    assert (facts["records"], facts["mb"]) == (300, 6.0)
    assert (facts["records_per_second"], facts["mb_per_second"]) == (100.0, 2.0)
    assert (facts["fetch_records_per_second"], facts["rebalance_ms"]) == (200.0, 1000)


def test_performance_scripts_name_their_verbs() -> None:
    """`ottla scripts list` and docs/scripts.md have them."""
    verbs = {name: SCRIPTS[name].verb for name in SCRIPTS if SCRIPTS[name].verb.startswith("perf")}
    assert verbs == {
        "kafka-producer-perf-test": "perf produce",
        "kafka-consumer-perf-test": "perf consume",
        "kafka-e2e-latency": "perf latency",
        "kafka-verifiable-producer": "perf verifiable-produce",
        "kafka-verifiable-consumer": "perf verifiable-consume",
        "trogdor": "perf workload",
        # Not available: their readers use consumers instead.
        "kafka-share-consumer-perf-test": "perf consume",
        "kafka-verifiable-share-consumer": "perf verifiable-consume",
    }


@pytest.mark.parametrize("continues", [True, False])
def test_record_that_is_refused_at_once_is_reported_or_raised(
    monkeypatch: pytest.MonkeyPatch, continues: bool
) -> None:
    """librdkafka takes no more records for a topic that it knows to be denied."""
    reported: list[Any] = []
    denied = broker_error(int(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    producer = MeasuredProducer(
        "127.0.0.1:1",
        {},
        lambda error, message: reported.append((error, message.key(), message.value())),
        lambda: None,
        continues=continues,
    )
    monkeypatch.setattr(producer, "_producer", Mock(produce=Mock(side_effect=denied)))
    if continues:
        producer.send("orders", b"1", key=b"k")
        ((error, key, value),) = reported
        assert (error.topic, key, value) == ("orders", b"k", b"1")
    else:
        with pytest.raises(RecordsDenied):
            producer.send("orders", b"1", key=b"k")
        assert reported == []
