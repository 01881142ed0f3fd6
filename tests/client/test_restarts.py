"""Clients survive a broker that is killed: nothing acknowledged is lost, nothing is duplicated."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.client import AdminClient, Consumer, Producer
from ottla.testing import Cluster
from ottla.testing.process import BrokerProcess
from tests.client.chaos import OPTIONS, QUICK, QUICK_PRODUCER

pytestmark = pytest.mark.slow


def test_idempotent_producer_and_consumer_survive_a_kill(tmp_path: Path) -> None:
    """Records sent while the broker is down are stored once each, and the consumer resumes."""
    with BrokerProcess(tmp_path / "data") as broker:
        with AdminClient(bootstrap_servers=broker.bootstrap) as admin:
            admin.create_topic("t", config={"flush.messages": "1"})
        settings = {"bootstrap_servers": broker.bootstrap, "reconnect_backoff_max_ms": 200}
        with (
            Producer(settings) as producer,
            Consumer("t", config=settings, group_id="g", auto_offset_reset="earliest") as consumer,
        ):
            futures = [producer.send("t", b"%d" % number) for number in range(100)]
            values = [record.value for record in consumer.poll(30)]
            broker.kill()
            futures += [producer.send("t", b"%d" % number) for number in range(100, 200)]
            broker.start()
            assert [future.exception(60) for future in futures] == [None] * 200
            while len(values) < 200:
                values += [record.value for record in consumer.poll(1)]
            assert consumer.poll(0.5) == []
        assert sorted(map(int, values)) == list(range(200))
        assert [future.result().offset for future in futures] == list(range(200))


def test_offsets_of_a_transaction_after_the_death_of_the_groups_coordinator() -> None:
    """The producer looks for the group's new coordinator while `send_offsets` waits."""
    options = {**OPTIONS, "offsets.topic.num.partitions": "1"}
    with Cluster(brokers=3, options=options) as cluster:
        cluster.create_topic("t", partitions=1, replication_factor=3)
        settings = {"bootstrap_servers": cluster.bootstrap}
        with (
            Producer(settings | QUICK_PRODUCER, transactional_id="p") as producer,
            Consumer(
                "t", config=settings | QUICK, group_id="g", heartbeat_interval_ms=50
            ) as consumer,
        ):
            while not consumer.assignment:
                consumer.poll(0.1)
            for offset in (1, 2):
                with producer.transaction():
                    producer.send("t", b"record")
                    producer.send_offsets(consumer, {("t", 0): offset})
                if offset == 1:
                    coordinator = cluster.leader("__consumer_offsets")
                    cluster.kill(coordinator)
                    cluster.expire_session(coordinator)
            assert consumer.committed()["t", 0].offset == 2


def test_commit_while_the_coordinator_is_silent() -> None:
    """It goes to the next coordinator, as soon as the cluster has one."""
    options = {**OPTIONS, "offsets.topic.num.partitions": "1"}
    with Cluster(brokers=3, options=options) as cluster:
        cluster.create_topic("t", partitions=1, replication_factor=3)
        settings = {"bootstrap_servers": cluster.bootstrap, **QUICK, "request_timeout_ms": 500}
        with Consumer("t", config=settings, group_id="g", auto_offset_reset="earliest") as consumer:
            while not consumer.assignment:
                consumer.poll(0.1)
            assert consumer.commit({("t", 0): 1})
            coordinator = cluster.leader("__consumer_offsets")
            cluster.pause(coordinator)
            cluster.expire_session(coordinator)
            try:
                assert consumer.commit({("t", 0): 2})
                assert consumer.committed()["t", 0].offset == 2
            finally:
                cluster.resume(coordinator)


@pytest.mark.parametrize(
    ("look_up", "found"),
    [
        (lambda consumer: consumer.end_offsets([("t", 0)]), 1),
        (lambda consumer: consumer.beginning_offsets([("t", 0)]), 0),
        (lambda consumer: consumer.offsets_for_times({("t", 0): 0}), 0),
    ],
    ids=["end", "beginning", "time"],
)
def test_lookup_after_the_death_of_the_leader(
    look_up: Callable[[Consumer], Any], found: int
) -> None:
    """The metadata that the consumer has names the dead leader: it asks for newer metadata."""
    with Cluster(brokers=3, options=OPTIONS) as cluster:
        cluster.create_topic("t", partitions=1, replication_factor=3)
        settings = {"bootstrap_servers": cluster.bootstrap, "default_api_timeout_ms": 30_000}
        with Producer(bootstrap_servers=cluster.bootstrap) as producer:
            producer.send("t", b"record").result(30)
        with Consumer(config=settings) as consumer:
            assert consumer.end_offsets([("t", 0)]) == {("t", 0): 1}
            leader = cluster.leader("t")
            cluster.kill(leader)
            cluster.expire_session(leader)
            assert look_up(consumer) == {("t", 0): found}
