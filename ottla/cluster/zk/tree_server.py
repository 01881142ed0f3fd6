"""A tree served to other processes, in ZooKeeper's own protocol: their sessions and requests.

kazoo, Java clients, ZooKeeper's shell and Apache Kafka's brokers can use it like a ZooKeeper of one
node. A session is a node of the tree (`stored_sessions`), so the next process that serves the tree
resumes it: its timeout starts again then. With a login, a client proves with SASL DIGEST-MD5 that
it knows the password before its session begins or continues. Requests of one connection are
performed in order, as are their responses; a watch is announced before the reply to a later read.
Lives on the tree's event loop. Follows FinalRequestProcessor and SessionTrackerImpl.
"""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ottla.base.rng import Rng
from ottla.cluster.zk import jute, stored_sessions
from ottla.cluster.zk.embedded import EmbeddedSession, EmbeddedTree, NodeEvent
from ottla.cluster.zk.jute import Code, NodeStat, OpCode, Reader, RequestRefused
from ottla.cluster.zk.packets import PacketConnection
from ottla.cluster.zk.port import (
    CoordinationError,
    Create,
    NoNode,
    Operation,
    SessionState,
    Stat,
    Watch,
)
from ottla.cluster.zk.stored_sessions import StoredSession
from ottla.cluster.zk.tls import ServerTls
from ottla.cluster.zk.tree_login import USER
from ottla.net.admission.handshakes import HandshakeOrder, Pace
from ottla.net.port import SYSTEM_BUFFERS, Handshake, Listener, ListenerTls, Net
from ottla.security.zookeeper.digest_md5 import AuthenticationFailed, ServerExchange
from ottla.security.zookeeper.login import Login

_log = logging.getLogger(__name__)

# Bounds of the timeout that a client may request, in milliseconds.
TIMEOUT_MS_MIN = 200
TIMEOUT_MS_MAX = 120_000
_PASSWORD_BYTES = 16
INTRODUCTION_SECONDS = 10.0
"""A client that has no session by then is disconnected."""
_MISSING = NodeStat(0, 0, 0, 0, 0, 0, 0, 0, 0)


class ServedSession(EmbeddedSession):
    """The session of another process: it ends when nothing was heard of it for its timeout."""

    outlives_process = True

    def __init__(self, tree: EmbeddedTree, session_id: int, stored: StoredSession) -> None:
        super().__init__(tree, session_id, stored.timeout_ms)
        self.stored = stored
        self.connection: PacketConnection | None = None
        self._heard_at = 0.0
        self._watchdog: asyncio.TimerHandle | None = None
        self.heard()
        self._watch_silence()

    def heard(self) -> None:
        """Start the timeout again."""
        self._heard_at = asyncio.get_running_loop().time()

    def _watch_silence(self) -> None:
        loop = asyncio.get_running_loop()
        check_at = self._heard_at + self.stored.timeout_ms / 1000
        self._watchdog = loop.call_at(check_at, self._check_silence, check_at)

    def _check_silence(self, check_at: float) -> None:
        now, timeout = asyncio.get_running_loop().time(), self.stored.timeout_ms / 1000
        if now - check_at > timeout / 3:
            # This process did not run. The client's heartbeats may be in the socket, unread.
            self.heard()
        if self._heard_at + timeout > now:
            self._watch_silence()
            return
        _log.warning(
            "session expired id=%#x timeout_ms=%d", self.session_id, self.stored.timeout_ms
        )
        self.expire()

    def stop_watching(self) -> None:
        """Stop the timeout: another process will serve the session."""
        if self._watchdog is not None:
            self._watchdog.cancel()

    def attach(self, connection: PacketConnection) -> None:
        """Continue on a connection; a former one is closed, and its watches are forgotten."""
        former, self.connection = self.connection, connection
        if former is not None:
            former.close()
            self._tree.drop_watches(self)
        self.heard()

    def detach(self, connection: PacketConnection) -> None:
        """Forget a connection that has ended, with its watches."""
        if self.connection is connection:
            self.connection = None
            self._tree.drop_watches(self)

    def announced(self, path: str) -> None:
        """The watch of every node: `fire` sends the event."""

    def fire(self, watch: Watch, path: str, event: NodeEvent) -> None:
        """Announce a change to the client."""
        if self.connection is not None:
            self.connection.send(jute.notification(event, path))

    def stored_paths(self) -> Sequence[str]:
        """The node that stores the session."""
        return (stored_sessions.path_of(self.session_id),)

    def expire(self) -> None:
        """End the session, and its connection after the replies that are under way."""
        self.stop_watching()
        super().expire()
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()


