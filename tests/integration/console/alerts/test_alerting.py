"""Alerts of a console with a running cluster: faults that are injected reach a channel."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.base.clock import RealClock
from ottla.base.errors import ApiError
from ottla.console.accounts.database import Database
from ottla.console.alerts.addresses import parse_networks
from ottla.console.alerts.alerting import Alerts
from ottla.console.alerts.channels import Channel, ChannelKind
from ottla.console.alerts.rules import Rule, RuleKind
from ottla.console.catalogue import ClusterCatalogue
from ottla.console.model.topics import NewTopic, create_topic, delete_topic
from ottla.console.state import Console, ConsoleSettings, open_console
from ottla.operations.survey.connections import ClusterSettings
from ottla.operations.survey.errors import read_error_counts
from ottla.testing import Cluster
from tests.unit.console.alerts.receivers import Receiver, running

_ROUNDS = 200


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Return the server of a webhook."""
    with running(Receiver()) as server:
        yield server


def console_of(
    bootstrap: str, http_urls: dict[int, str] | None = None, *, timeout_s: float = 20
) -> Console:
    """Return a console that may reach local channels."""
    settings = ClusterSettings("live", bootstrap, http_urls=http_urls or {})
    networks = parse_networks(["127.0.0.0/8"])
    return open_console(
        ConsoleSettings((settings,), ":memory:", timeout_s=timeout_s, allowed_networks=networks)
    )


def titles(receiver: Receiver) -> set[str]:
    """Return the titles that the webhook has received."""
    return {json.loads(body)["title"] for _, _, body in receiver.received}


def sample_until(console: Console, is_reached: Callable[[], bool]) -> None:
    """Sample until something is reached, for some seconds at most."""
    connection = console.clusters.get("live")
    for _ in range(_ROUNDS):
        console.sampler.sample(connection)
        console.alerts.wait()
        if is_reached():
            return
        connection.pause(0.05)
    pytest.fail("the state was not reached")


def test_faults_of_a_cluster_reach_the_channel_and_their_end_does(receiver: Receiver) -> None:
    """A healthy cluster is silent. Lag, a dead broker, and a dead cluster fire; a restart resolves."""
    with Cluster(brokers=2) as cluster, closing(console_of(cluster.bootstrap)) as console:
        connection = console.clusters.get("live")
        create_topic(connection, NewTopic("orders", 2, 2))
        cluster.wait_in_sync("orders")
        store = console.alerts.store
        number = store.add_channel(Channel("hook", ChannelKind.WEBHOOK, receiver.url))
        for kind in RuleKind:
            threshold = 100.0 if kind is RuleKind.DISK_USED else 0.0
            store.add_rule(Rule(kind.value, kind, threshold, for_s=0, channels=(number,)))
        console.alerts.configure()
        sample_until(console, lambda: True)
        assert receiver.received == []

        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        producer.produce("orders", b"v", partition=0)
        producer.flush()
        consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "billing"})
        consumer.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
        consumer.close()
        lags = {"[WARNING] live: lag", "[WARNING] live: lag-seconds"}
        sample_until(console, lambda: lags <= titles(receiver))

        cluster.kill(2)
        faults = {"[WARNING] live: under-replicated", "[WARNING] live: absent-broker"}
        sample_until(console, lambda: lags | faults <= titles(receiver))
        cluster.restart(2)
        ends = {"[RESOLVED] live: under-replicated", "[RESOLVED] live: absent-broker"}
        sample_until(console, lambda: ends <= titles(receiver))
        sample_until(
            console,
            lambda: {row.rule for row in store.incidents(is_open=True)} == {"lag", "lag-seconds"},
        )
        assert {row.result for row in store.deliveries()} == {"ok"}


def test_a_partition_without_leader_and_a_dead_cluster_fire(receiver: Receiver) -> None:
    """The partition of a dead broker is offline; without any broker the cluster does not respond."""
    with (
        Cluster(brokers=2) as cluster,
        closing(console_of(cluster.bootstrap, timeout_s=1.5)) as console,
    ):
        create_topic(console.clusters.get("live"), NewTopic("orders", 2, 1))
        store = console.alerts.store
        number = store.add_channel(Channel("hook", ChannelKind.WEBHOOK, receiver.url))
        for kind in (RuleKind.OFFLINE, RuleKind.UNAVAILABLE):
            store.add_rule(Rule(kind.value, kind, for_s=0, channels=(number,)))
        console.alerts.configure()
        sample_until(console, lambda: True)
        assert receiver.received == []
        cluster.kill(2)
        sample_until(console, lambda: "[WARNING] live: offline" in titles(receiver))
        cluster.kill(1)
        sample_until(console, lambda: "[WARNING] live: unavailable" in titles(receiver))


