"""Instances come and go under load: each record counts once, and results stay in order."""

import pytest

from ottla.testing import Cluster
from tests.integration.streams.local.rebalancing import ONCE, run_instances


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_instances_join_and_leave_under_load(guarantee: str, ottla_cluster: Cluster) -> None:
    """Exactly once, the results of each key are 1, 2, 3… in order; at least once, none is lost."""
    topics = ("words", "out")
    for topic in topics:
        ottla_cluster.create_topic(topic, partitions=4)
    counts = run_instances(ottla_cluster.bootstrap, guarantee, topics)
    assert [max(rows) for rows in counts] == [max(rows) for rows in ONCE]
    if guarantee == "exactly_once_v2":
        assert counts == ONCE