class _Handshakes:
    """Admits every TLS handshake: the server is for few clients of one machine or network."""

    def __init__(self) -> None:
        self.handshake_order: HandshakeOrder[Any] = HandshakeOrder(Pace())

    def begin(self, handshake: Handshake, host: str) -> Handshake | None:
        """Close no handshake."""
        return None

    def end(self, handshake: Handshake, host: str) -> None:
        """Return at once: nothing was counted."""

    def failed(self, host: str, reason: str) -> None:
        """Return at once: there is no audit log."""


@dataclass(slots=True)
class _Visitor:
    """A client that is not known yet: the session that it begins or continues."""

    session_id: int
    stored: StoredSession
    exchange: ServerExchange
    is_new: bool


class TreeServer:
    """Serves one tree, which must be shared, from `open` to `close`.

    Without a `login` every client may read and change the tree: for tests.
    """

    def __init__(self, tree: EmbeddedTree, rng: Rng, login: Login | None = None) -> None:
        self._tree = tree
        self._rng = rng
        self._login = login
        self._listener: Listener | None = None
        # Looks at the file of the certificate.
        self._watching: asyncio.Task[None] | None = None
        self._connections: dict[PacketConnection, ServedSession | None] = {}
        self._visitors: dict[PacketConnection, _Visitor] = {}

    @property
    def port(self) -> int:
        """The port on which the server listens."""
        assert self._listener is not None, "the server is not open"
        return self._listener.port

    async def open(self, net: Net, host: str, port: int, tls: ServerTls | None = None) -> None:
        """Resume the stored sessions and accept connections; OSError if the address is in use."""
        encryption = None if tls is None else ListenerTls(tls.context, _Handshakes())
        self._listener = await net.listen(host, port, self._accept, SYSTEM_BUFFERS, encryption)
        if tls is not None and encryption is not None:

            def renew(context: ssl.SSLContext) -> None:
                encryption.context = context

            watch = partial(tls.watch, renew)
            self._watching = self._tree.tasks.supervise(watch, "coordination certificate")
        for session_id in stored_sessions.stored_ids(self._tree.nodes):
            data = self._tree.nodes[stored_sessions.path_of(session_id)].data
            session = ServedSession(self._tree, session_id, stored_sessions.decode(data))
            self._tree.add(session)

    async def close(self) -> None:
        """Close all connections; the sessions stay in the tree. Idempotent."""
        if self._watching is not None:
            self._watching.cancel()
        if self._listener is not None:
            await self._listener.close()
        for session in self._tree.sessions.values():
            if isinstance(session, ServedSession):
                session.stop_watching()
        for connection in list(self._connections):
            connection.close()

    # -- connections ------------------------------------------------------------------------------

    def _accept(self) -> PacketConnection:
        connection = PacketConnection(self._tree.tasks, self._received, self._disconnected)
        self._connections[connection] = None
        # A client that proves nothing must not keep a descriptor.
        loop = asyncio.get_running_loop()
        loop.call_later(INTRODUCTION_SECONDS, self._dismiss, connection)
        return connection

    def _dismiss(self, connection: PacketConnection) -> None:
        if connection in self._connections and self._connections[connection] is None:
            _log.warning("coordination connection closed reason=%r", "no session in time")
            connection.close()

    def _disconnected(self, connection: PacketConnection) -> None:
        self._visitors.pop(connection, None)
        session = self._connections.pop(connection, None)
        if session is not None:
            session.detach(connection)

    async def _received(self, connection: PacketConnection, packet: bytes) -> bytes:
        """Perform one packet and return the reply; ProtocolError ends the connection."""
        session = self._connections.get(connection)
        if session is None:
            visitor = self._visitors.get(connection)
            if visitor is not None:
                return await self._introduce(connection, visitor, Reader(packet))
            return await self._connect(connection, jute.read_connect(packet))
        session.heard()
        fields = Reader(packet)
        xid, code = fields.integer(), fields.integer()
        error, body = Code.OK, b""
        try:
            body = await _perform(self._tree, session, code, fields)
        except RequestRefused as refusal:
            error = refusal.code
        except CoordinationError as failure:
            error = jute.CODES[type(failure)]
        if code == OpCode.CLOSE_SESSION:
            connection.close_after_reply()
        return jute.reply(xid, self._tree.last_zxid, error, body)

    async def _connect(self, connection: PacketConnection, request: jute.ConnectRequest) -> bytes:
        knows_read_only = request.knows_read_only
        session_id, password = request.session_id, request.password
        if session_id:
            former = self._tree.sessions.get(session_id)
            if not isinstance(former, ServedSession) or not former.stored.accepts(password):
                connection.close_after_reply()
                nothing = bytes(_PASSWORD_BYTES)
                return jute.connect_reply(0, 0, nothing, knows_read_only=knows_read_only)
            stored = former.stored
        else:
            password = self._rng.random_bytes(_PASSWORD_BYTES)
            timeout_ms = min(max(request.timeout_ms, TIMEOUT_MS_MIN), TIMEOUT_MS_MAX)
            stored = StoredSession(timeout_ms, stored_sessions.hash_of(password))
            session_id = self._tree.next_session_id()
        login = self._login
        exchange = ServerExchange(
            USER if login is None else login.username,
            "" if login is None else login.password,
            self._rng.random_bytes(_PASSWORD_BYTES).hex(),
        )
        visitor = _Visitor(session_id, stored, exchange, is_new=not request.session_id)
        if login is None:
            await self._admit(connection, visitor)
        else:
            self._visitors[connection] = visitor
        return jute.connect_reply(
            stored.timeout_ms, session_id, password, knows_read_only=knows_read_only
        )

    async def _introduce(
        self, connection: PacketConnection, visitor: _Visitor, fields: Reader
    ) -> bytes:
        """Perform a step of the login, after whose failure the connection is closed.

        Any other request is refused.
        """
        xid, code = fields.integer(), fields.integer()
        if code == OpCode.CLOSE_SESSION:
            connection.close_after_reply()
            return jute.reply(xid, self._tree.last_zxid, Code.OK)
        if code != OpCode.SASL:
            return jute.reply(xid, self._tree.last_zxid, Code.AUTH_FAILED)
        body, error = b"", Code.AUTH_FAILED
        try:
            body, error = jute.buffer(visitor.exchange.step(fields.buffer())), Code.OK
        except AuthenticationFailed as failure:
            _log.warning("coordination client not authenticated reason=%s", failure)
        if visitor.exchange.is_proven and not await self._admit(connection, visitor):
            body, error = b"", Code.SESSION_EXPIRED
        if error is not Code.OK:
            connection.close_after_reply()
        return jute.reply(xid, self._tree.last_zxid, error, body)

    async def _admit(self, connection: PacketConnection, visitor: _Visitor) -> bool:
        """Begin or continue the session of a client; return False if it has expired."""
        self._visitors.pop(connection, None)
        if visitor.is_new:
            session = await self._begin_session(visitor.session_id, visitor.stored)
        else:
            former = self._tree.sessions.get(visitor.session_id)
            if not isinstance(former, ServedSession):
                return False
            session = former
        # If the client has gone by now, the session ends with its timeout.
        if connection in self._connections:
            self._connections[connection] = session
            session.attach(connection)
        return True

    async def _begin_session(self, session_id: int, stored: StoredSession) -> ServedSession:
        session = ServedSession(self._tree, session_id, stored)
        self._tree.add(session)
        missing = [path for path in stored_sessions.PARENTS if path not in self._tree.nodes]
        operations = [Create(path) for path in missing]
        path = stored_sessions.path_of(session.session_id)
        # Durable before the client knows the session, so that it survives this process.
        await self._tree.write(session, [*operations, Create(path, stored_sessions.encode(stored))])
        return session


