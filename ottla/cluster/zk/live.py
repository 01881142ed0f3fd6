"""Coordination on a real ZooKeeper ensemble, through kazoo.

kazoo uses threads of its own; every response, watch and change of state is passed to the event loop
on which the session was started. A lost session stays lost: kazoo is stopped, because it would
start another session by itself, without the registrations of this one. kazoo drops its watches with
the connection. After a reconnection all of them fire, whether or not anything changed, because a
change in between would not be announced otherwise.
"""

import asyncio
import contextlib
import functools
import logging
import ssl
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, NamedTuple

from kazoo import exceptions
from kazoo.client import KazooClient, KazooState
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.protocol.states import EventType, WatchedEvent, ZnodeStat
from kazoo.retry import KazooRetry
from kazoo.security import ACL, Id

from ottla.base.errors import ConfigError, OttlaError
from ottla.cluster.zk.acls import AclOf, NodeAcl
from ottla.cluster.zk.port import (
    ANY_VERSION,
    BadVersion,
    ConnectionSuspended,
    CoordinationError,
    Create,
    Delete,
    EnsembleUnreachable,
    InvalidAcl,
    LoginRejected,
    NoAuth,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    Result,
    SessionLost,
    SessionState,
    SetData,
    Stat,
    Watch,
)
from ottla.cluster.zk.tls import Tls, tls_of
from ottla.cluster.zk.tree import ROOT, parent_of
from ottla.security.zookeeper.connection import LoginConnection, log_in
from ottla.security.zookeeper.login import Login, login_of_environment

SESSION_TIMEOUT_MS = 18_000
CONNECT_TIMEOUT_MS = 10_000

_STATES = {
    KazooState.CONNECTED: SessionState.CONNECTED,
    KazooState.SUSPENDED: SessionState.SUSPENDED,
    KazooState.LOST: SessionState.LOST,
}
_ERRORS: dict[type[Exception], type[CoordinationError]] = {
    exceptions.NoNodeError: NoNode,
    exceptions.NodeExistsError: NodeExists,
    exceptions.BadVersionError: BadVersion,
    exceptions.NotEmptyError: NotEmpty,
    exceptions.NoChildrenForEphemeralsError: NoChildrenForEphemerals,
    exceptions.NoAuthError: NoAuth,
    exceptions.AuthFailedError: NoAuth,
    exceptions.InvalidACLError: InvalidAcl,
    exceptions.SessionExpiredError: SessionLost,
    exceptions.ConnectionClosedError: SessionLost,
    exceptions.ConnectionLoss: ConnectionSuspended,
}
# The watches that an event triggers: those on data and existence, those on children.
_TAKES = {
    EventType.CREATED: {"data"},
    EventType.CHANGED: {"data"},
    EventType.CHILD: {"children"},
    EventType.DELETED: {"data", "children"},
}


# kazoo's default would wait up to a minute between two attempts to reconnect.
_RECONNECT = {"max_tries": -1, "delay": 0.05, "backoff": 2, "max_jitter": 0.2, "max_delay": 1.0}

_log = logging.getLogger(__name__)
# kazoo warns of every attempt to reconnect, once a second; `LiveSession` logs the changes of state.
_KAZOO_LOG = logging.getLogger(f"{__name__}.kazoo")
# socket.SHUT_RDWR
_BOTH_DIRECTIONS = 2
_CUT_OFF_SECONDS = 5
# An ensemble that does not respond for longer is logged, because the start waits for it.
QUIET_SECONDS = 2.0
NO_OPTIONS: Mapping[str, str] = {}

_Watches = dict[str, dict[Watch, set[str]]]


class Details(NamedTuple):
    """Everything that ZooKeeper stores about a node; times in milliseconds since the Unix epoch."""

    czxid: int
    mzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    children_version: int
    acl_version: int
    ephemeral_owner: int
    data_length: int
    children_count: int
    pzxid: int


