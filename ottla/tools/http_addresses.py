"""The HTTP ports of brokers, which their option `metrics.listener` opens."""

from collections.abc import Mapping
from types import MappingProxyType

from ottla.client.admin import configs
from ottla.client.brokers import Brokers
from ottla.tools.text_files import is_number

Address = tuple[str, int]
_OPTION = "metrics.listener"
_ANY = ("0.0.0.0", "::", "[::]")  # noqa: S104 - compared, not bound


def http_addresses(
    brokers: Brokers, required: Mapping[str, str] = MappingProxyType({})
) -> dict[int, Address]:
    """Return the HTTP address of each broker that has one and the `required` options; ApiError if
    the options may not be read.
    """
    by_node = {}
    for node_id in brokers.node_ids():
        resource = configs.Resource(configs.ResourceType.BROKER, str(node_id))
        entries = configs.describe_config(brokers, resource, names=[_OPTION, *required])
        values = {entry.name: entry.value or "" for entry in entries}
        host, _, port = values.get(_OPTION, "").rpartition(":")
        is_chosen = all(values.get(name) == value for name, value in required.items())
        if is_chosen and _is_port(port):
            host_name = brokers.address(node_id).host if host in _ANY else host.strip("[]")
            by_node[node_id] = (host_name, int(port))
    return by_node


def parse_address(text: str) -> Address:
    """Return the host and the port of HOST:PORT; ValueError if it has another form."""
    host, _, port = text.rpartition(":")
    if not host or not _is_port(port):
        raise ValueError(f"{text!r} is not of the form HOST:PORT")
    return host.strip("[]"), int(port)


def _is_port(text: str) -> bool:
    return is_number(text, 17) and int(text) > 0
