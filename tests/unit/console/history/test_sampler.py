"""The sampler with a running cluster, and with none."""

from ottla.console.history.points import Kind, Period, Subject
from ottla.console.model.connections import ClusterSettings
from ottla.console.model.overview import Sample
from ottla.console.state import ConsoleSettings, open_console
from ottla.testing import Cluster


class Listener:
    """Keeps what the sampler passes on."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.failures: list[tuple[str, str]] = []

    def on_sample(self, sample: Sample) -> None:
        """Keep a sample."""
        self.samples.append(sample)

    def on_failure(self, cluster: str, at_ms: int, reason: str) -> None:
        """Keep a failure."""
        self.failures.append((cluster, reason))


def test_a_started_sampler_stores_the_history_of_a_cluster_and_stops() -> None:
    """Its first sample comes at once; `close` ends its thread."""
    with Cluster() as cluster:
        cluster.create_topic("orders", partitions=2)
        settings = ConsoleSettings((ClusterSettings("live", cluster.bootstrap),), ":memory:")
        console = open_console(settings)
        connection = console.clusters.get("live")
        console.sampler.start()
        subject = Subject(Kind.TOPIC, "orders")
        for _ in range(500):
            now_s = connection.now_ms() // 1000
            points = console.history.read("live", subject, Period.HOUR, now_s)
            if points:
                break
            connection.pause(0.02)
        assert [point.records for point in points] == [0]
        console.close()
        assert console.sampler.is_stopped


def test_a_cluster_that_does_not_answer_is_reported_to_the_listeners() -> None:
    """The history has a gap, and the alerts hear of it."""
    settings = ConsoleSettings((ClusterSettings("dead", "127.0.0.1:1"),), ":memory:")
    console = open_console(settings)
    listener = Listener()
    console.sampler.listen(listener)
    console.sampler.sample(console.clusters.get("dead"))
    assert listener.samples == []
    assert [cluster for cluster, _ in listener.failures] == ["dead"]
    console.close()
