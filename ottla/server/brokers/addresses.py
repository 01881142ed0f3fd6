"""The address at which brokers reach one another."""

from ottla.base.options import Snapshot
from ottla.cluster.image import BrokerImage, Endpoint


def inter_broker_endpoint(broker: BrokerImage, options: Snapshot) -> Endpoint:
    """Return a broker's endpoint of inter.broker.listener.name, or its first PLAINTEXT endpoint."""
    endpoints = broker.every_endpoint()
    listener = options["inter.broker.listener.name"]
    if listener is not None:
        return broker.endpoint(listener) or endpoints[0]
    plain = (item for item in endpoints if item.security_protocol == "PLAINTEXT")
    return next(plain, endpoints[0])
