"""ACLs, SCRAM users and client quotas, as far as the cluster serves them.

Each function raises Unsupported if the cluster lacks the API; `supported` lists the served ones.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client.admin import acls, quotas, scram
from ottla.client.admin.acls import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)
from ottla.client.brokers import Brokers
from ottla.client.connection import Connection
from ottla.client.errors import Unsupported
from ottla.operations.access import changes
from ottla.operations.access.changes import entity_text
from ottla.operations.access.entries import check_addable, word_of, words_of
from ottla.operations.changes import Change, require_confirmation
from ottla.operations.survey.connections import ClusterConnection
from ottla.security.acls import permissions_for
from ottla.wire.messages.describe_acls import DescribeAclsRequest
from ottla.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from ottla.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)
from ottla.wire.schema import Message

T = TypeVar("T")
E = TypeVar("E", bound=Enum)


@dataclass(frozen=True, slots=True)
class Support:
    """The subjects that a cluster serves."""

    acls: bool
    users: bool
    quotas: bool


@dataclass(frozen=True, slots=True)
class Acl:
    """An access rule, in Kafka's words: resource type "topic", pattern "literal" or "prefixed",
    operation "read", permission "allow" or "deny".
    """

    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """A mechanism ("SCRAM-SHA-256", "SCRAM-SHA-512") of a user with its iterations."""

    mechanism: str
    iterations: int


@dataclass(frozen=True, slots=True)
class UserRow:
    """A user with SCRAM credentials; passwords are never readable."""

    name: str
    credentials: tuple[ScramCredential, ...]


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """Limits of an entity; its parts are "user", "client-id" or "ip", and None is the default.

    `limits` are by quota name: "producer_byte_rate", "consumer_byte_rate", "request_percentage",
    "controller_mutation_rate", "connection_creation_rate".
    """

    entity: Mapping[str, str | None]
    limits: Mapping[str, float]


def read_support(connection: ClusterConnection) -> Support:
    """Return the subjects that the cluster serves; ACLs only with an authorizer."""
    with connection.brokers() as brokers:
        offered = brokers.any_connection()
        served = {request: _is_served(offered, request) for request in _PROBES}
    has_acls = served[DescribeAclsRequest]
    if has_acls:
        try:
            list_acls(connection)
        except ApiError as error:
            if error.code is not ErrorCode.SECURITY_DISABLED:
                raise
            has_acls = False
    return Support(
        acls=has_acls,
        users=served[DescribeUserScramCredentialsRequest],
        quotas=served[DescribeClientQuotasRequest],
    )


def list_acls(connection: ClusterConnection) -> list[Acl]:
    """Return all ACLs, by resource and principal; ApiError SECURITY_DISABLED if there is no
    authorizer.
    """
    return sorted(
        map(_acl, _ask(connection, acls.describe_acls)),
        key=lambda acl: (acl.resource_type, acl.resource_name, acl.principal, acl.operation),
    )


def create_acl(connection: ClusterConnection, acl: Acl) -> Change:
    """Add an ACL; ConfigError for an unknown word, or a principal or host that never matches."""
    binding = _binding(acl)
    check_addable(binding)
    with connection.brokers() as brokers:
        (change,) = changes.add_entries(brokers, [binding], cluster=connection.name)
    return change


def last_allowing(rows: Iterable[Acl]) -> frozenset[Acl]:
    """Return the ACLs that allow an operation which no other ACL allows on their resource. Pure.

    READ, WRITE, DELETE and ALTER also allow DESCRIBE, and ALTER_CONFIGS allows DESCRIBE_CONFIGS.
    """
    allowing = [row for row in rows if row.permission == "allow"]
    counts = Counter(
        (row.resource_type, row.operation, row.pattern_type, row.resource_name) for row in allowing
    )
    # Its own key is one of those that allow it.
    return frozenset(row for row in allowing if sum(counts[key] for key in _allowing(row)) == 1)


def _allowing(acl: Acl) -> set[tuple[str, str, str, str]]:
    """Return type, operation and pattern of the ACLs that allow all that this one allows."""
    name, kind = acl.resource_name, acl.resource_type
    patterns = {("literal", "*"), (acl.pattern_type, name)}
    patterns |= {("prefixed", name[:end]) for end in range(1, len(name) + 1)}
    permissions = permissions_for(_member(AclOperation, acl.operation, "operation"))
    return {
        (kind, word_of(permission), *pattern) for permission in permissions for pattern in patterns
    }


def delete_acl(connection: ClusterConnection, acl: Acl, *, confirmation: str) -> Change:
    """Delete exactly this ACL; ConfigError if it does not exist, or unless `confirmation` is its
    principal.
    """
    require_confirmation(acl.principal, confirmation, verb="delete the ACL", kind="its principal")
    binding = _binding(acl)
    with connection.brokers() as brokers:
        removed = changes.remove_entries(brokers, [binding], cluster=connection.name)
    if not removed:
        raise ConfigError("there is no such ACL: it may have been deleted already")
    return removed[0]


def list_users(connection: ClusterConnection) -> list[UserRow]:
    """Return the users with SCRAM credentials by name."""
    credentials = _ask(connection, scram.describe_user_scram_credentials)
    return [
        UserRow(
            user,
            tuple(ScramCredential(row.mechanism.mechanism_name, row.iterations) for row in rows),
        )
        for user, rows in credentials.items()
    ]


def set_password(
    connection: ClusterConnection,
    user: str,
    password: str,
    *,
    mechanism: str = "SCRAM-SHA-512",
    iterations: int = 4096,
) -> Change:
    """Create a user or change its password; the cluster receives only the salted password."""
    if not user or not password:
        raise ConfigError("a user needs a name and a password")
    if not scram.ITERATIONS_MIN <= iterations <= scram.ITERATIONS_MAX:
        raise ConfigError(
            f"{iterations} iterations: use {scram.ITERATIONS_MIN} to {scram.ITERATIONS_MAX}"
        )
    row = scram.ScramUpsertion(user, scram.mechanism_of(mechanism), password, iterations)
    with connection.brokers() as brokers:
        return changes.set_password(brokers, row, cluster=connection.name)


def delete_credential(
    connection: ClusterConnection, user: str, mechanism: str, *, confirmation: str
) -> Change:
    """Delete one mechanism of a user; ConfigError unless `confirmation` is the user's name.

    ApiError RESOURCE_NOT_FOUND if the user does not have it.
    """
    require_confirmation(user, confirmation, verb="delete the credential", kind="the user's name")
    row = scram.ScramDeletion(user, scram.mechanism_of(mechanism))
    with connection.brokers() as brokers:
        return changes.delete_credential(brokers, row, cluster=connection.name)


def list_quotas(connection: ClusterConnection) -> list[QuotaRow]:
    """Return the limits of all entities."""
    rows = _ask(connection, quotas.describe_client_quotas)
    return [
        QuotaRow(row.entity, row.values)
        for row in sorted(rows, key=lambda row: entity_text(row.entity))
    ]


def alter_quota(
    connection: ClusterConnection,
    entity: Mapping[str, str | None],
    limits: Mapping[str, float | None],
) -> Change:
    """Set limits of an entity; None removes a limit. ApiError INVALID_REQUEST for unknown names."""
    if not entity or set(entity) - set(ENTITY_TYPES):
        raise ConfigError(
            f"an entity consists of {', '.join(ENTITY_TYPES)}: {dict(entity)} does not"
        )
    if not limits:
        raise ConfigError("the request changes no limit: set or remove at least one")
    assign = {name: limit for name, limit in limits.items() if limit is not None}
    delete = [name for name, limit in limits.items() if limit is None]
    with connection.brokers() as brokers:
        return changes.alter_quota(brokers, entity, assign, delete, cluster=connection.name)


ENTITY_TYPES = quotas.TYPES
_PROBES = (DescribeAclsRequest, DescribeUserScramCredentialsRequest, DescribeClientQuotasRequest)


def _is_served(connection: Connection, request: type[Message]) -> bool:
    try:
        connection.version_of(request)
    except Unsupported:
        return False
    return True


def _ask(connection: ClusterConnection, call: Callable[[Brokers], T]) -> T:
    """Return the result of a call that retries itself."""
    with connection.brokers() as brokers:
        return call(brokers)


def _binding(acl: Acl) -> AclBinding:
    """Return an ACL in the client's types; ConfigError for an unknown word."""
    return AclBinding(
        ResourcePattern(
            _member(ResourceType, acl.resource_type, "resource type"),
            acl.resource_name,
            _member(PatternType, acl.pattern_type, "pattern type"),
        ),
        AccessControlEntry(
            acl.principal,
            acl.host,
            _member(AclOperation, acl.operation, "operation"),
            _member(PermissionType, acl.permission, "permission"),
        ),
    )


def _acl(binding: AclBinding) -> Acl:
    return Acl(**words_of(binding))


# These are for filters, and for numbers that the client does not know.
_NOT_STORED = ("unknown", "any", "match")


def _members(kind: type[E]) -> dict[str, E]:
    return {word_of(member): member for member in kind if word_of(member) not in _NOT_STORED}


def _member(kind: type[E], word: str, subject: str) -> E:
    members = _members(kind)
    if word not in members:
        raise ConfigError(f"{word!r} is not a known {subject}: choose one of {', '.join(members)}")
    return members[word]


# The words of ACLs, in the order of Kafka's numbers.
RESOURCE_TYPES = tuple(_members(ResourceType))
PATTERN_TYPES = tuple(_members(PatternType))
OPERATIONS = tuple(_members(AclOperation))
PERMISSIONS = tuple(_members(PermissionType))
