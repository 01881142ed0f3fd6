"""Decisions by access control lists: may a principal do an operation to a resource? Pure.

Follows kafka.security.authorizer.AclAuthorizer: an entry that denies wins, an operation may imply
another one, and prefixed patterns count beside the literal one and the wildcard.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ottla.security.acls import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AccessControlEntry,
    AclBinding,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
    entry_matches,
    pattern_matches,
)
from ottla.security.principal import Principal

Entries = frozenset[AccessControlEntry]

_NO_ENTRIES: Entries = frozenset()
_DENY, _ALLOW = PermissionType.DENY, PermissionType.ALLOW
# The permissions that allow an operation, besides ALL; others are allowed by themselves only.
_ALLOWED_BY = {
    AclOperation.DESCRIBE: frozenset(
        {
            AclOperation.DESCRIBE,
            AclOperation.READ,
            AclOperation.WRITE,
            AclOperation.DELETE,
            AclOperation.ALTER,
            AclOperation.ALL,
        }
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset(
        {AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS, AclOperation.ALL}
    ),
}


class Requester(NamedTuple):
    """The principal of a connection, as in `User:anna`, and the address of its host."""

    principal: str
    host: str


class Rules(NamedTuple):
    """The options of the authorizer: super users, and the decision without any entry."""

    super_users: frozenset[str] = frozenset()
    allows_if_no_acl: bool = False

    @classmethod
    def parse(cls, super_users: str, *, allows_if_no_acl: bool) -> "Rules":
        """Return the rules; raises ValueError if a super user is not a principal.

        Super users are separated by semicolons, because names of certificates contain commas.
        """
        names = [name for name in map(str.strip, super_users.split(";")) if name]
        for name in names:
            Principal.parse(name)
        return cls(frozenset(names), allows_if_no_acl)


class Decision(NamedTuple):
    """Whether a requester may do an operation, and the rule that decided it, in words."""

    is_allowed: bool
    rule: str


SUPER_USER = Decision(True, "super user")
_EVERYONE = Decision(True, "no ACL for the resource, allow.everyone.if.no.acl.found")
_NO_ACL = Decision(False, "no ACL for the resource")
_NO_MATCH = Decision(False, "no ACL that allows it")


class AccessLists:
    """The entries of a cluster by pattern, indexed for decisions."""

    def __init__(self) -> None:
        self._entries: dict[ResourcePattern, Entries] = {}
        # How many prefixes of each length there are; the lengths are few.
        self._prefixes: dict[ResourceType, Counter[int]] = {}

    def entries(self, pattern: ResourcePattern) -> Entries:
        """Return the entries of exactly this pattern."""
        return self._entries.get(pattern, _NO_ENTRIES)

    def patterns(self) -> list[ResourcePattern]:
        """Return the patterns that have entries."""
        return list(self._entries)

    def replace(self, pattern: ResourcePattern, entries: Iterable[AccessControlEntry]) -> bool:
        """Replace the entries of a pattern; return True if they have changed."""
        replacement = frozenset(entries)
        former = self._entries.pop(pattern, _NO_ENTRIES)
        if replacement:
            self._entries[pattern] = replacement
        if pattern.pattern_type is PatternType.PREFIXED and bool(former) != bool(replacement):
            lengths = self._prefixes.setdefault(pattern.resource_type, Counter())
            length = len(pattern.name or "")
            lengths[length] += 1 if replacement else -1
            if not lengths[length]:
                del lengths[length]
        return former != replacement

    def matching(self, wanted: AclBinding) -> list[AclBinding]:
        """Return the bindings that a filter matches, by pattern."""
        return [
            AclBinding(pattern, entry)
            for pattern, entries in sorted(self._entries.items())
            if pattern_matches(wanted.pattern, pattern)
            for entry in sorted(entries)
            if entry_matches(wanted.entry, entry)
        ]

    def _of_resource(
        self, resource_type: ResourceType, name: str
    ) -> Iterator[tuple[ResourcePattern, Entries]]:
        """Yield every pattern that matches a resource, with its entries."""
        for length in self._prefixes.get(resource_type, ()):
            if length <= len(name):
                key = ResourcePattern(resource_type, name[:length], PatternType.PREFIXED)
                if key in self._entries:
                    yield key, self._entries[key]
        for literal in {name, WILDCARD}:
            key = ResourcePattern(resource_type, literal, PatternType.LITERAL)
            if key in self._entries:
                yield key, self._entries[key]

    def allow(
        self,
        rules: Rules,
        requester: Requester,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
    ) -> bool:
        """Return True if the requester may do the operation to the resource."""
        return self.decide(rules, requester, operation, resource_type, name).is_allowed

    def decide(
        self,
        rules: Rules,
        requester: Requester,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
    ) -> Decision:
        """Return the decision with the entry that made it; the first one of several by order."""
        if requester.principal in rules.super_users:
            return SUPER_USER
        allowed_by = _ALLOWED_BY.get(operation) or (operation, AclOperation.ALL)
        has_entries = False
        allowing: AclBinding | None = None
        for pattern, entries in self._of_resource(resource_type, name):
            has_entries = True
            for entry in entries:
                if not _concerns(entry, requester):
                    continue
                if entry.permission_type is _DENY:
                    if entry.operation in (operation, AclOperation.ALL):
                        return Decision(False, _text(AclBinding(pattern, entry)))
                elif entry.operation in allowed_by:
                    binding = AclBinding(pattern, entry)
                    allowing = binding if allowing is None else min(allowing, binding)
        if allowing is not None:
            return Decision(True, _text(allowing))
        if has_entries:
            return _NO_MATCH
        return _EVERYONE if rules.allows_if_no_acl else _NO_ACL

    def allow_any(
        self,
        rules: Rules,
        requester: Requester,
        operation: AclOperation,
        resource_type: ResourceType,
    ) -> bool:
        """Return True if there can be a resource of the type for the operation (KIP-679).

        Permissions that imply the operation do not count, as in Kafka.
        """
        if requester.principal in rules.super_users:
            return True
        names = self._names_by_permission(requester, operation, resource_type)
        denied, denied_prefixes = (
            names[_DENY, PatternType.LITERAL],
            names[_DENY, PatternType.PREFIXED],
        )
        if WILDCARD in denied:
            return False
        if rules.allows_if_no_acl:
            return True

        def is_denied(name: str) -> bool:
            return any(name[: end + 1] in denied_prefixes for end in range(len(name)))

        return any(not is_denied(prefix) for prefix in names[_ALLOW, PatternType.PREFIXED]) or any(
            name == WILDCARD or (name not in denied and not is_denied(name))
            for name in names[_ALLOW, PatternType.LITERAL]
        )

    def _names_by_permission(
        self, requester: Requester, operation: AclOperation, resource_type: ResourceType
    ) -> dict[tuple[PermissionType, PatternType], set[str]]:
        names: dict[tuple[PermissionType, PatternType], set[str]] = {
            (permission, pattern_type): set()
            for permission in (_DENY, _ALLOW)
            for pattern_type in (PatternType.LITERAL, PatternType.PREFIXED)
        }
        for pattern, entries in self._entries.items():
            if pattern.resource_type is not resource_type:
                continue
            for entry in entries:
                is_wanted = entry.operation in (operation, AclOperation.ALL)
                if is_wanted and _concerns(entry, requester):
                    key = (entry.permission_type, pattern.pattern_type)
                    names[key].add(pattern.name or "")
        return names


def _concerns(entry: AccessControlEntry, requester: Requester) -> bool:
    """Return True if an entry is for the requester's principal and host."""
    return entry.principal in (requester.principal, WILDCARD_PRINCIPAL) and entry.host in (
        requester.host,
        WILDCARD,
    )


def _text(binding: AclBinding) -> str:
    pattern, entry = binding
    return (
        f"{entry.permission_type.name} {entry.operation.name} to {entry.principal} from "
        f"{entry.host} on {pattern.pattern_type.name} {pattern.resource_type.name} {pattern.name}"
    )
