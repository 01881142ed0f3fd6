"""The access control lists in the tree: read at the start, kept current, and changed.

Nodes and notifications have the format of Apache Kafka's AclAuthorizer, so that brokers and tools
of both may share a tree. A change and its notification are written together; every broker then
reads the lists of the pattern again.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from functools import partial

from ottla.base.clock import Clock
from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.base.tasks import Tasks
from ottla.cluster.acl_znodes import ACL_PATHS, AclChangeNode, AclEntry, AclNode
from ottla.cluster.zk.port import (
    BadVersion,
    ConnectionSuspended,
    Coordination,
    CoordinationError,
    Create,
    Delete,
    NodeExists,
    NoNode,
    Operation,
    SessionLost,
    SessionState,
    SetData,
)
from ottla.cluster.znodes import UnreadableNode
from ottla.security.acls import (
    UNREADABLE,
    AccessControlEntry,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
    effective,
)
from ottla.security.authorization import AccessLists, Entries

_log = logging.getLogger(__name__)

_PATTERN_TYPES = {"literal": PatternType.LITERAL, "prefixed": PatternType.PREFIXED}
_PARENTS = (AclChangeNode.LITERAL_PARENT, AclChangeNode.EXTENDED_PARENT)
# As in Kafka: more attempts than brokers that change the same pattern at once.
_ATTEMPTS_MAX = 10
# Kafka removes a change notification of this age: every live broker has read it by then.
_EXPIRY_SECONDS = 15 * 60
_MISSING = -1

Change = Callable[[Entries], Entries]


class AclStore:
    """Lives on the broker's loop; `start` again after the session was lost and a new one begun."""

    def __init__(self, tasks: Tasks, clock: Clock) -> None:
        self.lists = AccessLists()
        # Called after every change of the lists.
        self.on_change: list[Callable[[], None]] = []
        self._tasks = tasks
        self.clock = clock
        self._session: Coordination | None = None
        self._last_changes = dict.fromkeys(_PARENTS, "")
        self._catching_up: set[str] = set()
        self._expires = False
        # Held while the lists of a pattern are read or changed: an earlier read must not replace
        # the result of a later one.
        self._order = asyncio.Lock()

    async def start(self, session: Coordination) -> None:
        """Read every list and follow changes; raises ConnectionSuspended or SessionLost.

        The first start raises ConfigError for lists that this version cannot enforce.
        """
        self._session = session
        session.on_session(self._session_changed)
        for path in ACL_PATHS:
            await session.ensure(path)
        for parent in _PARENTS:
            # The watch is set before the reading, so that nothing falls between the two.
            changes = await session.children(parent, partial(self._changed, parent))
            self._last_changes[parent] = max(changes, default="")
        patterns = set(self.lists.patterns())
        await self._check_pattern_types(session)
        for name, pattern_type in _PATTERN_TYPES.items():
            for resource_type in await session.children(AclNode.root(name)):
                if resource_type not in _TYPES:
                    # No request of this version concerns such a resource.
                    _log.error("access control lists ignored resource_type=%s", resource_type)
                    continue
                parent = f"{AclNode.root(name)}/{resource_type}"
                for resource in await session.children(parent):
                    patterns.add(ResourcePattern(_TYPES[resource_type], resource, pattern_type))
        for pattern in patterns:
            await self._refresh(session, pattern)
        if not self._expires:
            self._expires = True
            self._tasks.supervise(self._expire, "old notifications of access control lists")

    async def _check_pattern_types(self, session: Coordination) -> None:
        """Raise ConfigError at the first start if there are patterns of an unknown type.

        Nothing is known about the resources that their entries deny, so none would be closed.
        """
        names = await session.children(AclNode.EXTENDED_ROOT)
        unknown = ", ".join(sorted({*names} - _PATTERN_TYPES.keys()))
        if not unknown:
            return
        problem = (
            f"{AclNode.EXTENDED_ROOT} in the coordination tree has access control lists of a "
            f"type that this version does not know: {unknown}. It cannot enforce them"
        )
        if not self._expires:
            raise ConfigError(f"{problem}: remove them, or start a version that does.")
        _log.error("access control lists ignored error=%s", problem)

    # -- following changes ------------------------------------------------------------------------

    def _session_changed(self, state: SessionState) -> None:
        # An earlier read may have been interrupted after its watch had fired.
        if state is SessionState.CONNECTED:
            for parent in _PARENTS:
                self._changed(parent, parent)

    def _changed(self, parent: str, _path: str) -> None:
        if parent not in self._catching_up:
            self._catching_up.add(parent)
            self._tasks.supervise(
                partial(self._catch_up, parent), "changes of access control lists"
            )

    async def _catch_up(self, parent: str) -> None:
        """Read the patterns named by notifications that are newer than the last one seen."""
        assert self._session is not None, "the store has not been started"
        session = self._session
        try:
            # From here on the new watch starts the next pass.
            self._catching_up.discard(parent)
            for name in await session.children(parent, partial(self._changed, parent)):
                if name > self._last_changes[parent]:
                    await self._follow(session, f"{parent}/{name}")
                    self._last_changes[parent] = max(self._last_changes[parent], name)
        except (ConnectionSuspended, SessionLost) as error:
            # When a suspended session is back it is read again; after a lost one `start` reads all.
            _log.warning("failed to read changes of access control lists error=%s", error)

    async def _follow(self, session: Coordination, path: str) -> None:
        try:
            data, _ = await session.get(path)
            pattern_type, resource_type, name = AclChangeNode.decode(path, data)
            pattern = ResourcePattern(
                ResourceType[resource_type], name, _PATTERN_TYPES[pattern_type]
            )
        except NoNode:
            return
        except (UnreadableNode, KeyError, UnicodeDecodeError) as error:
            _log.error("notification ignored path=%s error=%r", path, error)
            return
        await self._refresh(session, pattern)

    async def _refresh(self, session: Coordination, pattern: ResourcePattern) -> None:
        async with self._order:
            rows, _ = await _read(session, pattern)
            if self._apply(pattern, frozenset(rows)):
                _report_unknown(pattern, rows)

    def _apply(self, pattern: ResourcePattern, entries: Entries) -> bool:
        """Replace the entries of a pattern; return True if they have changed."""
        has_changed = self.lists.replace(pattern, entries)
        if has_changed:
            for notify in self.on_change:
                notify()
        return has_changed

    async def _expire(self) -> None:
        """Remove notifications that were there at the last look, too."""
        seen: set[str] = set()
        while True:
            await self.clock.sleep(_EXPIRY_SECONDS)
            session = self._session
            assert session is not None, "the store has not been started"
            try:
                paths = {
                    f"{parent}/{name}"
                    for parent in _PARENTS
                    for name in await session.children(parent)
                }
                for path in paths & seen:
                    # Another broker may have removed it.
                    with contextlib.suppress(NoNode):
                        await session.delete(path)
                seen = paths
            except (ConnectionSuspended, SessionLost) as error:
                _log.warning("notifications not removed error=%s", error)

    # -- changing ---------------------------------------------------------------------------------

    async def update(self, pattern: ResourcePattern, change: Change) -> None:
        """Replace the entries of a pattern by `change` of them; raises ApiError if that fails.

        `change` is called again if another broker has changed the pattern since it was read.
        """
        session = self._session
        assert session is not None, "the store has not been started"
        async with self._order:
            try:
                changed = await _replace(session, pattern, change)
            except CoordinationError as error:
                raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
            self._apply(pattern, changed)


