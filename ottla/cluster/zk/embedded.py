"""Coordination inside the process: the tree, its sessions and watches, journalled or in memory
only.

For tests, single machines and the edge, where a ZooKeeper ensemble would be one more system to run.
A change is acknowledged, visible to readers and announced to watches once it is durable; changes
that queue up during a sync share the next one. Lives on one event loop.

A session of this process ends with it: its ephemeral nodes in the journal are removed when the tree
is opened again. Sessions of other processes (`tree_server`) are stored in the tree and resumed.
"""

import asyncio
import contextvars
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import IntEnum
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from ottla.base.clock import Clock
from ottla.base.errors import StorageError
from ottla.base.files import FileSystem
from ottla.base.platform.descriptors import is_exhausted
from ottla.base.tasks import Tasks
from ottla.cluster.zk.journal import Journal, JournalEntry
from ottla.cluster.zk.port import (
    ANY_VERSION,
    ConnectionSuspended,
    CoordinationError,
    Create,
    Delete,
    NoNode,
    Operation,
    Result,
    SessionLost,
    SessionState,
    SetData,
    Stat,
    Watch,
)
from ottla.cluster.zk.stored_sessions import stored_ids
from ottla.cluster.zk.tree import (
    ROOT,
    AppliedTransaction,
    ChangeKind,
    Node,
    Tree,
    TreeChange,
    check_path,
    parent_of,
)

_log = logging.getLogger(__name__)

SESSION_TIMEOUT_MS = 18_000

_Watches = dict[str, dict[tuple["EmbeddedSession", Watch], None]]


class NodeEvent(IntEnum):
    """The changes that a watch announces; the numbers are ZooKeeper's (Watcher.Event.EventType)."""

    CREATED = 1
    DELETED = 2
    CHANGED = 3
    CHILDREN_CHANGED = 4


_EVENTS = {
    ChangeKind.CREATE: NodeEvent.CREATED,
    ChangeKind.SET: NodeEvent.CHANGED,
    ChangeKind.DELETE: NodeEvent.DELETED,
}


class TreeSize(NamedTuple):
    """The size of a tree: nodes, nodes of sessions, watches, and sessions."""

    nodes: int
    ephemerals: int
    watches: int
    sessions: int


