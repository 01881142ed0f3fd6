"""Entries of access control lists, and the filters that match them (KIP-11, KIP-290). Pure.

Types, names and numbers are the same as in org.apache.kafka.common.resource and .acl. A filter is a
binding with ANY, MATCH or None in some of its fields.
"""

from enum import IntEnum
from typing import NamedTuple

from ottla.base.errors import ProtocolError
from ottla.security.principal import ANY_USER, Principal, is_principal

WILDCARD = "*"
CLUSTER_NAME = "kafka-cluster"


class ResourceType(IntEnum):
    """The type of a resource; ANY is for filters, UNKNOWN for types of newer brokers."""

    UNKNOWN, ANY, TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN, USER = range(8)

    @classmethod
    def _missing_(cls, value: object) -> "ResourceType":
        return cls.UNKNOWN


class PatternType(IntEnum):
    """The way in which the name of a resource is compared (KIP-290).

    ANY (the same name with any type) and MATCH (every pattern that matches the name) are for
    filters.
    """

    UNKNOWN, ANY, MATCH, LITERAL, PREFIXED = range(5)

    @classmethod
    def _missing_(cls, value: object) -> "PatternType":
        return cls.UNKNOWN


class AclOperation(IntEnum):
    """An operation on a resource; ANY is for filters."""

    UNKNOWN, ANY, ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = range(9)
    CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = range(9, 13)
    CREATE_TOKENS, DESCRIBE_TOKENS, TWO_PHASE_COMMIT = range(13, 16)

    @classmethod
    def _missing_(cls, value: object) -> "AclOperation":
        return cls.UNKNOWN


class PermissionType(IntEnum):
    """ALLOW or DENY; ANY is for filters."""

    UNKNOWN, ANY, DENY, ALLOW = range(4)

    @classmethod
    def _missing_(cls, value: object) -> "PermissionType":
        return cls.UNKNOWN


class ResourcePattern(NamedTuple):
    """The resources of a type with a name; in a filter, None is any name."""

    resource_type: ResourceType
    name: str | None
    pattern_type: PatternType = PatternType.LITERAL


class AccessControlEntry(NamedTuple):
    """A permission: `principal` as in "User:anna", `host` an address or "*".

    In a filter, None is any principal or any host.
    """

    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission_type: PermissionType = PermissionType.ANY


class AclBinding(NamedTuple):
    """One access control list entry of a resource, or a filter for such entries."""

    pattern: ResourcePattern = ResourcePattern(ResourceType.ANY, None, PatternType.ANY)
    entry: AccessControlEntry = AccessControlEntry()

    @classmethod
    def of_codes(
        cls,
        pattern: tuple[int, str | None, int],
        entry: tuple[str | None, str | None, int, int],
    ) -> "AclBinding":
        """Return a binding from numbers of the protocol, in the order of the fields.

        Numbers of newer versions are UNKNOWN. As in Kafka, 0 is none: ProtocolError.
        """
        resource_type, name, pattern_type = pattern
        principal, host, operation, permission_type = entry
        if 0 in (resource_type, pattern_type, operation, permission_type):
            raise ProtocolError("an access control list entry or filter has no type or operation")
        return cls(
            ResourcePattern(ResourceType(resource_type), name, PatternType(pattern_type)),
            AccessControlEntry(
                principal, host, AclOperation(operation), PermissionType(permission_type)
            ),
        )

    @property
    def is_unknown(self) -> bool:
        """True if a field has a value that this version does not know."""
        return (
            self.pattern.resource_type is ResourceType.UNKNOWN
            or self.pattern.pattern_type is PatternType.UNKNOWN
            or self.entry.operation is AclOperation.UNKNOWN
            or self.entry.permission_type is PermissionType.UNKNOWN
        )

    @property
    def is_filter(self) -> bool:
        """True if a field has a value that only filters have; names are not looked at."""
        return (
            self.pattern.resource_type is ResourceType.ANY
            or self.pattern.pattern_type in (PatternType.ANY, PatternType.MATCH)
            or self.entry.operation is AclOperation.ANY
            or self.entry.permission_type is PermissionType.ANY
        )


