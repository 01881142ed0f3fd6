"""The entities and keys of quotas, and their notation in the tree and in the protocol. Pure.

Follows KIP-546, KIP-599 and KIP-612; the checks are ClientQuotaControlManager's of Kafka 4.3, the
znodes are Kafka 3.9's.
"""

import ipaddress
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.loading import deferred_module
from ottla.cluster.znodes import ConfigNode
from ottla.security.scram import ScramMechanism

if TYPE_CHECKING:
    import decimal
else:
    decimal = deferred_module("decimal")

USER, CLIENT_ID, IP = "user", "client-id", "ip"
# Types of entities whose settings in the tree may be quotas.
QUOTA_TYPES = (ConfigNode.USERS, ConfigNode.CLIENTS, ConfigNode.IPS)
# The user of an unauthenticated connection.
ANONYMOUS = "ANONYMOUS"

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"

# The largest value of each key that is an integer; None if fractions are allowed.
_CLIENT_KEYS: Mapping[str, int | None] = {
    PRODUCER_BYTE_RATE: 2**63 - 1,
    CONSUMER_BYTE_RATE: 2**63 - 1,
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
}
_IP_KEYS: Mapping[str, int | None] = {CONNECTION_CREATION_RATE: 2**31 - 1}
_CREDENTIALS = frozenset(mechanism.mechanism_name for mechanism in ScramMechanism)
_FRACTION = 1e-6
_CLIENTS_OF_USER = f"/{ConfigNode.CLIENTS}/"
# Java writes doubles with an exponent from the first bound on, and below the second.
_PLAIN_END, _PLAIN_START = 1e7, 1e-3

# The name of a default; "" is a type that is not named.
Name = str | None
Values = Mapping[str, float]


class Entity(NamedTuple):
    """A user, a client id, both, or an address; None is the default of the type, "" is not named."""

    user: Name = ""
    client_id: Name = ""
    ip: Name = ""

    def names(self) -> dict[str, Name]:
        """Return the names of the types that are named, in the order of Kafka's responses."""
        names_by_type = {CLIENT_ID: self.client_id, USER: self.user, IP: self.ip}
        return {kind: name for kind, name in names_by_type.items() if name != ""}


def entity_of(names: Mapping[str, Name]) -> Entity:
    """Return the entity that a request names; raises ApiError INVALID_REQUEST if it is invalid."""
    if not names:
        raise _invalid("Name a user, a client-id or an ip.")
    for kind, name in names.items():
        if kind not in (USER, CLIENT_ID, IP):
            raise _invalid(f"There are no quotas of type {kind}; use user, client-id or ip.")
        if name == "":
            raise _invalid(f"The name of a {kind} must not be empty; null is the default.")
    if IP in names:
        if len(names) > 1:
            raise _invalid("An ip cannot be combined with a user or client-id.")
        if names[IP] is not None and not _is_address(str(names[IP])):
            raise _invalid(f"{names[IP]} is not an IP address.")
    return Entity(names.get(USER, ""), names.get(CLIENT_ID, ""), names.get(IP, ""))


def checked_text(entity: Entity, key: str, value: float) -> str:
    """Return a limit as written in the tree; raises ApiError INVALID_REQUEST if it is invalid."""
    keys = keys_of(entity)
    if key not in keys:
        raise _invalid(f"Unknown quota {key}; use one of {', '.join(keys)}.")
    if not value > 0:
        raise _invalid(f"The quota {key} must be greater than 0.")
    largest = keys[key]
    if largest is None:
        return _java_double(value)
    # The double nearest to the largest integer may be greater by one.
    if value > float(largest):
        raise _invalid(f"The quota {key} must be at most {largest}.")
    if value % 1.0 > _FRACTION:
        raise _invalid(f"The quota {key} must be a whole number.")
    return str(min(int(value), largest))


def is_removable(entity: Entity, key: str) -> bool:
    """Return True if the entity can have a quota with this key.

    As in Kafka, removing any other key changes nothing. It must not: a user's quotas are stored
    beside the credentials, which another right protects. To name one is an ApiError
    INVALID_REQUEST.
    """
    if key in _CREDENTIALS:
        raise _invalid(f"{key} is not a quota but a credential: use AlterUserScramCredentials.")
    return key in keys_of(entity)


def keys_of(entity: Entity) -> Mapping[str, int | None]:
    """Return the keys of the quotas that an entity can have."""
    return _CLIENT_KEYS if entity.ip == "" else _IP_KEYS


def values_of(entity: Entity, settings: Mapping[str, str]) -> dict[str, float]:
    """Return the limits among an entity's settings; a user also has credentials there."""
    values = {}
    for key in keys_of(entity):
        try:
            value = float(settings[key])
        except (KeyError, ValueError):
            continue
        if not math.isnan(value):
            values[key] = value
    return values


def tree_path(entity: Entity) -> tuple[str, str]:
    """Return the entity's type in the tree, and its path below that."""
    if entity.ip != "":
        return ConfigNode.IPS, ConfigNode.sanitize(entity.ip)
    if entity.user == "":
        return ConfigNode.CLIENTS, ConfigNode.sanitize(entity.client_id)
    user = ConfigNode.sanitize(entity.user)
    if entity.client_id == "":
        return ConfigNode.USERS, user
    return ConfigNode.USERS, f"{user}{_CLIENTS_OF_USER}{ConfigNode.sanitize(entity.client_id)}"


def entity_at(entity_type: str, path: str) -> Entity:
    """Return the entity whose settings are at this path of the tree."""
    if entity_type == ConfigNode.IPS:
        return Entity(ip=ConfigNode.desanitize(path))
    if entity_type == ConfigNode.CLIENTS:
        return Entity(client_id=ConfigNode.desanitize(path))
    user, _, client_id = path.partition(_CLIENTS_OF_USER)
    if not client_id:
        return Entity(ConfigNode.desanitize(user))
    return Entity(ConfigNode.desanitize(user), ConfigNode.desanitize(client_id))


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _java_double(value: float) -> str:
    if _PLAIN_START <= value < _PLAIN_END:
        return repr(float(value))
    if math.isinf(value):
        return "Infinity"
    sign, digits, exponent = decimal.Decimal(repr(value)).normalize().as_tuple()
    assert not sign and isinstance(exponent, int)
    mantissa = "".join(map(str, digits[1:])) or "0"
    return f"{digits[0]}.{mantissa}E{exponent + len(digits) - 1}"


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)
