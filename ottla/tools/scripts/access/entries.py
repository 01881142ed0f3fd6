"""The access control entries that a command line of `kafka-acls` adds or removes."""

from collections.abc import Iterable

from ottla.client.admin.acls import (
    AccessControlEntry,
    AclOperation,
    PermissionType,
    ResourcePattern,
    ResourceType,
)
from ottla.tools.scripts.access.patterns import CLUSTER, patterns_of
from ottla.tools.scripts.exits import UsageError
from ottla.tools.scripts.flags import Options

_O = AclOperation
# As AclEntry.supportedOperations of Apache Kafka.
_SUPPORTED = {
    ResourceType.TOPIC: (_O.READ, _O.WRITE, _O.CREATE, _O.DESCRIBE, _O.DELETE, _O.ALTER,
                         _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS),
    ResourceType.GROUP: (_O.READ, _O.DESCRIBE, _O.DELETE, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS),
    ResourceType.CLUSTER: (_O.CREATE, _O.CLUSTER_ACTION, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS,
                           _O.IDEMPOTENT_WRITE, _O.ALTER, _O.DESCRIBE),
    ResourceType.TRANSACTIONAL_ID: (_O.DESCRIBE, _O.WRITE, _O.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: (_O.DESCRIBE,),
    ResourceType.USER: (_O.CREATE_TOKENS, _O.DESCRIBE_TOKENS),
}  # fmt: skip
# What a producer and a consumer need, by the type of the resource.
_PRODUCER = {
    ResourceType.TOPIC: (_O.WRITE, _O.DESCRIBE, _O.CREATE),
    ResourceType.TRANSACTIONAL_ID: (_O.WRITE, _O.DESCRIBE),
}
_CONSUMER = {ResourceType.TOPIC: (_O.READ, _O.DESCRIBE), ResourceType.GROUP: (_O.READ,)}
Entries = dict[ResourcePattern, list[AccessControlEntry]]


def entries_of(options: Options) -> Entries:
    """Return the entries by resource; without principals, each resource has an empty list.

    Raises ValueError for a principal without a type, UsageError for other mistakes.
    """
    entries: Entries = {}
    if "producer" not in options and "consumer" not in options:
        operations = [_operation(text) for text in options.all("operation")] or [_O.ALL]
        listed = [*_allowed(options, operations), *_denied(options, operations)]
        entries = {pattern: listed for pattern in _patterns(options)}
    if "producer" in options:
        entries |= _of_role(options, _PRODUCER)
        if "idempotent" in options:
            entries[CLUSTER] = _allowed(options, [_O.IDEMPOTENT_WRITE])
    if "consumer" in options:
        for pattern, more in _of_role(options, _CONSUMER).items():
            entries[pattern] = list(dict.fromkeys([*entries.get(pattern, ()), *more]))
    _check_operations(entries)
    return entries


def _patterns(options: Options) -> list[ResourcePattern]:
    patterns = patterns_of(options)
    if not patterns:
        raise UsageError(
            "You must provide at least one resource: --topic <topic> or --cluster or --group "
            "<group> or --delegation-token <Delegation Token ID>"
        )
    return patterns


def _of_role(options: Options, operations: dict[ResourceType, tuple[AclOperation, ...]]) -> Entries:
    return {
        pattern: _allowed(options, operations[pattern.resource_type])
        for pattern in _patterns(options)
        if pattern.resource_type in operations
    }


def _allowed(options: Options, operations: Iterable[AclOperation]) -> list[AccessControlEntry]:
    return _entries(options, PermissionType.ALLOW, operations)


def _denied(options: Options, operations: Iterable[AclOperation]) -> list[AccessControlEntry]:
    return _entries(options, PermissionType.DENY, operations)


def _entries(
    options: Options, permission: PermissionType, operations: Iterable[AclOperation]
) -> list[AccessControlEntry]:
    word = permission.name.lower()
    principals = [principal_of(text) for text in options.all(f"{word}-principal")]
    hosts = [text.strip() for text in options.all(f"{word}-host")] or ["*"]
    entries = [
        AccessControlEntry(principal, host, operation, permission)
        for principal in principals
        for operation in operations
        for host in hosts
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
        valid = (*_SUPPORTED.get(pattern.resource_type, ()), _O.ALL)
        if any(entry.operation not in valid for entry in listed):
            names = ", ".join(operation.name for operation in valid)
            raise UsageError(
                f"ResourceType {pattern.resource_type.name} only supports operations [{names}]"
            )
