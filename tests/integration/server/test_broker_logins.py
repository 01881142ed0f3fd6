"""Brokers that log in to each other with SCRAM, as Apache Kafka's brokers do."""

import json
import logging
from collections.abc import Iterator

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from ottla.base.errors import ConfigError
from ottla.client.admin import scram
from ottla.client.admin.scram import ScramMechanism, ScramUpsertion
from ottla.client.brokers import Brokers
from ottla.testing import Cluster

MECHANISM = ScramMechanism.SCRAM_SHA_512
OPTIONS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "inter.broker.listener.name": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": MECHANISM.mechanism_name,
    "sasl.mechanism.inter.broker.protocol": MECHANISM.mechanism_name,
    "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="broker" password="secret";'
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "min.insync.replicas": "2",
}


@pytest.fixture(name="cluster")
def _cluster() -> Iterator[Cluster]:
    with Cluster(brokers=2, options=OPTIONS) as cluster:
        yield cluster


def write(cluster: Cluster) -> None:
    """Write a record that both replicas must have."""
    errors: list[object] = []
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    producer.produce("t", b"value", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(20) == 0
    assert errors == [None]


def test_brokers_replicate_as_their_user(cluster: Cluster) -> None:
    """The first broker stores the credential; a broker that restarts logs in again."""
    cluster.create_topic("t", replication_factor=2)
    write(cluster)
    cluster.restart(2)
    cluster.wait_in_sync("t")
    write(cluster)
    with Brokers(cluster.bootstrap) as admin:
        users = scram.describe_user_scram_credentials(admin)
    assert list(users) == ["broker"]


def test_changes_of_the_user_are_audited(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """A person may know its password; the work of brokers is not in the audit log."""
    caplog.set_level(logging.INFO, logger="ottla.audit")
    cluster.create_topic("t", replication_factor=2)
    write(cluster)
    caplog.clear()
    client = AdminClient(
        {
            "bootstrap.servers": cluster.bootstrap_of("SASL_PLAINTEXT"),
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": MECHANISM.mechanism_name,
            "sasl.username": "broker",
            "sasl.password": "secret",
        }
    )
    for done in client.delete_topics(["t"]).values():
        done.result(20)
    rows = [
        json.loads(record.getMessage()) for record in caplog.records if record.name == "ottla.audit"
    ]
    assert [(row["principal"], row["api"]) for row in rows] == [("User:broker", "DELETE_TOPICS")]


def test_password_that_was_changed_stops_the_start_of_a_broker(cluster: Cluster) -> None:
    """The error names the option and the remedy."""
    cluster.kill(2)
    with Brokers(cluster.bootstrap) as admin:
        row = ScramUpsertion("broker", MECHANISM, "new-secret")
        scram.alter_user_scram_credentials(admin, [row])
    with pytest.raises(ConfigError, match="correct it, or set the cluster's by `ottla security"):
        cluster.restart(2)
