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


def test_target_that_accepts_smaller_records_is_refused(run: Any, ottla_cluster: Cluster) -> None:
    """The copy would fail at the first record that is too large; nothing is copied before."""
    ottla_cluster.create_topic("a", config={"max.message.bytes": "2000000"})
    ottla_cluster.create_topic("b")
    produce(ottla_cluster, "a", b"1", b"x" * 1_500_000)
    done = run("topic", "copy", "a", "b")
    assert done.code == 1
    assert "takes records of 1048588 bytes at most, and 'a' of 2000000" in done.errors
    assert run("topic", "copy", "a", "c").code == 0


def test_copy_up_to_a_time_says_where_it_ends(run: Any, ottla_cluster: Cluster) -> None:
    """Older records that follow the first one at that time are copied by the next copy."""
    produce(ottla_cluster, "a", b"1", b"2")
    done = run("topic", "copy", "a", "b", "-o", "beginning", "-o", "@-1h")
    assert "Older records that follow" in done.errors
