"""The decisions about one administrative request, with the rules that made them."""

from collections.abc import Iterable

from ottla.security.acls import AclOperation, ResourceType
from ottla.security.authorization import Decision

Right = tuple[ResourceType, str]


class Trace:
    """The decisions by operation and resource; the audit log names their rules."""

    def __init__(self) -> None:
        self._decisions: dict[tuple[AclOperation, ResourceType, str], Decision] = {}

    def add(
        self, operation: AclOperation, resource_type: ResourceType, name: str, decision: Decision
    ) -> None:
        """Remember a decision."""
        self._decisions[operation, resource_type, name] = decision

    def rule_of(self, operation: AclOperation, rights: Iterable[Right]) -> str:
        """Return the rule that has allowed an operation on one of the resources; or ""."""
        for resource_type, name in rights:
            decision = self._decisions.get((operation, resource_type, name))
            if decision is not None and decision.is_allowed:
                return decision.rule
        return ""
