"""Decisions by access control lists: may a principal do an operation to a resource? Pure.

Follows kafka.security.authorizer.AclAuthorizer: an entry that denies wins, an operation may imply
another one, and prefixed patterns count beside the literal one and the wildcard. Entries with
values that this version does not know never grant anything (`acls.effective`).
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ottla.security.acls import (
    WILDCARD,
    AccessControlEntry,
    AclBinding,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
    effective,
    entry_matches,
    pattern_matches,
    permissions_for,
)
from ottla.security.principal import ANY_USER, Principal

Entries = frozenset[AccessControlEntry]

_NamesByType = dict[PatternType, set[str]]

_NO_ENTRIES: Entries = frozenset()
_PATTERN_TYPES = (PatternType.LITERAL, PatternType.PREFIXED)
_ALLOWED_BY = {operation: permissions_for(operation) for operation in AclOperation}


class Requester(NamedTuple):
    """The principal of a connection, and the address of its host."""

    principal: Principal
    host: str


class Rules(NamedTuple):
    """The options of the authorizer: super users, and the decision without any entry."""

    super_users: frozenset[Principal] = frozenset()
    allows_if_no_acl: bool = False

    @classmethod
    def parse(cls, super_users: str, *, allows_if_no_acl: bool) -> "Rules":
        """Return the rules; raises ValueError if a super user is not a principal.

        Super users are separated by semicolons, because names of certificates contain commas.
        """
        names = [name for name in map(str.strip, super_users.split(";")) if name]
        return cls(frozenset(map(Principal.parse, names)), allows_if_no_acl)


class _Right(NamedTuple):
    """One entry in the form for decisions: it grants the operation, or denies it."""

    principal: Principal
    host: str
    operation: AclOperation
    is_denial: bool
    # The pattern and the stored entry, for the rule of a decision.
    binding: AclBinding

    def concerns(self, requester: Requester) -> bool:
        """Return True if the entry is for the requester's principal and host."""
        return self.principal in (requester.principal, ANY_USER) and self.host in (
            requester.host,
            WILDCARD,
        )


class Decision(NamedTuple):
    """Whether a requester may do an operation, and the stored entry or the words that decided it."""

    is_allowed: bool
    reason: AclBinding | str

    @property
    def rule(self) -> str:
        """The rule in words."""
        return self.reason if isinstance(self.reason, str) else _text(self.reason)


SUPER_USER = Decision(True, "super user")
_EVERYONE = Decision(True, "no ACL for the resource, allow.everyone.if.no.acl.found")
_NO_ACL = Decision(False, "no ACL for the resource")
_NO_MATCH = Decision(False, "no ACL that allows it")