class LiveSession:
    """One session with an ensemble (implements Coordination), on the loop that `begin` ran on."""

    def __init__(
        self, client: KazooClient, loop: asyncio.AbstractEventLoop, acl_of: AclOf | None = None
    ) -> None:
        self._client = client
        self._loop = loop
        self._acl_of = acl_of
        self._state = SessionState.CONNECTED
        # kazoo forgets them while it is not connected.
        session_id, password = client.client_id
        self._credentials = int(session_id), bytes(password)
        self._listeners: list[Callable[[SessionState], None]] = []
        # The type of the last event that was announced, in the names of kazoo (CREATED, CHANGED,
        # …).
        self.last_event = ""
        # The events of each watch, by path: kazoo announces a deletion twice to a watch of both
        # kinds.
        self._watches: _Watches = {}
        self._dropped: _Watches = {}
        # In the order of the requests. kazoo keeps a request that arrives while it notices the loss
        # of the connection until the next connection, however late that is.
        self._waiting: dict[asyncio.Future[Any], str] = {}
        client.add_listener(partial(_from_thread, loop, self._changed))

    @classmethod
    async def begin(
        cls,
        servers: str,
        *,
        timeout_ms: int = SESSION_TIMEOUT_MS,
        connect_timeout_ms: int = CONNECT_TIMEOUT_MS,
        acl_of: AclOf | None = None,
        creates_path: bool = True,
        tls_options: Mapping[str, str] = NO_OPTIONS,
        login: Login | None = None,
    ) -> "LiveSession":
        """Start a session with `host:port,host:port/chroot`; the chroot is created if it is
        missing, unless `creates_path` is False.

        The user is `login`, or else the user of KAFKA_OPTS, as is TLS unless `tls_options` say
        otherwise. `acl_of` returns the access control list for a node that the session creates; by
        default, everyone may do everything. Raises EnsembleUnreachable, which names the servers,
        and ConfigError for a login or a key store that cannot be used.
        """
        if _KAZOO_LOG.level == logging.NOTSET:
            _KAZOO_LOG.setLevel(logging.ERROR)
        hosts, _, chroot = servers.partition("/")
        loop = asyncio.get_running_loop()
        login = login or login_of_environment()
        tls = tls_of(tls_options)
        client = _client(hosts, timeout_ms, login, tls)
        text = "ZooKeeper does not respond yet servers=%s wait_seconds=%g"
        silence = loop.call_later(
            QUIET_SECONDS, _log.warning, text, hosts, connect_timeout_ms / 1000
        )
        try:
            await _connect(client, loop, connect_timeout_ms / 1000)
            if chroot and creates_path:
                acl = None if acl_of is None else _kazoo_acl(acl_of(f"/{chroot}"))
                await loop.run_in_executor(None, partial(client.ensure_path, f"/{chroot}", acl))
            if chroot:
                client.chroot = f"/{chroot}"
        except (TimeoutError, exceptions.KazooException, KazooTimeoutError) as error:
            await loop.run_in_executor(None, partial(_put_away, client))
            server = hosts if tls is None else f"{hosts} (with TLS)"
            raise _unreachable(server, error, client, connect_timeout_ms) from error
        except asyncio.CancelledError:
            loop.run_in_executor(None, partial(_put_away, client))
            raise
        finally:
            silence.cancel()
        return cls(client, loop, acl_of)

    @property
    def session_id(self) -> int:
        """Identity of the session; owner of its ephemeral nodes."""
        return self._credentials[0]

    @property
    def credentials(self) -> tuple[int, bytes]:
        """Id and password of the session, which are sufficient to resume or end it."""
        return self._credentials

    @property
    def state(self) -> SessionState:
        """The state of the session: CONNECTED, SUSPENDED or LOST."""
        return self._state

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        """Return data and Stat; raise NoNode, without setting a watch, if the node does not exist."""
        data, stat = await self._read(path, self._client.get_async, "data", watch)
        # Java clients create nodes without data, which differs from empty data there.
        return data or b"", _stat(stat)

    async def details(self, path: str) -> Details:
        """Return everything about a node, for people; raise NoNode if it does not exist."""
        stat = await self._ask(path, self._client.exists_async, path)
        if stat is None:
            raise NoNode(path)
        return Details(*stat)

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        """Return the Stat or None; the watch fires on creation, change and deletion."""
        stat = await self._read(path, self._client.exists_async, "data", watch)
        return None if stat is None else _stat(stat)

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """Return the names of the children, sorted; the watch fires when one comes or goes."""
        return sorted(await self._read(path, self._client.get_children_async, "children", watch))

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        """Create a node and return its path; NodeExists, NoNode (parent)."""
        (created,) = await self.multi([Create(path, data, ephemeral, sequential)])
        assert isinstance(created, str)
        return created

    async def ensure(self, path: str) -> None:
        """Create the node and its parents, empty, if they do not exist."""
        missing = []
        while path != ROOT and await self.exists(path) is None:
            missing.append(path)
            path = parent_of(path)
        for ancestor in reversed(missing):
            try:
                await self.create(ancestor)
            except NodeExists:
                # Another client has created it first.
                continue

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        """Replace the data; NoNode, BadVersion."""
        return _stat(await self._ask(path, self._client.set_async, path, data, version))

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove a node; NoNode, BadVersion, NotEmpty."""
        await self.multi([Delete(path, version)])

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """Apply all operations or none; raise the error of the first that fails."""
        if not operations:
            return []
        transaction = self._client.transaction()
        for operation in operations:
            if isinstance(operation, Create):
                transaction.create(
                    operation.path,
                    operation.data,
                    None if self._acl_of is None else _kazoo_acl(self._acl_of(operation.path)),
                    ephemeral=operation.ephemeral,
                    sequence=operation.sequential,
                )
            elif isinstance(operation, SetData):
                transaction.set_data(operation.path, operation.data, operation.version)
            elif isinstance(operation, Delete):
                transaction.delete(operation.path, operation.version)
            else:
                transaction.check(operation.path, operation.version)
        responses = await self._ask(operations[0].path, transaction.commit_async)
        return [
            _result(operation, response) for operation, response in _done(operations, responses)
        ]

    async def acl(self, path: str) -> list[NodeAcl]:
        """Return the access control list of a node; NoNode."""
        entries, _ = await self._ask(path, self._client.get_acls_async, path)
        return [NodeAcl(entry.perms, entry.id.scheme, entry.id.id) for entry in entries]

    async def set_acl(
        self, path: str, entries: Sequence[NodeAcl], version: int = ANY_VERSION
    ) -> None:
        """Replace the access control list of a node; NoNode, BadVersion, NoAuth, InvalidAcl.

        `version` is the version of the list.
        """
        acl = _kazoo_acl(tuple(entries))
        await self._ask(path, self._client.set_acls_async, path, acl, version)

    async def add_user(self, scheme: str, credentials: str) -> None:
        """Authenticate the session as another user, too."""
        await self._ask(ROOT, self._client.add_auth_async, scheme, credentials)

    def on_session(self, listener: Callable[[SessionState], None]) -> None:
        """Call `listener` on every change of the session's state."""
        self._listeners.append(listener)

    async def close(self) -> None:
        """End the session; its ephemeral nodes are removed at once."""
        if self._state is not SessionState.LOST:
            self._listeners.clear()
            self._state = SessionState.LOST
            await self._loop.run_in_executor(None, partial(_put_away, self._client))

    def abandon(self) -> None:
        """Disconnect without ending the session, as a process that dies does; it cannot be used
        again.

        For tests of expiry, and for a broker that must not end a session whose state is unknown.
        """
        self._listeners.clear()
        self._state = SessionState.LOST
        self._fail_waiting()
        self._loop.run_in_executor(None, partial(_cut_off, self._client))

    async def _read(
        self, path: str, ask: Callable[..., Any], kind: str, watch: Watch | None
    ) -> Any:
        if watch is None:
            return await self._ask(path, ask, path)
        kinds = self._watches.setdefault(path, {}).setdefault(watch, set())
        is_new = kind not in kinds
        kinds.add(kind)
        tell = partial(_from_thread, self._loop, self._fire, path) if is_new else None
        try:
            return await self._ask(path, ask, path, tell)
        except CoordinationError:
            if is_new:
                self._forget(path, watch, {kind})
            raise

    def _forget(self, path: str, watch: Watch, kinds: AbstractSet[str]) -> bool:
        """Remove kinds from the events of a watch; return True if it waited for one of them."""
        waiting = self._watches.get(path, {})
        watched = waiting.get(watch, set()) & kinds
        if watched:
            waiting[watch].difference_update(watched)
            if not waiting[watch]:
                del waiting[watch]
            if not waiting:
                del self._watches[path]
        return bool(watched)

    def _fire(self, path: str, event: WatchedEvent) -> None:
        kinds = _TAKES.get(event.type, set())
        self.last_event = str(event.type)
        for watch in list(self._watches.get(path, {})):
            if self._forget(path, watch, kinds):
                watch(path)

    async def _ask(self, path: str, ask: Callable[..., Any], *arguments: Any) -> Any:
        if self._state is SessionState.SUSPENDED:
            raise ConnectionSuspended(path)
        if self._state is SessionState.LOST:
            raise SessionLost(path)
        response: asyncio.Future[Any] = self._loop.create_future()
        self._waiting[response] = path
        ask(*arguments).rawlink(partial(_from_thread, self._loop, partial(_settle, response)))
        try:
            return await response
        except exceptions.KazooException as error:
            raise _translated(error, path) from error
        finally:
            self._waiting.pop(response, None)

    def _changed(self, state: str) -> None:
        if self._state is SessionState.LOST or _STATES[state] is self._state:
            return
        self._state = _STATES[state]
        if self._state is SessionState.CONNECTED:
            _log.info("coordination session continues id=%#x", self.session_id)
        else:
            _log.warning(
                "coordination session changed state=%s id=%#x",
                self._state.value,
                self.session_id,
            )
            self._fail_waiting()
        dropped, self._dropped = self._dropped, {}
        if self._state is SessionState.SUSPENDED:
            self._dropped, self._watches = self._watches, {}
        elif self._state is SessionState.LOST:
            self._watches.clear()
            self._loop.run_in_executor(None, partial(_put_away, self._client))
        for listener in list(self._listeners):
            listener(self._state)
        if self._state is SessionState.CONNECTED:
            for path, watches in dropped.items():
                for watch in watches:
                    watch(path)

    def _fail_waiting(self) -> None:
        error = SessionLost if self._state is SessionState.LOST else ConnectionSuspended
        for response, path in self._waiting.items():
            if not response.done():
                response.set_exception(error(path))


