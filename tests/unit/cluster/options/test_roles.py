"""The roles of KRaft nodes: which configurations are a cluster of one broker, and which are not."""

from collections.abc import Mapping

import pytest

from ottla.base.errors import ConfigError
from ottla.cluster.options.option_tables import parse_broker_settings
from ottla.cluster.options.roles import refuse_separate_cluster

# The settings of Apache Kafka 4.3's own config/server.properties.
QUICKSTART = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "inter.broker.listener.name": "PLAINTEXT",
    "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
}
_BOOTSTRAP = "controller.quorum.bootstrap.servers"
_VOTERS = "controller.quorum.voters"


def _check(changes: Mapping[str, str | None]) -> None:
    given = {name: text for name, text in {**QUICKSTART, **changes}.items() if text is not None}
    refuse_separate_cluster(parse_broker_settings(given).snapshot)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"process.roles": None, _BOOTSTRAP: None},
        {_BOOTSTRAP: None, _VOTERS: "1@localhost:9093"},
        {_BOOTSTRAP: None, _VOTERS: "1@kafka:29093"},
        {_BOOTSTRAP: "kafka:9093"},
        {_BOOTSTRAP: "127.0.0.1:9093", "advertised.listeners": None},
        {
            _BOOTSTRAP: "kafka1:9093",
            "listeners": "PLAINTEXT://:9092,CONTROLLER://kafka1.example.com:9093",
            "advertised.listeners": None,
        },
        {_BOOTSTRAP: "kafka1:9093", "controller.listener.names": None},
    ],
)
def test_a_node_that_is_its_only_controller_is_a_cluster(changes: dict[str, str | None]) -> None:
    """The quickstart, a static quorum of one, and addresses that may be the node's own."""
    _check(changes)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"process.roles": "broker"}, "process.roles=broker expects the KRaft controllers"),
        ({_VOTERS: "1@a:9093,2@b:9093,3@c:9093"}, "names the controllers 1, 2, 3"),
        ({_VOTERS: "2@b:9093"}, "names the controllers 2"),
        ({_VOTERS: "b:9093"}, "must look like id@host:port"),
        ({_BOOTSTRAP: "a:9093,b:9093,c:9093"}, "a:9093,b:9093,c:9093 names other nodes"),
        ({_BOOTSTRAP: "localhost:9095"}, "names other nodes"),
        (
            {
                _BOOTSTRAP: "kafka1:9093",
                "listeners": "PLAINTEXT://:9092,CONTROLLER://kafka2:9093",
                "advertised.listeners": None,
            },
            "names other nodes",
        ),
        (
            {
                _BOOTSTRAP: "10.0.0.1:9093",
                "listeners": "PLAINTEXT://:9092,CONTROLLER://10.0.0.2:9093",
                "advertised.listeners": None,
            },
            "names other nodes",
        ),
    ],
)
def test_a_node_of_a_larger_quorum_is_refused(changes: dict[str, str | None], reason: str) -> None:
    """Three nodes of a KRaft cluster must not become three clusters without notice."""
    with pytest.raises(ConfigError, match=reason):
        _check(changes)


def test_a_refusal_names_what_to_use_instead() -> None:
    """The remedy is a ZooKeeper, or several brokers on one machine."""
    with pytest.raises(ConfigError, match=r"zookeeper\.connect .* `ottla up --brokers 3`"):
        _check({"process.roles": "broker"})


def test_a_node_that_is_only_a_controller_is_refused() -> None:
    """Ottla has no controllers besides its brokers."""
    with pytest.raises(
        ConfigError, match=r"process\.roles: the node would be no broker.*`ottla up"
    ):
        _check({"process.roles": "controller"})


def test_an_unknown_role_is_refused() -> None:
    """As in Apache Kafka, the roles are broker and controller."""
    with pytest.raises(ConfigError, match="must be one of: broker, controller"):
        _check({"process.roles": "brokr"})