_O = AclOperation
# As AclEntry.supportedOperations of Apache Kafka, in its order.
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
# The permissions that imply another one, besides ALL (as in Kafka's StandardAuthorizer).
_IMPLYING = {
    _O.DESCRIBE: (_O.READ, _O.WRITE, _O.DELETE, _O.ALTER),
    _O.DESCRIBE_CONFIGS: (_O.ALTER_CONFIGS,),
}


def operations_on(resource_type: ResourceType) -> tuple[AclOperation, ...]:
    """Return the operations that entries of a type of resource can have; ALL is the last one."""
    return (*_SUPPORTED.get(resource_type, ()), _O.ALL)


def permissions_for(operation: AclOperation) -> frozenset[AclOperation]:
    """Return the operations whose permission allows an operation, itself and ALL included."""
    return frozenset({operation, _O.ALL, *_IMPLYING.get(operation, ())})


def problem_of(binding: AclBinding) -> str:
    """Return the reason why a broker refuses to add an entry; empty if it does not."""
    name = binding.pattern.name or ""
    if binding.is_unknown:
        return "ACL binding contains unknown elements"
    if binding.pattern.resource_type is ResourceType.CLUSTER and name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not name:
        return "Invalid empty resource name"
    if "/" in name:
        return f"ACL binding contains invalid resource name: {name}"
    if not binding.entry.host:
        # Kafka stores such an entry, which concerns no host.
        return "Invalid empty host"
    try:
        Principal.parse(binding.entry.principal or "")
    except ValueError as error:
        return str(error)
    return ""


UNREADABLE = AccessControlEntry("", "", AclOperation.UNKNOWN, PermissionType.UNKNOWN)
"""The entry of a list that cannot be read at all."""


def effective(entry: AccessControlEntry) -> AccessControlEntry | None:
    """Return the effect of a stored entry, as an entry whose values are all known; None if none.

    Another program or a newer version may have stored values that this version does not know. Such
    an entry grants nothing, as in Kafka. Unless it is known to allow, it may be a denial, which
    Kafka ignores. Here it denies every operation if its operation is not known, and everyone if its
    principal is not known.
    """
    is_known = entry.operation >= AclOperation.ALL
    has_principal, has_host = is_principal(entry.principal or ""), bool(entry.host)
    if entry.permission_type is PermissionType.ALLOW:
        return entry if is_known and has_principal and has_host else None
    return AccessControlEntry(
        entry.principal if has_principal else ANY_USER.text(),
        entry.host if has_host else WILDCARD,
        entry.operation if is_known else AclOperation.ALL,
        PermissionType.DENY,
    )


ANY = AclBinding()
"""The filter that every binding matches."""


def pattern_matches(wanted: ResourcePattern, pattern: ResourcePattern) -> bool:
    """Return True if a filter matches the pattern of a resource (ResourcePatternFilter)."""
    if wanted.resource_type not in (ResourceType.ANY, pattern.resource_type):
        return False
    if wanted.pattern_type not in (PatternType.ANY, PatternType.MATCH, pattern.pattern_type):
        return False
    name, known = wanted.name, pattern.name or ""
    if name is None:
        return True
    if wanted.pattern_type is not PatternType.MATCH:
        return name == known
    if pattern.pattern_type is PatternType.LITERAL:
        return known in (name, WILDCARD)
    return name.startswith(known)


def entry_matches(wanted: AccessControlEntry, entry: AccessControlEntry) -> bool:
    """Return True if a filter matches an entry (AccessControlEntryFilter)."""
    return (
        wanted.principal in (None, entry.principal)
        and wanted.host in (None, entry.host)
        and wanted.operation in (AclOperation.ANY, entry.operation)
        and wanted.permission_type in (PermissionType.ANY, entry.permission_type)
    )


def exact_patterns(wanted: ResourcePattern) -> tuple[ResourcePattern, ...]:
    """Return the only patterns that a filter can match; empty if they cannot be listed."""
    if wanted.resource_type is ResourceType.ANY or wanted.name is None:
        return ()
    if wanted.pattern_type is PatternType.ANY:
        types: tuple[PatternType, ...] = (PatternType.LITERAL, PatternType.PREFIXED)
    elif wanted.pattern_type is PatternType.MATCH:
        types = ()
    else:
        types = (wanted.pattern_type,)
    return tuple(wanted._replace(pattern_type=pattern_type) for pattern_type in types)
