"""ACLs, SCRAM users and client quotas, as far as the cluster serves them.

Each function raises Unsupported if the cluster lacks the API; `supported` lists the served ones.
"""

import hashlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import NamedTuple, TypeVar

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client.admin.answers import check
from ottla.client.brokers import Brokers
from ottla.client.connection import Connection
from ottla.client.errors import Unsupported
from ottla.console.model.changes import MASKED, Change
from ottla.console.model.connections import ClusterConnection
from ottla.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    OpData,
)
from ottla.wire.messages.alter_client_quotas import EntityData as QuotaEntity
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from ottla.wire.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from ottla.wire.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from ottla.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from ottla.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from ottla.wire.schema import Message

T = TypeVar("T")


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
    any_code = 1
    request = DescribeAclsRequest(
        resource_type_filter=any_code,
        resource_name_filter=None,
        pattern_type_filter=any_code,
        principal_filter=None,
        host_filter=None,
        operation=any_code,
        permission_type=any_code,
    )

    def attempt(brokers: Brokers) -> list[Acl]:
        response = brokers.ask(request, DescribeAclsResponse)
        check(response.error_code, response.error_message)
        return sorted(
            (_acl(resource, row) for resource in response.resources for row in resource.acls),
            key=lambda acl: (acl.resource_type, acl.resource_name, acl.principal, acl.operation),
        )

    return _retried(connection, attempt)


def create_acl(connection: ClusterConnection, acl: Acl) -> Change:
    """Add an ACL; ConfigError for an unknown word."""
    codes = _codes_of(acl)
    creation = AclCreation(
        resource_type=codes.resource_type,
        resource_name=acl.resource_name,
        resource_pattern_type=codes.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=codes.operation,
        permission_type=codes.permission,
    )

    def attempt(brokers: Brokers) -> None:
        request = CreateAclsRequest(creations=[creation])
        (row,) = brokers.ask_controller(request, CreateAclsResponse).results
        check(row.error_code, row.error_message)

    _retried(connection, attempt)
    return Change(connection.name, "acl.create", acl.resource_name, after=_audited(acl))


def delete_acl(connection: ClusterConnection, acl: Acl) -> Change:
    """Delete exactly this ACL; ConfigError if there is none."""
    codes = _codes_of(acl)
    exact = DeleteAclsFilter(
        resource_type_filter=codes.resource_type,
        resource_name_filter=acl.resource_name,
        pattern_type_filter=codes.pattern_type,
        principal_filter=acl.principal,
        host_filter=acl.host,
        operation=codes.operation,
        permission_type=codes.permission,
    )

    def attempt(brokers: Brokers) -> int:
        request = DeleteAclsRequest(filters=[exact])
        (result,) = brokers.ask_controller(request, DeleteAclsResponse).filter_results
        check(result.error_code, result.error_message)
        for row in result.matching_acls:
            check(row.error_code, row.error_message)
        return len(result.matching_acls)

    if not _retried(connection, attempt):
        raise ConfigError("there is no such ACL: it may have been deleted already")
    return Change(connection.name, "acl.delete", acl.resource_name, before=_audited(acl))


def list_users(connection: ClusterConnection) -> list[UserRow]:
    """Return the users with SCRAM credentials by name."""

    def attempt(brokers: Brokers) -> list[UserRow]:
        request = DescribeUserScramCredentialsRequest(users=None)
        response = brokers.ask_controller(request, DescribeUserScramCredentialsResponse)
        check(response.error_code, response.error_message)
        return [
            UserRow(
                row.user,
                tuple(
                    ScramCredential(_MECHANISM_NAMES[item.mechanism], item.iterations)
                    for item in row.credential_infos
                    if item.mechanism in _MECHANISM_NAMES
                ),
            )
            for row in sorted(response.results, key=lambda row: row.user)
            if not row.error_code
        ]

    return _retried(connection, attempt)


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
    if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        raise ConfigError(f"{iterations} iterations: use {ITERATIONS_MIN} to {ITERATIONS_MAX}")
    code, digest = _mechanism(mechanism)
    salt = secrets.token_bytes(_SALT_BYTES)
    upsertion = ScramCredentialUpsertion(
        name=user,
        mechanism=code,
        iterations=iterations,
        salt=salt,
        salted_password=hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations),
    )
    _alter_users(connection, AlterUserScramCredentialsRequest(upsertions=[upsertion]))
    after = {"mechanism": mechanism, "iterations": str(iterations), "password": MASKED}
    return Change(connection.name, "user.set-password", user, after=after)


def delete_credential(connection: ClusterConnection, user: str, mechanism: str) -> Change:
    """Delete one mechanism of a user; ApiError RESOURCE_NOT_FOUND if there is none."""
    code, _ = _mechanism(mechanism)
    deletion = ScramCredentialDeletion(name=user, mechanism=code)
    _alter_users(connection, AlterUserScramCredentialsRequest(deletions=[deletion]))
    return Change(connection.name, "user.delete-credential", user, before={"mechanism": mechanism})