class AccessLists:
    """The entries of a cluster by pattern, indexed for decisions."""

    def __init__(self) -> None:
        self._entries: dict[ResourcePattern, Entries] = {}
        # The same entries in the form for decisions.
        self._rights: dict[ResourcePattern, tuple[_Right, ...]] = {}
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
        self._rights.pop(pattern, None)
        if replacement:
            self._entries[pattern] = replacement
            self._rights[pattern] = tuple(sorted(_rights(pattern, replacement), key=_order))
        if pattern.pattern_type is PatternType.PREFIXED and bool(former) != bool(replacement):
            lengths = self._prefixes.setdefault(pattern.resource_type, Counter())
            length = len(pattern.name or "")
            lengths[length] += 1 if replacement else -1
            if not lengths[length]:
                del lengths[length]
        return former != replacement

    def matching(self, wanted: AclBinding) -> list[AclBinding]:
        """Return the bindings that a filter matches, by pattern.

        The binding of a stored entry with unknown values has its effect (`acls.effective`). Clients
        of Kafka refuse a whole list in which a value is unknown.
        """
        return [
            AclBinding(pattern, entry)
            for pattern, entries in sorted(self._entries.items())
            if pattern_matches(wanted.pattern, pattern)
            for entry in sorted(set(_applied(entries)))
            if entry_matches(wanted.entry, entry)
        ]

    def _of_resource(self, resource_type: ResourceType, name: str) -> Iterator[tuple[_Right, ...]]:
        """Yield the rights of every pattern that has entries and matches a resource."""
        for length in self._prefixes.get(resource_type, ()):
            if length <= len(name):
                key = ResourcePattern(resource_type, name[:length], PatternType.PREFIXED)
                if key in self._rights:
                    yield self._rights[key]
        for literal in dict.fromkeys((name, WILDCARD)):
            key = ResourcePattern(resource_type, literal, PatternType.LITERAL)
            if key in self._rights:
                yield self._rights[key]

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
        allowed_by = _ALLOWED_BY[operation]
        has_entries = False
        allowing: AclBinding | None = None
        for rights in self._of_resource(resource_type, name):
            has_entries = True
            for right in rights:
                if not right.concerns(requester):
                    continue
                if right.is_denial:
                    if right.operation in (operation, AclOperation.ALL):
                        return Decision(False, right.binding)
                elif right.operation in allowed_by and (
                    allowing is None or right.binding < allowing
                ):
                    allowing = right.binding
        if allowing is not None:
            return Decision(True, allowing)
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
        allowed, denied = self._names(requester, operation, resource_type)
        if WILDCARD in denied[PatternType.LITERAL]:
            return False
        if rules.allows_if_no_acl:
            return True
        denied_prefixes = denied[PatternType.PREFIXED]

        def is_denied(name: str) -> bool:
            return any(name[: end + 1] in denied_prefixes for end in range(len(name)))

        return any(not is_denied(prefix) for prefix in allowed[PatternType.PREFIXED]) or any(
            name == WILDCARD or (name not in denied[PatternType.LITERAL] and not is_denied(name))
            for name in allowed[PatternType.LITERAL]
        )

    def _names(
        self, requester: Requester, operation: AclOperation, resource_type: ResourceType
    ) -> tuple[_NamesByType, _NamesByType]:
        """Return the names that entries allow and those that they deny, by type of pattern."""
        allowed, denied = (
            {pattern_type: set[str]() for pattern_type in _PATTERN_TYPES} for _ in range(2)
        )
        for pattern, rights in self._rights.items():
            if pattern.resource_type is not resource_type:
                continue
            for right in rights:
                is_wanted = right.operation in (operation, AclOperation.ALL)
                if is_wanted and right.concerns(requester):
                    names = denied if right.is_denial else allowed
                    names[pattern.pattern_type].add(pattern.name or "")
        return allowed, denied


def _applied(entries: Iterable[AccessControlEntry]) -> Iterator[AccessControlEntry]:
    """Yield the effects of the entries."""
    for entry in entries:
        applied = effective(entry)
        if applied is not None:
            yield applied


def _rights(pattern: ResourcePattern, entries: Iterable[AccessControlEntry]) -> Iterator[_Right]:
    """Yield the entries of a pattern in the form for decisions."""
    for entry in entries:
        applied = effective(entry)
        if applied is not None:
            yield _Right(
                Principal.parse(applied.principal or ""),
                applied.host or "",
                applied.operation,
                is_denial=applied.permission_type is not PermissionType.ALLOW,
                binding=AclBinding(pattern, entry),
            )


def _order(right: _Right) -> tuple[Principal, str, AclOperation]:
    # A stored entry may have no principal, and is not comparable then.
    return right[:3]


def _text(binding: AclBinding) -> str:
    """Return the effect of a stored entry in words."""
    pattern, stored = binding
    entry = effective(stored) or stored
    text = (
        f"{entry.permission_type.name} {entry.operation.name} to {entry.principal} from "
        f"{entry.host} on {pattern.pattern_type.name} {pattern.resource_type.name} {pattern.name}"
    )
    return text if entry == stored else f"{text}, by an entry with unknown values"
