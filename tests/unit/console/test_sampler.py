"""The sampler without a running cluster: failures, and the interval of its rounds."""

import pytest

from ottla.console.model.controllers import Controller
from ottla.console.model.overview import Sample
from ottla.console.sampler import Listener, Schedule
from ottla.console.state import ConsoleSettings, open_console
from ottla.operations.survey.connections import ClusterSettings
from ottla.operations.survey.metadata import Metadata


class Recorder(Listener):
    """Keeps what the sampler passes on."""

    def __init__(self) -> None:
        self.controllers: list[Controller] = []
        self.samples: list[Sample] = []
        self.failures: list[tuple[str, str]] = []

    def on_metadata(self, cluster: str, metadata: Metadata, controller: Controller) -> None:
        """Keep the controller."""
        self.controllers.append(controller)

    def on_sample(self, sample: Sample) -> None:
        """Keep a sample."""
        self.samples.append(sample)

    def on_failure(self, cluster: str, at_ms: int, reason: str) -> None:
        """Keep a failure."""
        self.failures.append((cluster, reason))


def test_a_cluster_that_does_not_answer_is_reported_to_the_listeners() -> None:
    """The history has a gap, and the alerts hear of it."""
    settings = ConsoleSettings((ClusterSettings("dead", "127.0.0.1:1"),), ":memory:")
    console = open_console(settings)
    listener = Recorder()
    console.sampler.listen(listener)
    console.sampler.sample(console.clusters.get("dead"))
    assert listener.samples == []
    assert [cluster for cluster, _ in listener.failures] == ["dead"]
    console.close()


def test_every_second_round_of_a_small_cluster_takes_a_sample() -> None:
    """Rounds come every 5 seconds, samples every 10, also if a round is a little early."""
    schedule, now, sampled = Schedule(), 100.0, []
    for _ in range(6):
        schedule.on_metadata(now, now + 0.01)
        if schedule.needs_sample(now):
            schedule.on_sample(now, now + 0.05)
            sampled.append(now)
        assert schedule.next_round == pytest.approx(now + 5)
        now = schedule.next_round - 0.001
    assert [round(at) for at in sampled] == [100, 110, 120]


def test_a_large_cluster_is_read_less_often_but_without_gaps() -> None:
    """Metadata takes 5 % of the time at most, samples 2 %, up to 30 and 60 seconds of pause."""
    schedule = Schedule()
    schedule.on_metadata(0, 0.5)
    schedule.on_sample(0, 0.5)
    assert schedule.next_round == pytest.approx(10)
    assert schedule.next_sample == pytest.approx(25)
    schedule.on_metadata(0, 8)
    schedule.on_sample(0, 8)
    assert schedule.next_round == pytest.approx(30)
    assert schedule.next_sample == pytest.approx(60)


def test_a_wait_for_a_frozen_broker_does_not_delay_the_next_sample() -> None:
    """The pause is as long as before: the reading has taken long, but it was no work."""
    schedule = Schedule()
    schedule.on_metadata(0, 0.1)
    schedule.on_sample(0, 0.1)
    schedule.on_metadata(10, 15, has_waited=True)
    schedule.on_sample(15, 27, has_waited=True)
    assert schedule.next_round == pytest.approx(15)
    assert schedule.next_sample == pytest.approx(25)


def test_a_cluster_that_does_not_respond_is_read_again_soon() -> None:
    """The wait for a dead cluster is no work: the end of the failure is seen after 5 seconds."""
    schedule = Schedule()
    schedule.on_failure(8)
    assert schedule.next_round == pytest.approx(13)
    assert schedule.needs_sample(13)
