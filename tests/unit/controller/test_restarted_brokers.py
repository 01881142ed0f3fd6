"""Brokers that registered again while there was no controller to notice it."""

from ottla.cluster.image import BrokerImage
from ottla.controller.state import LoadedTopics


def test_a_broker_that_registered_after_a_decision_about_it_has_restarted() -> None:
    """It may have lost records; the brokers of later decisions, and those that left, have not."""
    loaded = LoadedTopics({}, {1: 10, 2: 30, 3: 10, -1: 5})
    live = {key: BrokerImage(key, f"b{key}", 9092, epoch=20) for key in (1, 2, 4)}
    assert loaded.restarted(live) == {1}