class EmbeddedTree:
    """One tree and its sessions; in memory if `directory` is None.

    Opening replays the journal, blocking, and raises StorageError with a message that names the
    remedy, DirectoryInUse if another process has the tree open. After a failed write or sync
    nothing more is acknowledged: every operation raises StorageError, the sessions become
    SUSPENDED, and `on_failure` is called. `is_shared`: sessions of other processes exist. They
    outlive this process, so their ephemeral nodes are kept when the tree is opened, and every
    change is written before it is acknowledged.
    """

    def __init__(
        self,
        files: FileSystem,
        clock: Clock,
        directory: str | None = None,
        *,
        is_shared: bool = False,
        tasks: Tasks | None = None,
    ) -> None:
        self.clock = clock
        self._is_shared = is_shared
        self.on_failure: Callable[[StorageError], None] = lambda error: None
        self._files = files
        self._tree = Tree()
        self.tasks = tasks or Tasks(clock=clock)
        self._sessions: dict[int, EmbeddedSession] = {}
        self._session_count = 0
        self._data_watches: _Watches = {}
        self._child_watches: _Watches = {}
        self._failure: StorageError | None = None
        self._directory = directory or ""
        self._unwritten: list[JournalEntry] = []
        # The deliveries, in order, that follow when the unwritten transactions are durable.
        self._deliveries: list[Callable[[], object]] = []
        self._flusher: asyncio.Task[None] | None = None
        self._snapshot: asyncio.Task[None] | None = None
        self._journal = Journal(files, directory) if directory is not None else None
        if self._journal is not None:
            self._open(self._journal)

    def _open(self, journal: Journal) -> None:
        try:
            if journal.load(self._tree):
                self._tree.begin_epoch()
        except StorageError:
            journal.close()
            raise
        resumed = stored_ids(self._tree.nodes) if self._is_shared else set()
        for owner in self._tree.owners():
            if owner not in resumed:
                ended = [Delete(path) for path in self._tree.ephemerals(owner)]
                time_ms = self.clock.time_ms()
                applied = self._tree.apply(ended, owner, time_ms)
                self._unwritten.append(JournalEntry(applied.zxid, applied.changes, time_ms))

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The nodes by path, with changes that are not durable yet."""
        return MappingProxyType(self._tree.nodes)

    def size(self) -> TreeSize:
        """Return the number of nodes, watches and sessions, for monitoring."""
        ephemerals = sum(len(self._tree.ephemerals(owner)) for owner in self._tree.owners())
        by_path = (*self._data_watches.values(), *self._child_watches.values())
        watches = sum(map(len, by_path))
        return TreeSize(len(self._tree.nodes), ephemerals, watches, len(self._sessions))

    def children_count(self, path: str) -> int:
        """Return the number of a node's children; 0 if it does not exist."""
        return self._tree.children_count(path)

    @property
    def last_zxid(self) -> int:
        """The id of the last transaction."""
        return self._tree.last_zxid

    @property
    def sessions(self) -> Mapping[int, "EmbeddedSession"]:
        """The sessions that are alive, by id; a simulation suspends and expires them."""
        return MappingProxyType(self._sessions)

    def session(self, timeout_ms: int = SESSION_TIMEOUT_MS) -> "EmbeddedSession":
        """Start a session; it is lost after being suspended for `timeout_ms`."""
        session = EmbeddedSession(self, self.next_session_id(), timeout_ms)
        self.add(session)
        return session

    def next_session_id(self) -> int:
        """Return an id that no session of this tree has had, also before restarts."""
        self._session_count += 1
        return (self._tree.last_zxid >> 32 << 32) + self._session_count

    def add(self, session: "EmbeddedSession") -> None:
        """Make a session one of this tree's."""
        self._sessions[session.session_id] = session

    async def close(self) -> None:
        """End this process's sessions, make unwritten changes durable, and release the directory."""
        for session in list(self._sessions.values()):
            if not session.outlives_process:
                await session.close()
        if self._journal is None:
            return
        if self._unwritten:
            self._begin_flush()
        with suppress(StorageError):
            # The error has been logged, and callers that wait for a change receive it. Other
            # unwritten changes are ephemeral nodes, which end here anyway.
            await self.wait_until_durable()
        if self._snapshot is not None:
            await asyncio.wait([self._snapshot])
        self._journal.close()
        self._failure = StorageError(self._directory, "the coordination tree has been closed.")

    def refuse_if_failed(self) -> None:
        """Raise the StorageError that ended this tree, if there is one."""
        if self._failure is not None:
            raise self._failure

    async def get(
        self, session: "EmbeddedSession", path: str, watch: Watch | None
    ) -> tuple[bytes, Stat]:
        """Return a node's data and Stat, and set a watch on it; raise NoNode if it does not exist."""
        node = self._tree.nodes.get(path)
        if node is None:
            await self.wait_until_durable()
            raise NoNode(path)
        result = node.data, self._tree.stat(path)
        if watch is not None:
            self._data_watches.setdefault(path, {})[session, watch] = None
        await self.wait_until_durable()
        return result

    async def exists(
        self, session: "EmbeddedSession", path: str, watch: Watch | None
    ) -> Stat | None:
        """Return a node's Stat or None, and set a watch in both cases."""
        stat = self._tree.stat(path) if path in self._tree.nodes else None
        if watch is not None:
            self._data_watches.setdefault(path, {})[session, watch] = None
        await self.wait_until_durable()
        return stat

    async def children(
        self, session: "EmbeddedSession", path: str, watch: Watch | None
    ) -> list[str]:
        """Return the names of a node's children, and set a watch; raise NoNode if it does not
        exist.
        """
        if path not in self._tree.nodes:
            await self.wait_until_durable()
            raise NoNode(path)
        names = self._tree.children(path)
        if watch is not None:
            self._child_watches.setdefault(path, {})[session, watch] = None
        await self.wait_until_durable()
        return names

    async def write(
        self, session: "EmbeddedSession", operations: Sequence[Operation]
    ) -> list[Result]:
        """Apply all operations or none; return when they are durable."""
        self.refuse_if_failed()
        try:
            time_ms = self.clock.time_ms()
            applied = self._tree.apply(operations, session.session_id, time_ms)
        except CoordinationError:
            # The error may depend on a change that is not durable yet.
            await self.wait_until_durable()
            raise
        self._record(applied, time_ms)
        await self.wait_until_durable()
        return applied.results

    async def ensure(self, session: "EmbeddedSession", path: str) -> None:
        """Create a node and its parents, as one transaction, if they do not exist."""
        check_path(path)
        missing: list[Operation] = []
        while path not in self._tree.nodes:
            missing.append(Create(path))
            path = parent_of(path)
        await self.write(session, missing[::-1])

    def end(self, session: "EmbeddedSession") -> None:
        """Remove a session with its watches, its ephemeral nodes and its stored state."""
        self._sessions.pop(session.session_id, None)
        self.drop_watches(session)
        paths = [*self._tree.ephemerals(session.session_id), *session.stored_paths()]
        paths = [path for path in paths if path in self._tree.nodes]
        if paths:
            time_ms, ended = self.clock.time_ms(), [Delete(path) for path in paths]
            self._record(self._tree.apply(ended, session.session_id, time_ms), time_ms)

    def drop_watches(self, session: "EmbeddedSession") -> None:
        """Forget the watches of a session, as ZooKeeper does when its connection ends."""
        for watches in (self._data_watches, self._child_watches):
            for path in list(watches):
                remaining = {key: None for key in watches[path] if key[0] is not session}
                watches[path] = remaining
                if not remaining:
                    del watches[path]

    def _record(self, applied: AppliedTransaction, time_ms: int) -> None:
        """Queue a transaction for the journal, and the watches that it triggers.

        Ephemeral nodes of this process do not need a sync of their own: they are written with the
        next other change.
        """
        if self._journal is not None and applied.changes:
            self._unwritten.append(JournalEntry(applied.zxid, applied.changes, time_ms))
            if self._is_shared or not applied.is_volatile:
                self._begin_flush()
        for change in applied.changes:
            for session, watch in self._take_watches(change):
                self._deliver(partial(session.fire, watch, change.path, _EVENTS[change.kind]))
            if change.kind is not ChangeKind.SET:
                parent = parent_of(change.path)
                event = NodeEvent.CHILDREN_CHANGED
                for session, watch in self._child_watches.pop(parent, {}):
                    self._deliver(partial(session.fire, watch, parent, event))

    def _take_watches(self, change: TreeChange) -> dict[tuple["EmbeddedSession", Watch], None]:
        fired = self._data_watches.pop(change.path, {})
        if change.kind is ChangeKind.DELETE:
            # A watch of both kinds receives the deletion once.
            fired |= self._child_watches.pop(change.path, {})
        return fired

    def _deliver(self, action: Callable[[], object]) -> None:
        if self._flusher is None:
            action()
        else:
            self._deliveries.append(action)

    async def wait_until_durable(self) -> None:
        """Return when all previous changes, including the caller's, are durable."""
        self.refuse_if_failed()
        if self._flusher is None:
            return
        delivered = asyncio.get_running_loop().create_future()
        self._deliveries.append(partial(_complete, delivered))
        await delivered
        self.refuse_if_failed()

    def _begin_flush(self) -> None:
        if self._flusher is None and self._failure is None:
            assert self._journal is not None
            self._flusher = self.tasks.spawn(self._flush(self._journal), "coordination journal")

    async def _flush(self, journal: Journal) -> None:
        """Write batch after batch until the queue is empty; after an error every operation fails."""
        try:
            while self._deliveries and self._failure is None:
                batch, self._unwritten = self._unwritten, []
                deliveries, self._deliveries = self._deliveries, []
                try:
                    await self._write_batch(journal, batch)
                except Exception as error:
                    # How much of the batch was written is unknown: nothing more is acknowledged.
                    self._fail(error)
                    waiting, self._deliveries = self._deliveries, []
                    _call((*deliveries, *waiting))
                    raise
                _call(deliveries)
        finally:
            self._flusher = None
        remaining, self._deliveries = self._deliveries, []
        _call(remaining)

    async def _write_batch(self, journal: Journal, batch: list[JournalEntry]) -> None:
        try:
            if batch:
                # All changes of the cluster wait for it, and must not wait for slow partitions.
                await self._files.in_own_thread(partial(journal.write, batch))
            if journal.is_snapshot_due and self._snapshot is None:
                await self._begin_snapshot(journal)
        except OSError as error:
            self._fail(error)

    async def _begin_snapshot(self, journal: Journal) -> None:
        try:
            number = await self._files.in_background(journal.begin_next)
        except OSError as error:
            if not is_exhausted(error):
                raise
            self._postpone_snapshot(error)
            return
        # Nodes are replaced, never changed: this copy does not change while it is written.
        nodes, last_zxid = dict(self._tree.nodes), self._tree.last_zxid
        work = partial(journal.store_snapshot, last_zxid, number, nodes)
        self._snapshot = self.tasks.spawn(self._store(work), "coordination snapshot")

    async def _store(self, work: Callable[[], None]) -> None:
        try:
            await self._files.in_background(work)
        except OSError as error:
            if not is_exhausted(error):
                self._fail(error)
                return
            self._postpone_snapshot(error)
        finally:
            self._snapshot = None

    def _postpone_snapshot(self, error: OSError) -> None:
        # The journals that the snapshot would replace still exist; a later write tries again.
        _log.warning("coordination snapshot postponed error=%r", error.strerror)

    def _fail(self, error: Exception) -> None:
        _log.error("coordination journal failed directory=%s error=%s", self._directory, error)
        # After a failed sync the state of the file is unknown: never retry, never acknowledge.
        self._failure = StorageError(
            self._directory,
            f"the coordination tree could not be written: {error}. Check the disk (is it full?) and"
            " restart the broker; acknowledged changes are safe.",
        )
        for session in list(self._sessions.values()):
            session.suspend()
        self.on_failure(self._failure)


