"""The rights of the sender of one request."""

import ipaddress
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.image import ClusterImage
from ottla.net.connection import Connection
from ottla.security.acls import CLUSTER_NAME, AclOperation, ResourceType
from ottla.security.authorization import Requester
from ottla.server.authentication.identity import is_broker, is_known, principal_of
from ottla.server.authorization.authorizer import Authorizer
from ottla.server.authorization.trace import Trace
from ottla.server.current import Current

P = TypeVar("P")

_HOSTS_MAX = 4096
# Each connection remembers so many operations on topics.
_ALLOWED_MAX = 250
_BITS = 32
_SIGN = 1 << (_BITS - 1)
_ERRORS = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}


class Sender:
    """The sender of the requests of a connection, as long as its identity is the same.

    A broker that has proven to be one may do everything.
    """

    __slots__ = ("_allowed", "_generation", "identity", "is_broker", "requester")

    def __init__(self, connection: Connection) -> None:
        self.identity = connection.identity
        self.is_broker = is_broker(connection)
        self.requester = Requester(
            principal_of(connection), host_address(connection.peer_address[0])
        )
        # Operations on topics that this generation of the authorizer's lists allows.
        self._allowed: set[tuple[int, str]] = set()
        self._generation = -1

    def is_allowed(self, generation: int, operation: int, topic: str) -> bool:
        """Return True if `remember` was called since the lists have changed."""
        return generation == self._generation and (operation, topic) in self._allowed

    def remember(self, generation: int, operation: int, topic: str) -> None:
        """Remember that the sender may do the operation to the topic."""
        if generation != self._generation or len(self._allowed) >= _ALLOWED_MAX:
            self._generation = generation
            self._allowed.clear()
        self._allowed.add((operation, topic))


def sender_of(connection: Connection) -> Sender:
    """Return the sender of the requests of a connection."""
    known = connection.known_sender
    if known is not None and known.identity is connection.identity:
        sender: Sender = known
        return sender
    sender = Sender(connection)
    if sender.identity is None or is_known(connection):
        # An exchange that is not complete changes its own state.
        connection.known_sender = sender
    return sender


class Access:
    """The rights of the sender of a request.

    Refusals are reported with the API and the client id of the request. Without an API they are
    not, because the handler asks again. `trace` has the decisions about a request that is audited.
    """

    __slots__ = (
        "_current",
        "_is_broker",
        "api_key",
        "authorizer",
        "client_id",
        "connection",
        "requester",
        "trace",
        "version",
    )

    def __init__(
        self,
        authorizer: Authorizer,
        connection: Connection,
        version: int,
        current: Current,
        api_key: int | None = None,
        client_id: str | None = None,
    ) -> None:
        self.api_key = api_key
        self.client_id = client_id
        self.trace: Trace | None = None
        sender = sender_of(connection)
        self._is_broker = sender.is_broker
        self._current = current
        self.authorizer = authorizer
        self.connection = connection
        self.requester = sender.requester
        self.version = version

    @property
    def image(self) -> ClusterImage:
        """The cluster's metadata as of now."""
        return self._current.image

    @property
    def creates_topics(self) -> bool:
        """True if a request for the metadata of a topic may create it."""
        return self._current.options.boolean("auto.create.topics.enable")

    def may(self, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        """Return True if the sender may do the operation to the resource; report a refusal."""
        return (
            self._is_broker
            or self._allows(operation, resource_type, name)
            or self._refuse(operation, resource_type, name)
        )

    def _allows(self, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        if self.trace is None:
            return self.authorizer.allows(self.requester, operation, resource_type, name)
        decision = self.authorizer.decide(self.requester, operation, resource_type, name)
        self.trace.add(operation, resource_type, name, decision)
        return decision.is_allowed

    def _refuse(self, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        """Report a refusal and return False."""
        report = self.authorizer.on_denial
        if report is not None and self.api_key is not None:
            report(self, operation, resource_type, name)
        return False

    def rule(self, operation: AclOperation, resource_type: ResourceType, name: str) -> str:
        """Return the rule that allows or denies an operation, for the audit log."""
        return self.authorizer.decide(self.requester, operation, resource_type, name).rule

    def may_some(self, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Return True if the sender may do the operation to some resource; report a refusal."""
        return (
            self._is_broker
            or self.authorizer.allows_any(self.requester, operation, resource_type)
            or self._refuse(operation, resource_type, "")
        )

    def shows(
        self,
        resource_type: ResourceType,
        name: str,
        operation: AclOperation = AclOperation.DESCRIBE,
    ) -> bool:
        """Return True if a response may contain the resource, which the sender did not name."""
        return self._is_broker or self._allows(operation, resource_type, name)

    def shows_topic(self, name: str) -> bool:
        """Return True if a response may contain the topic, which the sender did not name."""
        return self.shows(ResourceType.TOPIC, name)

    def may_topic(self, operation: AclOperation, name: str) -> bool:
        """Return True if the sender may do the operation to the topic."""
        return self.may(operation, ResourceType.TOPIC, name)

    def may_cluster(self, operation: AclOperation) -> bool:
        """Return True if the sender may do the operation to the cluster."""
        return self.may(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def has_cluster_right(self, operation: AclOperation) -> bool:
        """Return the same without a report of a refusal, because another right may suffice."""
        return self.shows(ResourceType.CLUSTER, CLUSTER_NAME, operation)

    def require(
        self, operation: AclOperation, resource_type: ResourceType, name: str = CLUSTER_NAME
    ) -> None:
        """Raise the ApiError of the type unless the sender may do the operation."""
        if not self.may(operation, resource_type, name):
            raise ApiError(_ERRORS[resource_type])

    def readable(self, get: Callable[[str | bytes, int], P]) -> Callable[[str | bytes, int], P]:
        """Return `get`, which finds a partition by name or id of its topic, and check READ."""

        def checked(topic: str | bytes, partition: int) -> P:
            name = topic if isinstance(topic, str) else self.image.topic_names.get(topic)
            if name is None:
                # A leader may know the id before the metadata has it.
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
            if not self.may_topic(AclOperation.READ, name):
                raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            return get(topic, partition)

        return checked

    def operations(self, resource_type: ResourceType, name: str, supported: int) -> int:
        """Return which of the supported operations the sender may do, as a bit field (KIP-430)."""
        bits = sum(
            1 << operation
            for operation in AclOperation
            if supported >> operation & 1 and self.shows(resource_type, name, operation)
        )
        return bits - (1 << _BITS) if bits & _SIGN else bits


@lru_cache(maxsize=_HOSTS_MAX)
def host_address(host: str) -> str:
    """Return an address as Java writes it: IPv6 without abbreviation, a mapped IPv4 as IPv4."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if not isinstance(address, ipaddress.IPv6Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(f"{int(part, 16):x}" for part in address.exploded.partition("%")[0].split(":"))
