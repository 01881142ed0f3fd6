"""The changes of access: access control lists, credentials and delegation tokens. Pure.

No password, key or HMAC is part of a change.
"""

from collections.abc import Iterator
from typing import Any

from ottla.security.acls import AclBinding, ResourceType
from ottla.security.scram import ScramMechanism
from ottla.server.audit.changes import AuditedChange, Exchange, Right, failure
from ottla.server.audit.record import Details, Resource

_USER = ResourceType.USER
_TOKEN = ResourceType.DELEGATION_TOKEN.name


def _acl(binding: AclBinding, code: int) -> AuditedChange:
    pattern, entry = binding
    kind, name = pattern.resource_type.name, pattern.name
    details: Details = {
        "principal": entry.principal,
        "host": entry.host,
        "operation": entry.operation.name,
        "permission": entry.permission_type.name,
    }
    resource = Resource("ACL", f"{pattern.pattern_type.name} {kind} {name}")
    return AuditedChange(resource, code, details)


def _binding(row: Any, pattern_type: int) -> AclBinding:
    return AclBinding.of_codes(
        (row.resource_type, row.resource_name, pattern_type),
        (row.principal, row.host, row.operation, row.permission_type),
    )


def created_acls(exchange: Exchange) -> Iterator[AuditedChange]:
    """Yield the entries of CreateAcls."""
    rows = zip(exchange.request.creations, exchange.response.results, strict=True)
    for creation, result in rows:
        yield _acl(_binding(creation, creation.resource_pattern_type), result.error_code)


def deleted_acls(exchange: Exchange) -> Iterator[AuditedChange]:
    """Yield the entries that DeleteAcls has removed, and filters that have failed."""
    for result in exchange.response.filter_results:
        if result.error_code:
            yield failure(result.error_code)
        for row in result.matching_acls:
            yield _acl(_binding(row, row.pattern_type), row.error_code)


def altered_credentials(exchange: Exchange) -> Iterator[AuditedChange]:
    """Yield the users of AlterUserScramCredentials; null is a credential that was deleted."""
    details: dict[str, dict[str, str | None]] = {}
    for row in exchange.request.deletions:
        details.setdefault(row.name, {})[_mechanism(row.mechanism)] = None
    for row in exchange.request.upsertions:
        changed = details.setdefault(row.name, {})
        changed[_mechanism(row.mechanism)] = f"set, {row.iterations} iterations"
    for result in exchange.response.results:
        resource = Resource(_USER.name, result.user)
        yield AuditedChange(resource, result.error_code, details.get(result.user, {}))


def _mechanism(code: int) -> str:
    known = ScramMechanism.of_code(code)
    return f"mechanism {code}" if known is None else known.mechanism_name


def created_token(exchange: Exchange) -> Iterator[AuditedChange]:
    """Yield the token of CreateDelegationToken."""
    request, response = exchange.request, exchange.response
    owner = f"{response.principal_type}:{response.principal_name}"
    renewers = [f"{row.principal_type}:{row.principal_name}" for row in request.renewers]
    details: Details = {"owner": owner, "renewers": renewers}
    right: Right = (_USER, owner)
    yield AuditedChange(Resource(_TOKEN, response.token_id), response.error_code, details, right)


def renewed_token(exchange: Exchange) -> Iterator[AuditedChange]:
    """Yield the token of RenewDelegationToken."""
    details: Details = {"expiry_ms": exchange.response.expiry_timestamp_ms}
    yield AuditedChange(Resource(_TOKEN, exchange.subject), exchange.response.error_code, details)


def expired_token(exchange: Exchange) -> Iterator[AuditedChange]:
    """Yield the token of ExpireDelegationToken."""
    is_deleted = exchange.request.expiry_time_period_ms < 0
    details: Details = (
        {"deleted": True} if is_deleted else {"expiry_ms": exchange.response.expiry_timestamp_ms}
    )
    yield AuditedChange(Resource(_TOKEN, exchange.subject), exchange.response.error_code, details)


def token_subject(broker: Any, request: Any) -> str:
    """Return the id of the token whose HMAC a request names; empty if it is not known."""
    tokens = broker.logins.tokens
    return "" if tokens is None else tokens.id_of(bytes(request.hmac))