# -- requests
# -----------------------------------------------------------------------------------------

_Request = Callable[[EmbeddedTree, ServedSession, Reader], Awaitable[bytes]]


async def _perform(tree: EmbeddedTree, session: ServedSession, code: int, fields: Reader) -> bytes:
    if session.state is SessionState.LOST:
        raise RequestRefused(Code.SESSION_EXPIRED)
    if code in _WRITES:
        return await _write(tree, session, code, fields)
    request = _REQUESTS.get(code)
    if request is None:
        raise RequestRefused(Code.UNIMPLEMENTED)
    return await request(tree, session, fields)


def _stat(tree: EmbeddedTree, path: str) -> NodeStat:
    node = tree.nodes.get(path)
    if node is None:
        return _MISSING
    count = tree.children_count(path)
    return NodeStat(
        node.czxid,
        node.mzxid,
        node.ctime_ms,
        node.mtime_ms,
        node.version,
        2 * node.creates - count,
        node.owner,
        len(node.data),
        count,
    )


def _watch_of(session: ServedSession, fields: Reader) -> Watch | None:
    return session.announced if fields.boolean() else None


async def _get_data(tree: EmbeddedTree, session: ServedSession, fields: Reader) -> bytes:
    path = jute.read_path(fields)
    # Read before the wait for the disk, together with the data.
    stat = _stat(tree, path)
    data, _ = await tree.get(session, path, _watch_of(session, fields))
    return jute.buffer(data) + stat.encode()


async def _exists(tree: EmbeddedTree, session: ServedSession, fields: Reader) -> bytes:
    path = jute.read_path(fields)
    stat = _stat(tree, path)
    if await tree.exists(session, path, _watch_of(session, fields)) is None:
        raise NoNode(path)
    return stat.encode()


async def _get_children(tree: EmbeddedTree, session: ServedSession, fields: Reader) -> bytes:
    path = jute.read_path(fields)
    return jute.texts(await tree.children(session, path, _watch_of(session, fields)))