class _TlsHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """Connects with TLS: kazoo's own connections trust the system's authorities, too."""

    def __init__(self, tls: Tls) -> None:
        super().__init__()
        self._tls = tls
        self._context = tls.context()
        # Why the files were not read; empty if they were.
        self._problem = ""

    def create_connection(
        self, address: tuple[str, int], hostname: str | None = None, timeout: float = 10, **_: Any
    ) -> ssl.SSLSocket:
        """Return a connection after its handshake; OSError if one of them fails."""
        plain = super().create_connection(address, timeout=timeout)
        try:
            return self._renewed().wrap_socket(plain, server_hostname=hostname)
        except OSError:
            plain.close()
            raise

    def _renewed(self) -> ssl.SSLContext:
        """Read the files again; the former context stays if they cannot be used.

        A session lasts for months, and its certificate, or that of the servers, may not.
        """
        try:
            self._context, self._problem = self._tls.context(), ""
        except ConfigError as error:
            if self._problem != str(error):
                self._problem = str(error)
                _log.error("files of TLS not read, the former ones are used error=%s", error)
        return self._context


def _client(hosts: str, timeout_ms: int, login: Login | None, tls: Tls | None) -> KazooClient:
    handler = None if tls is None else _TlsHandler(tls)
    try:
        client = KazooClient(
            hosts=hosts,
            timeout=timeout_ms / 1000,
            connection_retry=KazooRetry(**_RECONNECT),
            logger=_KAZOO_LOG,
            handler=handler,
        )
        for host, _ in client.hosts:
            # kazoo's thread would print a traceback, and the session would wait for its timeout.
            host.encode("idna")
    except ValueError as error:
        raise EnsembleUnreachable(
            f"{hosts!r} is not of the form HOST:PORT[,HOST:PORT…][/PATH]"
        ) from error
    if login is not None:
        log_in(client, login, _KAZOO_LOG)
    return client


