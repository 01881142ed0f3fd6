"""The address at which brokers reach one another."""

from ottla.base.options import Snapshot
from ottla.cluster.image import BrokerImage, Endpoint


def inter_broker_endpoint(broker: BrokerImage, options: Snapshot) -> Endpoint:
    """Return a broker's endpoint of inter.broker.listener.name, or its first one."""
    listener = options["inter.broker.listener.name"]
    endpoint = None if listener is None else broker.endpoint(listener)
    return endpoint or broker.every_endpoint()[0]
