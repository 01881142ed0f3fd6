"""The tree itself, pure: nodes, versions, transaction ids, and atomic operations.

Without a clock, files, session timeouts or watches, which `embedded` adds. Semantics follow
ZooKeeper's DataTree: a parent counts the children ever created in it, and that count numbers
sequential names.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from ottla.cluster.zk.port import (
    ANY_VERSION,
    BadVersion,
    Check,
    CoordinationError,
    Create,
    Delete,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    Result,
    SetData,
    Stat,
)

ROOT = "/"
NO_OWNER = 0


class Node(NamedTuple):
    """A node's content and counters; replaced, never changed, so that a copy of the map is a
    snapshot.

    `creates` counts children ever created here; `owner` is the session of an ephemeral node, or 0.
    The times of creation and of the last change are in ms since 1970, 0 if they are not known.
    """

    data: bytes
    czxid: int
    mzxid: int
    version: int
    creates: int
    owner: int
    ctime_ms: int = 0
    mtime_ms: int = 0


class ChangeKind(IntEnum):
    """The kinds of change of a node."""

    CREATE = 1
    SET = 2
    DELETE = 3


class TreeChange(NamedTuple):
    """One effect of an operation, as it is journalled: with the final name of a sequential node."""

    kind: ChangeKind
    path: str
    data: bytes = b""
    owner: int = NO_OWNER


class AppliedTransaction(NamedTuple):
    """The result of a transaction. `is_volatile`: it changed only ephemeral nodes."""

    zxid: int
    results: list[Result]
    changes: list[TreeChange]
    is_volatile: bool


class _Moment(NamedTuple):
    """The id of a transaction, and its time in ms since 1970."""

    zxid: int
    time_ms: int


def parent_of(path: str) -> str:
    """Return the path of the parent; '/' for a node at the top."""
    return path.rpartition("/")[0] or ROOT


def check_path(path: str) -> None:
    """Assert that a path is absolute and has no empty part; anything else is a bug of the caller."""
    well_formed = path.startswith("/") and "//" not in path
    assert well_formed and (path == ROOT or not path.endswith("/")), f"malformed path {path!r}"


class Tree:
    """All nodes, by path. `last_zxid` is the id of the last transaction."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {ROOT: Node(b"", 0, 0, 0, 0, NO_OWNER)}
        self.last_zxid = 0
        self._children: dict[str, set[str]] = {ROOT: set()}
        self._ephemerals: dict[int, dict[str, None]] = {}
        self._undo: list[tuple[str, Node | None]] = []

    def node(self, path: str) -> Node:
        """Return a node; raise NoNode if it does not exist."""
        node = self.nodes.get(path)
        if node is None:
            raise NoNode(path)
        return node

    def stat(self, path: str) -> Stat:
        """Return a node's Stat; raise NoNode if it does not exist."""
        node = self.node(path)
        # ZooKeeper's definition: creations plus deletions of children.
        children_version = 2 * node.creates - len(self._children[path])
        return Stat(node.czxid, node.mzxid, node.version, children_version, node.owner)

    def children_count(self, path: str) -> int:
        """Return the number of a node's children; 0 if it does not exist."""
        return len(self._children.get(path, ()))

    def children(self, path: str) -> list[str]:
        """Return the names of a node's children, sorted; raise NoNode if it does not exist."""
        self.node(path)
        return sorted(self._children[path])

    def ephemerals(self, owner: int) -> list[str]:
        """Return the paths that a session owns, in the order of their creation."""
        return list(self._ephemerals.get(owner, ()))

    def owners(self) -> list[int]:
        """Return every session that owns a node."""
        return list(self._ephemerals)

    def begin_epoch(self) -> None:
        """Jump to transaction ids that no earlier process can have used for this tree.

        An ephemeral node need not be durable, so the last ids before a crash are unknown. The upper
        half of the id counts the openings of the tree, as it counts leaders in ZooKeeper.
        """
        self.last_zxid = ((self.last_zxid >> 32) + 1) << 32

    def apply(
        self, operations: Sequence[Operation], owner: int, time_ms: int
    ) -> AppliedTransaction:
        """Apply all operations as one transaction, or raise the error of the first that fails."""
        at = _Moment(self.last_zxid + 1, time_ms)
        results: list[Result] = []
        changes: list[TreeChange] = []
        self._undo.clear()
        is_volatile = True
        try:
            for operation in operations:
                check_path(operation.path)
                result, change = self._do(operation, owner, at)
                results.append(result)
                if change is not None:
                    changes.append(change)
                    is_volatile = is_volatile and self._was_ephemeral(change)
        except BaseException as error:
            if isinstance(error, CoordinationError):
                error.index = len(results)
            self._roll_back()
            raise
        if changes:
            self.last_zxid = at.zxid
        return AppliedTransaction(at.zxid, results, changes, is_volatile)

    def replay(self, zxid: int, changes: Iterable[TreeChange], time_ms: int) -> None:
        """Repeat a journalled transaction."""
        at = _Moment(zxid, time_ms)
        self._undo.clear()
        for change in changes:
            if change.kind is ChangeKind.CREATE:
                self._create(change.path, change.data, change.owner, at)
            elif change.kind is ChangeKind.SET:
                self._set(change.path, change.data, at)
            else:
                self._delete(change.path)
        self.last_zxid = zxid

    def restore(self, last_zxid: int, nodes: Mapping[str, Node]) -> None:
        """Load the nodes of a snapshot, parents before children."""
        for path, node in nodes.items():
            self._put(path, node)
        self.last_zxid = last_zxid

    def _do(
        self, operation: Operation, owner: int, at: "_Moment"
    ) -> tuple[Result, TreeChange | None]:
        if isinstance(operation, Create):
            path = operation.path
            if operation.sequential:
                path = f"{path}{self.node(parent_of(path)).creates:010d}"
            holder = owner if operation.ephemeral else NO_OWNER
            data = bytes(operation.data)
            self._create(path, data, holder, at)
            return path, TreeChange(ChangeKind.CREATE, path, data, holder)
        path = operation.path
        self._check_version(path, operation.version)
        if isinstance(operation, SetData):
            data = bytes(operation.data)
            self._set(path, data, at)
            return self.stat(path), TreeChange(ChangeKind.SET, path, data)
        if isinstance(operation, Delete):
            if self._children[path]:
                raise NotEmpty(path)
            self._delete(path)
            return None, TreeChange(ChangeKind.DELETE, path)
        assert isinstance(operation, Check)
        return None, None

    def _was_ephemeral(self, change: TreeChange) -> bool:
        if change.kind is ChangeKind.CREATE:
            return change.owner != NO_OWNER
        if change.kind is ChangeKind.SET:
            return self.nodes[change.path].owner != NO_OWNER
        # A deletion leaves two entries: the node itself, then its parent.
        former = self._undo[-1][1]
        return former is not None and former.owner != NO_OWNER

    def _check_version(self, path: str, version: int) -> None:
        if version not in (ANY_VERSION, self.node(path).version):
            raise BadVersion(path)

    def _create(self, path: str, data: bytes, owner: int, at: "_Moment") -> None:
        if path in self.nodes:
            raise NodeExists(path)
        parent = parent_of(path)
        above = self.nodes.get(parent)
        if above is None:
            raise NoNode(path)
        if above.owner != NO_OWNER:
            raise NoChildrenForEphemerals(path)
        self._replace(parent, above._replace(creates=above.creates + 1))
        self._replace(path, Node(data, at.zxid, at.zxid, 0, 0, owner, at.time_ms, at.time_ms))

    def _set(self, path: str, data: bytes, at: "_Moment") -> None:
        node = self.node(path)
        self._replace(
            path,
            node._replace(data=data, mzxid=at.zxid, version=node.version + 1, mtime_ms=at.time_ms),
        )

    def _delete(self, path: str) -> None:
        assert path != ROOT, "the root cannot be deleted"
        self._replace(path, None)

    def _replace(self, path: str, node: Node | None) -> None:
        self._undo.append((path, self.nodes.get(path)))
        self._put(path, node)

    def _roll_back(self) -> None:
        for path, former in reversed(self._undo):
            self._put(path, former)

    def _put(self, path: str, node: Node | None) -> None:
        """The only place that changes the maps: nodes, children and owners agree after it."""
        former = self.nodes.get(path)
        if former is not None and former.owner:
            owned = self._ephemerals[former.owner]
            del owned[path]
            if not owned:
                del self._ephemerals[former.owner]
        if node is None:
            del self.nodes[path]
            del self._children[path]
            self._children[parent_of(path)].discard(path.rpartition("/")[2])
            return
        self.nodes[path] = node
        if former is None and path != ROOT:
            self._children[path] = set()
            self._children[parent_of(path)].add(path.rpartition("/")[2])
        if node.owner:
            self._ephemerals.setdefault(node.owner, {})[path] = None