def _unreachable(
    server: str, error: Exception, client: KazooClient, timeout_ms: int
) -> EnsembleUnreachable:
    connection = client._connection
    if isinstance(connection, LoginConnection) and connection.is_rejected:
        login = connection.login
        return LoginRejected(
            f"ZooKeeper at {server} rejects the user {login.username!r} of {login.source}: correct "
            "user and password, or add them to the section Server of the servers' JAAS file (a tree "
            "that brokers keep themselves has no users)"
        )
    if isinstance(error, exceptions.NoAuthError):
        return EnsembleUnreachable(
            f"ZooKeeper at {server} denies access to the path: connect as a user that its access "
            "control list names, with KAFKA_OPTS=-Djava.security.auth.login.config=FILE"
        )
    return EnsembleUnreachable(
        f"ZooKeeper at {server} does not respond within {timeout_ms / 1000:g} s: start it, or name "
        "another as HOST:PORT[,HOST:PORT…][/PATH]"
    )


@functools.cache
def _kazoo_acl(entries: tuple[NodeAcl, ...]) -> list[ACL]:
    return [ACL(entry.permissions, Id(entry.scheme, entry.id)) for entry in entries]


async def _connect(
    client: KazooClient, loop: asyncio.AbstractEventLoop, timeout_seconds: float
) -> None:
    """Return when the client has a session; TimeoutError if no server responds in time."""
    connected = loop.create_future()

    def changed(state: str) -> None:
        if state == KazooState.CONNECTED and not connected.done():
            connected.set_result(None)

    client.add_listener(partial(_from_thread, loop, changed))
    client.start_async()
    async with asyncio.timeout(timeout_seconds):
        await connected
        if isinstance(client._connection, LoginConnection):
            # kazoo logs in after it has announced the connection, and before the first request.
            response = loop.create_future()
            request = client.exists_async(ROOT)
            request.rawlink(partial(_from_thread, loop, partial(_settle, response)))
            await response