async def _get_children2(tree: EmbeddedTree, session: ServedSession, fields: Reader) -> bytes:
    path = jute.read_path(fields)
    stat = _stat(tree, path)
    names = await tree.children(session, path, _watch_of(session, fields))
    return jute.texts(names) + stat.encode()


async def _get_ephemerals(tree: EmbeddedTree, session: ServedSession, fields: Reader) -> bytes:
    prefix, nodes = fields.text(), tree.nodes.items()
    own = [path for path, node in nodes if node.owner == session.session_id]
    return jute.texts([path for path in own if path.startswith(prefix)])


async def _get_acl(tree: EmbeddedTree, session: ServedSession, fields: Reader) -> bytes:
    path = jute.read_path(fields)
    stat = _stat(tree, path)
    await tree.get(session, path, None)
    return jute.open_acl() + stat.encode()


async def _set_acl(tree: EmbeddedTree, session: ServedSession, fields: Reader) -> bytes:
    path = jute.read_path(fields)
    await tree.get(session, path, None)
    return _stat(tree, path).encode()


async def _sync(tree: EmbeddedTree, session: ServedSession, fields: Reader) -> bytes:
    path = jute.read_path(fields)
    await tree.exists(session, path, None)
    return jute.text(path)


async def _nothing(tree: EmbeddedTree, session: ServedSession, fields: Reader) -> bytes:
    return b""


async def _close_session(tree: EmbeddedTree, session: ServedSession, fields: Reader) -> bytes:
    # The connection stays open for the reply.
    session.connection = None
    session.expire()
    await tree.wait_until_durable()
    return b""


async def _set_watches(tree: EmbeddedTree, session: ServedSession, fields: Reader) -> bytes:
    """Set watches again, and announce at once what has changed since the client was connected.

    Every watch on children fires: which change of a node's children was the last is not stored.
    """
    watches = jute.read_set_watches(fields)
    nodes, watch = tree.nodes, session.announced
    for path in watches.data:
        if path not in nodes:
            session.fire(watch, path, NodeEvent.DELETED)
        elif nodes[path].mzxid > watches.zxid:
            session.fire(watch, path, NodeEvent.CHANGED)
        else:
            await tree.exists(session, path, watch)
    for path in watches.existence:
        if path in nodes:
            session.fire(watch, path, NodeEvent.CREATED)
        else:
            await tree.exists(session, path, watch)
    for path in watches.children:
        is_there = path in nodes
        event = NodeEvent.CHILDREN_CHANGED if is_there else NodeEvent.DELETED
        session.fire(watch, path, event)
    return b""


async def _write(tree: EmbeddedTree, session: ServedSession, code: int, fields: Reader) -> bytes:
    operation = jute.read_operation(code, fields)
    results = await tree.write(session, [operation])
    return _result(tree, code, operation, results[0])


async def _multi(tree: EmbeddedTree, session: ServedSession, fields: Reader) -> bytes:
    coded = jute.read_multi(fields)
    try:
        results = await tree.write(session, [operation for _, operation in coded])
    except CoordinationError as error:
        return jute.failed_multi_reply(len(coded), error.index, jute.CODES[type(error)])
    pairs = zip(coded, results, strict=True)
    return jute.multi_reply(
        [(code, _result(tree, code, operation, result)) for (code, operation), result in pairs]
    )


def _result(tree: EmbeddedTree, code: int, operation: Operation, result: object) -> bytes:
    if isinstance(result, str):
        stat = _stat(tree, result).encode() if code == OpCode.CREATE2 else b""
        return jute.text(result) + stat
    if isinstance(result, Stat):
        # The versions result from this change; a later one may be in the tree already.
        now = _stat(tree, operation.path)
        changed = now._replace(
            czxid=result.czxid,
            mzxid=result.mzxid,
            version=result.version,
            children_version=result.children_version,
            owner=result.ephemeral_owner,
        )
        return changed.encode()
    return b""


_WRITES = frozenset({OpCode.CREATE, OpCode.CREATE2, OpCode.SET_DATA, OpCode.DELETE})
_REQUESTS: Mapping[int, _Request] = {
    OpCode.EXISTS: _exists,
    OpCode.GET_DATA: _get_data,
    OpCode.GET_CHILDREN: _get_children,
    OpCode.GET_CHILDREN2: _get_children2,
    OpCode.GET_EPHEMERALS: _get_ephemerals,
    OpCode.GET_ACL: _get_acl,
    OpCode.SET_ACL: _set_acl,
    OpCode.SYNC: _sync,
    OpCode.PING: _nothing,
    OpCode.AUTH: _nothing,
    OpCode.MULTI: _multi,
    OpCode.SET_WATCHES: _set_watches,
    OpCode.CLOSE_SESSION: _close_session,
}