def pascal_case(name: str) -> str:
    """Return the name of a value as Kafka stores it: `TransactionalId` for TRANSACTIONAL_ID."""
    return "".join(word.capitalize() for word in name.split("_"))


# The values that stored entries have; any other value is unknown, also in a filter.
_TYPES = {pascal_case(kind.name): kind for kind in ResourceType if kind > ResourceType.ANY}
_OPERATIONS = {
    pascal_case(item.name).upper(): item for item in AclOperation if item > AclOperation.ANY
}
_PERMISSIONS = {
    pascal_case(item.name).upper(): item for item in PermissionType if item > PermissionType.ANY
}

# The entries of a pattern as they were read, each with the strings of its node.
_Rows = Mapping[AccessControlEntry, AclEntry]


def _path(pattern: ResourcePattern) -> str:
    return AclNode.path(
        pattern.pattern_type.name.lower(),
        pascal_case(pattern.resource_type.name),
        pattern.name or "",
    )


async def _read(session: Coordination, pattern: ResourcePattern) -> tuple[_Rows, int]:
    """Return the entries of a pattern in the tree, and the version of its node.

    A node that cannot be read has one entry, which denies everything.
    """
    path = _path(pattern)
    try:
        data, stat = await session.get(path)
    except NoNode:
        return {}, _MISSING
    try:
        return {_entry(row): row for row in AclNode.decode(path, data)}, stat.version
    except UnreadableNode:
        return {UNREADABLE: _row(UNREADABLE)}, stat.version


