"""`ottla topic copy`: the targets that it refuses before it copies a record."""

from typing import Any

import pytest

from ottla.client.producer.producer import Producer
from ottla.testing import Cluster

pytestmark = pytest.mark.slow


def produce(cluster: Cluster, topic: str, *values: bytes, **settings: Any) -> None:
    """Write records to a topic."""
    with Producer(bootstrap_servers=cluster.bootstrap, **settings) as producer:
        for value in values:
            producer.send(topic, value)


def test_target_that_was_created_again_is_refused(run: Any, ottla_cluster: Cluster) -> None:
    """A copy that resumed there would lack all earlier records."""
    produce(ottla_cluster, "a", b"1", b"2")
    assert run("topic", "copy", "a", "b").code == 0
    assert run("topic", "delete", "b", "--yes").code == 0
    done = run("topic", "copy", "a", "b")
    assert done.code == 1
    assert "'b.mirror-offsets', too" in done.errors
