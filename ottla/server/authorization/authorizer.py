"""The authorizer of a broker: decisions, remembered until a list changes, and changes of lists."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.slices import Slices
from ottla.security.acls import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    ResourcePattern,
    ResourceType,
    effective,
    entry_matches,
    exact_patterns,
    pattern_matches,
    problem_of,
)
from ottla.security.authorization import Decision, Entries, Requester, Rules
from ottla.server.authorization.store import AclStore

_DECISIONS_MAX = 100_000
# Names of topics are shorter. Clients choose longer ones, about which nothing is remembered.
_NAME_MAX = 249
_ANY_NAME = None

_Question = tuple[Requester, AclOperation, ResourceType, str | None]
# Called with the rights of the sender (Access), the operation and the resource.
OnDenial = Callable[[Any, AclOperation, ResourceType, str], None]


class Authorizer:
    """Decides by the rules of the options and the lists of the store."""

    def __init__(self, rules: Rules, store: AclStore) -> None:
        self.store = store
        # Increases whenever a list has changed.
        self.generation = 0
        self._rules = rules
        # Forgotten when a list changes, or when there are too many.
        self._decisions: dict[_Question, bool] = {}
        # Reports the refusals of requests to the audit log.
        self.on_denial: OnDenial | None = None
        store.on_change.append(self._changed)

    def _changed(self) -> None:
        self.generation += 1
        self._decisions.clear()

    def allows(
        self,
        requester: Requester,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
    ) -> bool:
        """Return True if the requester may do the operation to the resource."""
        question = (requester, operation, resource_type, name)
        decision = self._decisions.get(question)
        if decision is None:
            decision = self.store.lists.allow(self._rules, *question)
            self._remember(question, decision)
        return decision

    def decide(
        self,
        requester: Requester,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
    ) -> Decision:
        """Return the same with the rule that decides it, for the audit log."""
        return self.store.lists.decide(self._rules, requester, operation, resource_type, name)

    def allows_any(
        self, requester: Requester, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Return True if the requester may do the operation to some resource (KIP-679)."""
        question = (requester, operation, resource_type, _ANY_NAME)
        decision = self._decisions.get(question)
        if decision is None:
            decision = self.store.lists.allow_any(self._rules, requester, operation, resource_type)
            self._remember(question, decision)
        return decision

    def _remember(self, question: _Question, decision: bool) -> None:
        if len(question[-1] or "") > _NAME_MAX:
            return
        if len(self._decisions) >= _DECISIONS_MAX:
            self._decisions.clear()
        self._decisions[question] = decision

    async def create(self, bindings: Sequence[AclBinding]) -> list[ApiError | None]:
        """Add entries; return the error of each binding."""
        errors: list[ApiError | None] = [None] * len(bindings)
        by_pattern: dict[ResourcePattern, list[int]] = defaultdict(list)
        for number, binding in enumerate(bindings):
            errors[number] = _problem(binding)
            if errors[number] is None:
                by_pattern[binding.pattern].append(number)
        for pattern, numbers in by_pattern.items():
            entries = frozenset(bindings[number].entry for number in numbers)
            try:
                await self.store.update(pattern, entries.union)
            except ApiError as error:
                for number in numbers:
                    errors[number] = error
        return errors

    async def delete(
        self, filters: Sequence[AclBinding]
    ) -> list[list[tuple[AclBinding, ApiError | None]]]:
        """Delete the entries that match; return the matches of each filter, with the error if it
        failed.

        An entry that several filters match is reported by the first.
        """
        results: list[list[tuple[AclBinding, ApiError | None]]] = [[] for _ in filters]
        patterns = dict.fromkeys(self.store.lists.patterns())
        for wanted in filters:
            patterns |= dict.fromkeys(exact_patterns(wanted.pattern))
        slices = Slices(self.store.clock)
        for pattern in patterns:
            await slices.pause()
            matching = [
                (number, wanted)
                for number, wanted in enumerate(filters)
                if pattern_matches(wanted.pattern, pattern)
            ]
            if not matching:
                continue
            deleted: dict[AccessControlEntry, int] = {}

            def without(
                entries: Entries,
                matching: Sequence[tuple[int, AclBinding]] = matching,
                deleted: dict[AccessControlEntry, int] = deleted,
            ) -> Entries:
                deleted.clear()
                kept, removed = _without(entries, matching)
                deleted |= removed
                return kept

            failure = None
            try:
                await self.store.update(pattern, without)
            except ApiError as error:
                failure = error
            for entry, number in deleted.items():
                results[number].append((AclBinding(pattern, entry), failure))
        return results


def _without(
    entries: Entries, matching: Iterable[tuple[int, AclBinding]]
) -> tuple[Entries, dict[AccessControlEntry, int]]:
    """Return the entries that no filter matches, and the number of the filter for the others.

    An entry that does nothing, because its values are not known, is removed without a number.
    """
    kept = set(entries)
    deleted: dict[AccessControlEntry, int] = {}
    for entry in sorted(entries):
        applied = effective(entry)
        for number, wanted in matching:
            if entry_matches(wanted.entry, applied or entry):
                kept.discard(entry)
                if applied is not None:
                    deleted.setdefault(applied, number)
                break
    return frozenset(kept), deleted


def _problem(binding: AclBinding) -> ApiError | None:
    """Return why an entry cannot be added."""
    reason = problem_of(binding)
    return ApiError(ErrorCode.INVALID_REQUEST, reason) if reason else None