def _from_thread(
    loop: asyncio.AbstractEventLoop, call: Callable[..., None], *arguments: Any
) -> None:
    """Schedule a call on the loop; ignore it if the loop is closed."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(call, *arguments)


def _settle(response: "asyncio.Future[Any]", result: Any) -> None:
    if response.done():
        return
    if result.successful():
        response.set_result(result.get_nowait())
    else:
        response.set_exception(result.exception)


def _cut_off(client: KazooClient) -> None:
    """Close the connection without the request that ends the session (kazoo has no public way)."""
    client._stopped.set()
    # AttributeError: kazoo is between two connections.
    with contextlib.suppress(OSError, AttributeError):
        client._connection._socket.shutdown(_BOTH_DIRECTIONS)
    client._connection.stop(_CUT_OFF_SECONDS)
    client.close()


def _put_away(client: KazooClient) -> None:
    client.stop()
    client.close()


def _translated(error: Exception, path: str) -> OttlaError:
    for kazoo_error, ours in _ERRORS.items():
        if isinstance(error, kazoo_error):
            return ours(path)
    return OttlaError(f"ZooKeeper refused {path}: {type(error).__name__} {error}".rstrip())


def _done(operations: Sequence[Operation], responses: Sequence[Any]) -> list[tuple[Operation, Any]]:
    """Pair operations with their results; raise the error of the one that failed."""
    for operation, response in zip(operations, responses, strict=True):
        skipped = isinstance(response, exceptions.RolledBackError | exceptions.RuntimeInconsistency)
        if isinstance(response, Exception) and not skipped:
            raise _translated(response, operation.path) from response
    return list(zip(operations, responses, strict=True))


def _result(operation: Operation, response: Any) -> Result:
    if isinstance(operation, Create):
        return str(response)
    return _stat(response) if isinstance(operation, SetData) else None


def _stat(stat: ZnodeStat) -> Stat:
    return Stat(stat.czxid, stat.mzxid, stat.version, stat.cversion, stat.ephemeralOwner)