def _entry(stored: AclEntry) -> AccessControlEntry:
    """Return an entry; as in Kafka, names are compared without case."""
    return AccessControlEntry(
        stored.principal,
        stored.host,
        _OPERATIONS.get(stored.operation.upper(), AclOperation.UNKNOWN),
        _PERMISSIONS.get(stored.permission.upper(), PermissionType.UNKNOWN),
    )


def _row(entry: AccessControlEntry) -> AclEntry:
    """Return the strings of a new entry; if its values are not known, the strings of its effect."""
    written = effective(entry) or entry
    return AclEntry(
        written.principal or "",
        pascal_case(written.permission_type.name),
        written.host or "",
        pascal_case(written.operation.name),
    )


def _report_unknown(pattern: ResourcePattern, rows: _Rows) -> None:
    for entry, row in rows.items():
        applied = effective(entry)
        if applied != entry:
            effect = "none" if applied is None else f"deny {applied.operation.name}"
            _log.error(
                "access control entry not known path=%s entry=%r effect=%r",
                _path(pattern),
                tuple(row),
                effect,
            )


def _operations(
    pattern: ResourcePattern, entries: Entries, rows: _Rows, version: int
) -> list[Operation]:
    """Return the operations that replace the entries of a pattern and notify the brokers.

    Entries that were there before keep their strings.
    """
    path, kind = _path(pattern), pattern.pattern_type.name.lower()
    data = AclNode.encode(rows.get(entry) or _row(entry) for entry in sorted(entries))
    is_literal = pattern.pattern_type is PatternType.LITERAL
    prefix = AclChangeNode.LITERAL_PREFIX if is_literal else AclChangeNode.EXTENDED_PREFIX
    change = AclChangeNode.encode(kind, pattern.resource_type.name, pattern.name or "")
    operation: Operation
    if not entries:
        operation = Delete(path, version)
    elif version == _MISSING:
        operation = Create(path, data)
    else:
        operation = SetData(path, data, version)
    return [operation, Create(prefix, change, sequential=True)]


async def _replace(session: Coordination, pattern: ResourcePattern, change: Change) -> Entries:
    """Write `change` of the entries of a pattern, and return it; ApiError, CoordinationError.

    If another broker changes the pattern before the write, it is read again.
    """
    for _ in range(_ATTEMPTS_MAX):
        rows, version = await _read(session, pattern)
        entries = frozenset(rows)
        changed = change(entries)
        if changed == entries:
            return entries
        with contextlib.suppress(BadVersion, NodeExists, NoNode):
            await session.multi(_operations(pattern, changed, rows, version))
            return changed
    raise ApiError(
        ErrorCode.UNKNOWN_SERVER_ERROR,
        f"Failed to update ACLs for {pattern.name!r} after trying {_ATTEMPTS_MAX} times",
    )
