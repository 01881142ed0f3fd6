"""The access control entries that a request adds or removes."""

from collections.abc import Iterable, Mapping
from enum import Enum
from ipaddress import ip_address

from ottla.base.errors import ConfigError
from ottla.client.admin import acls
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
from ottla.operations.access.patterns import CLUSTER, AclRequest, AclRequestError, patterns_of
from ottla.security.acls import WILDCARD, operations_on, problem_of

_O = AclOperation
# The operations that producers and consumers need, by the type of the resource.
_PRODUCER = {
    ResourceType.TOPIC: (_O.WRITE, _O.DESCRIBE, _O.CREATE),
    ResourceType.TRANSACTIONAL_ID: (_O.WRITE, _O.DESCRIBE),
}
_CONSUMER = {ResourceType.TOPIC: (_O.READ, _O.DESCRIBE), ResourceType.GROUP: (_O.READ,)}
Entries = dict[ResourcePattern, list[AccessControlEntry]]


def entries_of(request: AclRequest) -> Entries:
    """Return the entries by resource; without principals, each resource has an empty list.

    Raises ValueError for a principal without a type, AclRequestError for other mistakes.
    """
    entries: Entries = {}
    if not request.is_for_producer and not request.is_for_consumer:
        operations = [_operation(text) for text in request.operations] or [_O.ALL]
        listed = [*_allowed(request, operations), *_denied(request, operations)]
        entries = {pattern: listed for pattern in _patterns(request)}
    if request.is_for_producer:
        entries |= _of_role(request, _PRODUCER)
        if request.is_idempotent:
            entries[CLUSTER] = _allowed(request, [_O.IDEMPOTENT_WRITE])
    if request.is_for_consumer:
        for pattern, more in _of_role(request, _CONSUMER).items():
            entries[pattern] = list(dict.fromkeys([*entries.get(pattern, ()), *more]))
    _check_operations(entries)
    return entries


def entries_to_add(request: AclRequest) -> Entries:
    """Return the entries by resource; raises as `entries_of`, and if no principal is named."""
    if request.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise AclRequestError(
            f"A '--resource-pattern-type' value of '{request.pattern_type.name}' is not valid when "
            "adding acls."
        )
    entries = entries_of(request)
    if not all(entries.values()):
        raise AclRequestError(
            "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs."
        )
    return entries


def check_roles(request: AclRequest) -> None:
    """Raise AclRequestError if --producer, --consumer or --idempotent lacks what it needs."""
    kinds = {resource_type for resource_type, _ in request.resources}
    if request.is_for_producer and ResourceType.TOPIC not in kinds:
        raise AclRequestError("With --producer you must specify a --topic")
    if request.is_idempotent and not request.is_for_producer:
        raise AclRequestError("The --idempotent option is only available if --producer is set")
    if not request.is_for_consumer:
        return
    has_others = request.is_for_cluster or ResourceType.TRANSACTIONAL_ID in kinds
    is_complete = {ResourceType.TOPIC, ResourceType.GROUP} <= kinds
    if not is_complete or (has_others and not request.is_for_producer):
        raise AclRequestError(
            "With --consumer you must specify a --topic and a --group and no --cluster or "
            "--transactional-id option should be specified."
        )


def divided(
    brokers: Brokers, pattern: ResourcePattern, entries: Iterable[AccessControlEntry]
) -> tuple[list[AclBinding], list[AclBinding]]:
    """Return the bindings of a resource that exist, and those that are missing."""
    known = set(acls.describe_acls(brokers, AclBinding(pattern)))
    bindings = [AclBinding(pattern, entry) for entry in entries]
    return (
        [binding for binding in bindings if binding in known],
        [binding for binding in bindings if binding not in known],
    )


def filters_of(pattern: ResourcePattern, entries: Iterable[AccessControlEntry]) -> list[AclBinding]:
    """Return filters that select these entries of a resource, or all entries if none is given."""
    return [AclBinding(pattern, entry) for entry in [*entries] or [AccessControlEntry()]]


def bindings_of(brokers: Brokers, request: AclRequest) -> list[AclBinding]:
    """Return the bindings of the named resources, or of all if none is named."""
    patterns = patterns_of(request) or [ResourcePattern(ResourceType.ANY, None, PatternType.ANY)]
    bindings: dict[AclBinding, None] = {}
    for pattern in patterns:
        bindings |= dict.fromkeys(acls.describe_acls(brokers, AclBinding(pattern)))
    return list(bindings)


def words_of(binding: AclBinding) -> dict[str, str]:
    """Return a binding in lower-case words, as changes and the console have it. Pure."""
    pattern, entry = binding
    return {
        "resource_type": word_of(pattern.resource_type),
        "resource_name": pattern.name or "",
        "pattern_type": word_of(pattern.pattern_type),
        "principal": entry.principal or "",
        "host": entry.host or "",
        "operation": word_of(entry.operation),
        "permission": word_of(entry.permission_type),
    }