def list_quotas(connection: ClusterConnection) -> list[QuotaRow]:
    """Return the limits of all entities."""

    def attempt(brokers: Brokers) -> list[QuotaRow]:
        request = DescribeClientQuotasRequest(components=[], strict=False)
        response = brokers.ask(request, DescribeClientQuotasResponse)
        check(response.error_code, response.error_message)
        return [
            QuotaRow(
                {part.entity_type: part.entity_name for part in entry.entity},
                {row.key: row.value for row in entry.values},
            )
            for entry in response.entries or []
        ]

    rows = _retried(connection, attempt)
    return sorted(rows, key=lambda row: _entity_text(row.entity))


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
        raise ConfigError("there is nothing to change: set or remove at least one limit")
    known = {_entity_text(row.entity): row.limits for row in list_quotas(connection)}
    before = known.get(_entity_text(entity), {})
    entry = AlterClientQuotasRequestEntryData(
        entity=[QuotaEntity(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[
            OpData(key=name, value=0.0 if limit is None else limit, remove=limit is None)
            for name, limit in limits.items()
        ],
    )

    def attempt(brokers: Brokers) -> None:
        request = AlterClientQuotasRequest(entries=[entry])
        (row,) = brokers.ask_controller(request, AlterClientQuotasResponse).entries
        check(row.error_code, row.error_message)

    _retried(connection, attempt)
    return Change(
        connection.name,
        "quota.alter",
        _entity_text(entity),
        before={name: str(before[name]) for name in limits if name in before},
        after={name: str(limit) for name, limit in limits.items() if limit is not None},
    )


ITERATIONS_MIN, ITERATIONS_MAX = 4096, 16_384
ENTITY_TYPES = ("user", "client-id", "ip")
_SALT_BYTES = 16
_PROBES = (DescribeAclsRequest, DescribeUserScramCredentialsRequest, DescribeClientQuotasRequest)

# org.apache.kafka.common.resource and org.apache.kafka.common.acl, in the tools' words.
_RESOURCE_TYPES = {
    "topic": 2,
    "group": 3,
    "cluster": 4,
    "transactional-id": 5,
    "delegation-token": 6,
    "user": 7,
}
_PATTERN_TYPES = {"literal": 3, "prefixed": 4}
_OPERATIONS = {
    "all": 2,
    "read": 3,
    "write": 4,
    "create": 5,
    "delete": 6,
    "alter": 7,
    "describe": 8,
    "cluster-action": 9,
    "describe-configs": 10,
    "alter-configs": 11,
    "idempotent-write": 12,
    "create-tokens": 13,
    "describe-tokens": 14,
    "two-phase-commit": 15,
}
_PERMISSIONS = {"deny": 2, "allow": 3}
_MECHANISMS = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}
_MECHANISM_NAMES = {code: name for name, (code, _) in _MECHANISMS.items()}


def _is_served(connection: Connection, request: type[Message]) -> bool:
    try:
        connection.version_of(request)
    except Unsupported:
        return False
    return True


def _retried(connection: ClusterConnection, attempt: Callable[[Brokers], T]) -> T:
    """Return the result of an attempt, which is repeated while the cluster settles."""
    with connection.brokers() as brokers:
        return brokers.retry(lambda: attempt(brokers))


class _Codes(NamedTuple):
    """The words of an ACL as the protocol's numbers."""

    resource_type: int
    pattern_type: int
    operation: int
    permission: int


def _codes_of(acl: Acl) -> _Codes:
    """Return the numbers of an ACL; ConfigError for an unknown word."""
    return _Codes(
        _code(_RESOURCE_TYPES, acl.resource_type, "resource type"),
        _code(_PATTERN_TYPES, acl.pattern_type, "pattern type"),
        _code(_OPERATIONS, acl.operation, "operation"),
        _code(_PERMISSIONS, acl.permission, "permission"),
    )


def _acl(resource: DescribeAclsResource, row: AclDescription) -> Acl:
    return Acl(
        resource_type=_word(_RESOURCE_TYPES, resource.resource_type),
        resource_name=resource.resource_name,
        pattern_type=_word(_PATTERN_TYPES, resource.pattern_type),
        principal=row.principal,
        host=row.host,
        operation=_word(_OPERATIONS, row.operation),
        permission=_word(_PERMISSIONS, row.permission_type),
    )


def _word(codes: Mapping[str, int], code: int) -> str:
    return next((word for word, known in codes.items() if known == code), f"unknown ({code})")


def _code(codes: Mapping[str, int], word: str, subject: str) -> int:
    if word not in codes:
        raise ConfigError(f"{word!r} is not a known {subject}: choose one of {', '.join(codes)}")
    return codes[word]


def _mechanism(name: str) -> tuple[int, str]:
    if name not in _MECHANISMS:
        raise ConfigError(
            f"{name!r} is not a known mechanism: choose one of {', '.join(_MECHANISMS)}"
        )
    return _MECHANISMS[name]


def _alter_users(connection: ClusterConnection, request: AlterUserScramCredentialsRequest) -> None:
    def attempt(brokers: Brokers) -> None:
        for row in brokers.ask_controller(request, AlterUserScramCredentialsResponse).results:
            check(row.error_code, row.error_message, subject=f"User {row.user!r}")

    _retried(connection, attempt)


def _audited(acl: Acl) -> dict[str, str]:
    return asdict(acl)


def _entity_text(entity: Mapping[str, str | None]) -> str:
    return ", ".join(
        f"{kind} {'(default)' if name is None else name}" for kind, name in sorted(entity.items())
    )
