"""A console and a broker process under SIGSTOP: its absence is reported when the rule says."""

import time
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from ottla.console.alerts.rules import Rule, RuleKind
from ottla.console.model.overview import Sample
from ottla.console.sampler import Listener
from ottla.console.state import Console, ConsoleSettings, open_console
from ottla.operations.survey.connections import ClusterSettings
from tests.process.broker_cluster import SESSION_MS, BrokerCluster, wait
from tests.process.zookeeper_servers import zookeeper

# One of the brokers would serve the metadata of a cluster without ZooKeeper, and freeze it, too.
pytestmark = [pytest.mark.slow, pytest.mark.needs("zookeeper")]

_SAMPLE_S, _TIMEOUT_S, _FOR_S = 0.5, 2.0, 3
# Two busy cores, and the time in which the controller notices the end of a session.
_SLACK_S = 5.0


class SampleTimes(Listener):
    """Records when samples arrive, and the brokers that they have."""

    def __init__(self) -> None:
        self.samples: list[tuple[float, frozenset[int]]] = []

    def on_sample(self, sample: Sample) -> None:
        """Record a sample."""
        self.samples.append((time.monotonic(), frozenset(sample.brokers)))

    def largest_gap(self, since: float) -> float:
        """Return the longest time without a sample since a moment."""
        times = [since, *(at for at, _ in self.samples if at > since), time.monotonic()]
        return max(later - earlier for earlier, later in pairwise(times))

    def gone_at(self, broker: int, since: float) -> float:
        """Return the time of the first sample without a broker."""
        return next(at for at, brokers in self.samples if at > since and broker not in brokers)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[BrokerCluster]:
    """Three broker processes with a topic."""
    with (
        zookeeper(tmp_path / "zookeeper") as ensemble,
        BrokerCluster(tmp_path, zookeeper=ensemble.address) as running,
    ):
        running.create_topic("orders", partitions=3)
        yield running


def console_of(bootstrap: str) -> Console:
    """Return a console that samples often."""
    settings = (ClusterSettings("live", bootstrap),)
    return open_console(
        ConsoleSettings(settings, ":memory:", timeout_s=_TIMEOUT_S, sample_s=_SAMPLE_S)
    )


def subjects(console: Console) -> list[str]:
    """Return the brokers that open incidents are about."""
    return [row.subject for row in console.alerts.store.incidents(is_open=True)]


@pytest.mark.parametrize("is_controller", [False, True], ids=["broker", "controller"])
def test_a_frozen_broker_fires_when_the_rule_says_and_delays_no_sample(
    cluster: BrokerCluster, is_controller: bool
) -> None:
    """From the first sample without the broker the rule waits for its own time, and ends with it."""
    controller = cluster.controller()
    victim = next(number for number in cluster.ids if (number == controller) is is_controller)
    times = SampleTimes()
    with closing(console_of(cluster.bootstrap)) as console:
        console.alerts.store.add_rule(Rule("away", RuleKind.ABSENT_BROKER, for_s=_FOR_S))
        console.alerts.configure()
        console.sampler.listen(times)
        console.sampler.start()
        wait(lambda: len(times.samples) > 2, "the console samples")
        assert subjects(console) == []
        frozen = time.monotonic()
        cluster.pause(victim)
        wait(lambda: subjects(console) == [str(victim)], "the broker is absent")
        fired = time.monotonic()
        gone = times.gone_at(victim, frozen)
        assert gone - frozen < SESSION_MS / 1000 + _TIMEOUT_S + _SLACK_S
        assert _FOR_S - _SAMPLE_S <= fired - gone < _FOR_S + _TIMEOUT_S + _SLACK_S
        assert times.largest_gap(frozen) < _SAMPLE_S + 2 * _TIMEOUT_S + _SLACK_S
        before = len(times.samples)
        wait(lambda: len(times.samples) > before + 4, "samples arrive as often as before")
        assert times.largest_gap(fired) < _SAMPLE_S + _TIMEOUT_S
        cluster.resume(victim)
        wait(lambda: subjects(console) == [], "the broker is back")
