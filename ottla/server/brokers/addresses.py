"""The address at which brokers reach one another, and what it proves."""

from ottla.base.options import Snapshot
from ottla.cluster.image import BrokerImage, Endpoint
from ottla.cluster.options.option_tables import inter_broker_listener
from ottla.cluster.options.security.exposure import is_loopback


def inter_broker_endpoint(broker: BrokerImage, options: Snapshot) -> Endpoint:
    """Return a broker's endpoint of inter.broker.listener.name, or its first one."""
    listener = inter_broker_listener(options)
    endpoint = None if listener is None else broker.endpoint(listener)
    return endpoint or broker.every_endpoint()[0]


def identifies_process(broker: BrokerImage, options: Snapshot) -> bool:
    """Return True if no other live process can listen at one of the broker's addresses.

    Loopback addresses are the same on every machine: they prove it only if all brokers of the
    cluster run on this one, as with embedded coordination or a ZooKeeper on loopback.
    """
    servers = options.text("zookeeper.connect").partition("/")[0]
    hosts = [server.strip().rpartition(":")[0].strip("[]") for server in servers.split(",")]
    if not servers or all(map(is_loopback, hosts)):
        return True
    return not all(is_loopback(endpoint.host) for endpoint in broker.every_endpoint())