def word_of(member: Enum) -> str:
    """Return the lower-case word of a name such as TRANSACTIONAL_ID: `transactional-id`."""
    return member.name.lower().replace("_", "-")


def row_of_words(words: Mapping[str, str]) -> dict[str, str | None]:
    """Return the row of `row_of` for the words of a binding. Pure."""
    names = {
        name: words[name].upper().replace("-", "_")
        for name in ("resource_type", "pattern_type", "operation", "permission")
    }
    return {
        "resource_type": names["resource_type"],
        "name": words["resource_name"],
        "pattern_type": names["pattern_type"],
        "principal": words["principal"],
        "host": words["host"],
        "operation": names["operation"],
        "permission_type": names["permission"],
    }


def row_of(binding: AclBinding) -> dict[str, str | None]:
    """Return a binding with the words of Apache Kafka."""
    pattern, entry = binding
    return {
        "resource_type": pattern.resource_type.name,
        "name": pattern.name,
        "pattern_type": pattern.pattern_type.name,
        "principal": entry.principal,
        "host": entry.host,
        "operation": entry.operation.name,
        "permission_type": entry.permission_type.name,
    }


def _patterns(request: AclRequest) -> list[ResourcePattern]:
    patterns = patterns_of(request)
    if not patterns:
        raise AclRequestError(
            "You must provide at least one resource: --topic <topic> or --cluster or --group "
            "<group> or --delegation-token <Delegation Token ID>"
        )
    return patterns


def _of_role(
    request: AclRequest, operations: dict[ResourceType, tuple[AclOperation, ...]]
) -> Entries:
    return {
        pattern: _allowed(request, operations[pattern.resource_type])
        for pattern in _patterns(request)
        if pattern.resource_type in operations
    }


def _allowed(request: AclRequest, operations: Iterable[AclOperation]) -> list[AccessControlEntry]:
    return _entries(request.allow_principals, request.allow_hosts, operations, PermissionType.ALLOW)


def _denied(request: AclRequest, operations: Iterable[AclOperation]) -> list[AccessControlEntry]:
    return _entries(request.deny_principals, request.deny_hosts, operations, PermissionType.DENY)


def _entries(
    principals: Iterable[str],
    hosts: Iterable[str],
    operations: Iterable[AclOperation],
    permission: PermissionType,
) -> list[AccessControlEntry]:
    named_hosts = [text.strip() for text in hosts] or ["*"]
    entries = [
        AccessControlEntry(principal, host, operation, permission)
        for principal in [principal_of(text) for text in principals]
        for operation in operations
        for host in named_hosts
    ]
    return list(dict.fromkeys(entries))


def principal_of(text: str) -> str:
    """Return a principal without surrounding spaces; ValueError if it has no type."""
    text = text.strip()
    if ":" not in text:
        raise ValueError(f"expected a string in format principalType:principalName but got {text}")
    return text


def _operation(text: str) -> AclOperation:
    # As SecurityUtils.operation: the name without underscores, in any case.
    bare = text.strip().upper()
    names = {operation.name.replace("_", ""): operation for operation in AclOperation}
    return names.get(bare, AclOperation.UNKNOWN)


def _check_operations(entries: Entries) -> None:
    for pattern, listed in entries.items():
        for entry in listed:
            if reason := _unsupported(pattern, entry):
                raise AclRequestError(reason)


def _unsupported(pattern: ResourcePattern, entry: AccessControlEntry) -> str:
    """Return the reason why entries of a type of resource cannot have an operation, or nothing."""
    valid = operations_on(pattern.resource_type)
    if entry.operation in valid:
        return ""
    names = ", ".join(operation.name for operation in valid)
    return f"ResourceType {pattern.resource_type.name} only supports operations [{names}]"


def check_addable(binding: AclBinding) -> None:
    """Raise ConfigError for an entry that brokers refuse, or that never has an effect.

    Clients are known by the address of their host and by a principal with a type and a name.
    """
    pattern, entry = binding
    principal, host = entry.principal or "", entry.host or ""
    kind, colon, name = principal.partition(":")
    if not (kind and colon and name):
        raise ConfigError(
            f"principal {principal!r} has no type or no name: write it as in User:ann"
        )
    if reason := problem_of(binding) or _unsupported(pattern, entry):
        raise ConfigError(reason)
    if host == WILDCARD:
        return
    try:
        ip_address(host)
    except ValueError:
        raise ConfigError(
            f"host {host!r} is neither * nor an IP address, which is all that brokers compare"
        ) from None
