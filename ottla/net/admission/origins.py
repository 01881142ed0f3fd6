"""The origin of a peer for bounds on strangers. Pure."""

import ipaddress
from functools import lru_cache

_CACHED_MAX = 4096
# A provider assigns at least such a network to one customer (RFC 6177).
_PREFIX_BITS = 64


def origin_of(host: str) -> str:
    """Return an IPv4 address as it is, and of IPv6 the network of 64 bits, which has one owner."""
    return host if ":" not in host else _network_of(host)


@lru_cache(maxsize=_CACHED_MAX)
def _network_of(host: str) -> str:
    try:
        address = ipaddress.IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((address, _PREFIX_BITS), strict=False))
