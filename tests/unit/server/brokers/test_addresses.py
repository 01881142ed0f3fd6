"""The endpoint at which brokers reach one another."""

from ottla.cluster.image import BrokerImage, Endpoint
from ottla.cluster.options import option_tables
from ottla.server.brokers.addresses import inter_broker_endpoint

_BROKER = BrokerImage(
    1, "clients", 1, endpoints=(Endpoint("CLIENTS", "clients", 1), Endpoint("INSIDE", "inside", 2))
)


def test_brokers_use_the_listener_of_the_option() -> None:
    """Without inter.broker.listener.name they use the first one."""
    listeners = {"listeners": "CLIENTS://:1,INSIDE://:2"}
    listeners["listener.security.protocol.map"] = "CLIENTS:PLAINTEXT,INSIDE:PLAINTEXT"
    own = {"inter.broker.listener.name": "INSIDE"}
    for settings, host in ((listeners | own, "inside"), ({}, "clients")):
        options = option_tables.parse_broker_settings(settings).snapshot
        assert inter_broker_endpoint(_BROKER, options).host == host
