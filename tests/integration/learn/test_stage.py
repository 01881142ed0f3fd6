"""The stage of a scenario: when a new leader is known."""

from collections.abc import Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any, cast

from ottla.learn.stage import Stage
from ottla.testing.cluster import Cluster


class StaleCluster:
    """Two brokers; the second one names the dead leader 1 twice, and then the new leader 3."""

    live_brokers = (2, 3)

    def __init__(self) -> None:
        self.answers: Iterator[int] = iter((1, 1, 3))

    def node(self, broker: int) -> Any:
        """Return a broker with its image."""
        leader = 3 if broker == 2 else next(self.answers)
        image = SimpleNamespace(partition=lambda topic, partition: SimpleNamespace(leader=leader))
        return SimpleNamespace(broker=SimpleNamespace(image=image))


def test_new_leader_is_awaited_on_every_broker() -> None:
    """A client may ask any broker, also one that does not know about the election yet."""
    cluster = StaleCluster()
    with ExitStack() as resources:
        stage = Stage("lesson", cast(Cluster, cluster), lambda event: None, resources)
        stage.await_leader_other_than(1, "orders")
    assert list(cluster.answers) == []