def test_a_frozen_broker_becomes_absent_and_samples_do_not_wait_for_it_twice(
    receiver: Receiver,
) -> None:
    """The cluster continues to respond; the rule about absent brokers fires, and ends with it."""
    with (
        Cluster(brokers=3) as cluster,
        closing(console_of(cluster.bootstrap, timeout_s=2)) as console,
    ):
        connection = console.clusters.get("live")
        create_topic(connection, NewTopic("orders", 3, 3))
        cluster.wait_in_sync("orders")
        store = console.alerts.store
        number = store.add_channel(Channel("hook", ChannelKind.WEBHOOK, receiver.url))
        for kind in (RuleKind.ABSENT_BROKER, RuleKind.UNAVAILABLE):
            store.add_rule(Rule(kind.value, kind, for_s=0, channels=(number,)))
        sample_until(console, lambda: True)
        # The first bootstrap address, which connections without metadata try first.
        cluster.pause(1)
        sample_until(console, lambda: "[WARNING] live: absent-broker" in titles(receiver))
        (incident,) = store.incidents(is_open=True)
        assert (incident.subject, incident.detail) == ("1", "Broker 1 is absent.")
        assert incident.notified_ms is not None
        timeouts = connection.silence.timeouts
        console.sampler.sample(connection)
        assert connection.silence.timeouts == timeouts
        cluster.resume(1)
        sample_until(console, lambda: "[RESOLVED] live: absent-broker" in titles(receiver))
        assert not any("unavailable" in title for title in titles(receiver))


def test_a_channel_that_refuses_leaves_the_incident_unnotified() -> None:
    """The page says "notified" only if a channel has accepted the notification."""
    console = console_of("127.0.0.1:1", timeout_s=0.2)
    with closing(console):
        store = console.alerts.store
        closed = Channel("hook", ChannelKind.WEBHOOK, f"http://127.0.0.1:{_free_port()}/")
        number = store.add_channel(closed)
        store.add_rule(Rule("away", RuleKind.UNAVAILABLE, for_s=0, channels=(number,)))
        console.sampler.sample(console.clusters.get("live"))
        # The retries of the notification end with the console.
        console.alerts.close()
        (incident,) = store.incidents(is_open=True)
        assert incident.notified_ms is None
        assert [row.result == "ok" for row in store.deliveries()] == [False]


def test_error_responses_of_a_broker_fire(receiver: Receiver) -> None:
    """The HTTP port of a broker counts errors: requests for a topic that does not exist are some."""
    port = _free_port()
    with Cluster(options={"metrics.listener": f"127.0.0.1:{port}"}) as cluster:
        console = console_of(cluster.bootstrap, {1: f"http://127.0.0.1:{port}"})
        with closing(console):
            connection = console.clusters.get("live")
            store = console.alerts.store
            number = store.add_channel(Channel("hook", ChannelKind.WEBHOOK, receiver.url))
            rule = Rule("errors", RuleKind.ERROR_RATE, for_s=0, channels=(number,))
            store.add_rule(rule)
            console.alerts.configure()
            console.sampler.sample(connection)
            assert set(read_error_counts(connection)) == {1}

            def is_fired() -> bool:
                with pytest.raises(ApiError):
                    delete_topic(connection, "absent", confirmation="absent")
                return titles(receiver) == {"[WARNING] live: errors"}

            sample_until(console, is_fired)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def test_a_rule_fires_in_every_console_of_the_file(tmp_path: Path) -> None:
    """A rule or a silence of one console takes effect in the other, too, without a restart."""
    first, second = (
        Alerts(Database(tmp_path / "console.sqlite3"), ClusterCatalogue(), RealClock())
        for _ in range(2)
    )
    first.store.add_rule(Rule("away", RuleKind.UNAVAILABLE, for_s=0))
    first.configure()
    second.on_failure("live", 0, "no broker responds")
    assert [row.rule for row in second.store.incidents(is_open=True)] == ["away"]
    for alerts in (first, second):
        alerts.close()
