"""Addresses that prove that no other live process has them."""

import pytest

from ottla.cluster.image import BrokerImage, Endpoint
from ottla.cluster.options import option_tables
from ottla.server.brokers.addresses import identifies_process


@pytest.mark.parametrize(
    ("zookeeper", "host", "expected"),
    [
        ("", "127.0.0.1", True),
        ("127.0.0.1:2181,localhost:2182/kafka", "127.0.0.1", True),
        ("zk1:2181,127.0.0.1:2182", "127.0.0.1", False),
        ("zk1:2181/kafka", "localhost", False),
        ("zk1:2181", "::1", False),
        ("zk1:2181", "10.0.0.7", True),
        ("zk1:2181", "broker-7.example", True),
    ],
)
def test_loopback_address_proves_nothing_in_a_cluster_of_machines(
    zookeeper: str, host: str, expected: bool
) -> None:
    """Two machines may have brokers with the same id and the same loopback address."""
    options = option_tables.parse_broker_settings({"zookeeper.connect": zookeeper}).snapshot
    assert identifies_process(BrokerImage(1, host, 9092), options) is expected


def test_one_address_of_several_is_enough() -> None:
    """The process that listens at the other one is this one, on this machine."""
    options = option_tables.parse_broker_settings({"zookeeper.connect": "zk1:2181"}).snapshot
    endpoints = (Endpoint("A", "127.0.0.1", 1), Endpoint("B", "10.0.0.7", 2))
    assert identifies_process(BrokerImage(1, "127.0.0.1", 1, endpoints=endpoints), options)