def _call(deliveries: Iterable[Callable[[], object]]) -> None:
    for delivery in deliveries:
        delivery()


def _complete(delivered: "asyncio.Future[None]") -> None:
    if not delivered.done():
        delivered.set_result(None)


class EmbeddedSession:
    """One session (implements Coordination). A simulation may `suspend`, `resume` and `expire` it."""

    outlives_process = False

    def __init__(self, tree: EmbeddedTree, session_id: int, timeout_ms: int) -> None:
        self._tree = tree
        self._session_id = session_id
        self._timeout_seconds = timeout_ms / 1000
        self._state = SessionState.CONNECTED
        # Watches run where the session was started, not where a node is changed: in a simulation
        # that may be another process, which may be dead by then.
        self._context = contextvars.copy_context()
        self._listeners: list[Callable[[SessionState], None]] = []
        self._held_back: list[tuple[Watch, str, NodeEvent]] = []
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def session_id(self) -> int:
        """Identity of the session; owner of its ephemeral nodes."""
        return self._session_id

    @property
    def state(self) -> SessionState:
        """The state of the session: CONNECTED, SUSPENDED or LOST."""
        return self._state

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        """Return data and Stat; raise NoNode, without setting a watch, if the node does not exist."""
        self._refuse_unless_connected(path)
        result = await self._tree.get(self, path, watch)
        self._refuse_unless_connected(path)
        return result

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        """Return the Stat or None; the watch fires on creation, change and deletion."""
        self._refuse_unless_connected(path)
        stat = await self._tree.exists(self, path, watch)
        self._refuse_unless_connected(path)
        return stat

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """Return the names of the children, sorted; the watch fires when one comes or goes."""
        self._refuse_unless_connected(path)
        names = await self._tree.children(self, path, watch)
        self._refuse_unless_connected(path)
        return names

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        """Create a node and return its path; NodeExists, NoNode (parent)."""
        (created,) = await self.multi([Create(path, data, ephemeral, sequential)])
        assert isinstance(created, str)
        return created

    async def ensure(self, path: str) -> None:
        """Create the node and its parents, empty, if they do not exist."""
        self._refuse_unless_connected(path)
        await self._tree.ensure(self, path)
        self._refuse_unless_connected(path)

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        """Replace the data; NoNode, BadVersion."""
        (stat,) = await self.multi([SetData(path, data, version)])
        assert isinstance(stat, Stat)
        return stat

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove a node; NoNode, BadVersion, NotEmpty."""
        await self.multi([Delete(path, version)])

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """Apply all operations or none; raise the error of the first that fails."""
        path = operations[0].path if operations else ROOT
        self._refuse_unless_connected(path)
        results = await self._tree.write(self, operations)
        self._refuse_unless_connected(path)
        return results

    def on_session(self, listener: Callable[[SessionState], None]) -> None:
        """Call `listener` on every change of the session's state."""
        self._listeners.append(listener)

    async def close(self) -> None:
        """End the session; its ephemeral nodes are removed at once."""
        if self._state is not SessionState.LOST:
            self._listeners.clear()
            self.expire()

    def suspend(self) -> None:
        """Disconnect the session: operations fail and watches wait until `resume` or the session's
        loss.
        """
        if self._state is SessionState.CONNECTED:
            self._deadline = self._tree.clock.monotonic() + self._timeout_seconds
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._timeout_seconds, self.expire)
            self._enter(SessionState.SUSPENDED)

    def resume(self) -> None:
        """Reconnect a suspended session, unless its timeout has expired."""
        if self._state is not SessionState.SUSPENDED:
            return
        if self._tree.clock.monotonic() >= self._deadline:
            self.expire()
            return
        self._stop_timer()
        self._enter(SessionState.CONNECTED)
        held_back, self._held_back = self._held_back, []
        for watch, path, event in held_back:
            self.fire(watch, path, event)

    def expire(self) -> None:
        """Lose the session: its ephemeral nodes and watches are removed, and every operation fails."""
        if self._state is not SessionState.LOST:
            self._stop_timer()
            self._held_back.clear()
            self._enter(SessionState.LOST)
            self._tree.end(self)

    def stored_paths(self) -> Sequence[str]:
        """The nodes that hold the session's state, which end with it."""
        return ()

    def fire(self, watch: Watch, path: str, event: NodeEvent) -> None:
        """Call a watch on the loop; while the session is suspended, keep it for later."""
        if self._state is SessionState.CONNECTED:
            asyncio.get_running_loop().call_soon(watch, path, context=self._context)
        elif self._state is SessionState.SUSPENDED:
            self._held_back.append((watch, path, event))

    def _enter(self, state: SessionState) -> None:
        self._state = state
        for listener in list(self._listeners):
            asyncio.get_running_loop().call_soon(listener, state, context=self._context)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse_unless_connected(self, path: str) -> None:
        self._tree.refuse_if_failed()
        if self._state is SessionState.SUSPENDED:
            raise ConnectionSuspended(path)
        if self._state is SessionState.LOST:
            raise SessionLost(path)
