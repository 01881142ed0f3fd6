"""The address at which brokers reach one another."""

from ottla.base.options import Snapshot
from ottla.cluster.image import BrokerImage, Endpoint
from ottla.cluster.options.option_tables import inter_broker_listener


def inter_broker_endpoint(broker: BrokerImage, options: Snapshot) -> Endpoint:
    """Return a broker's endpoint of inter.broker.listener.name, or its first one."""
    listener = inter_broker_listener(options)
    endpoint = None if listener is None else broker.endpoint(listener)
    return endpoint or broker.every_endpoint()[0]
