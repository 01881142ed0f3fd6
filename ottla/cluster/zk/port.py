"""The Coordination port: a versioned tree with ephemerals, watches, sequential names and sessions.

The contract is ZooKeeper's, so that a real ensemble and the embedded tree are interchangeable; one
contract test suite runs against every implementation. Watches are one-shot and fire on the event
loop once the change that they announce can be read. A session belongs to one event loop.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from ottla.base.errors import OttlaError

ANY_VERSION = -1


class CoordinationError(OttlaError):
    """Root of the errors of the tree; `path` is the node concerned.

    `index` is the position of the operation that failed in its multi, if that is known.
    """

    ADVICE = ""

    def __init__(self, path: str) -> None:
        super().__init__(f"{type(self).__name__}: {path}{self.ADVICE}")
        self.path = path
        self.index = 0


class NoNode(CoordinationError):
    """The node, or the parent of the node to create, does not exist."""


class NodeExists(CoordinationError):
    """The node to create exists."""


class BadVersion(CoordinationError):
    """The node has another version than the caller expected."""


class NotEmpty(CoordinationError):
    """The node to delete has children."""


class NoChildrenForEphemerals(CoordinationError):
    """The parent of the node to create is ephemeral."""


class NoAuth(CoordinationError):
    """The node's access control list does not permit the operation to the user of the session."""

    ADVICE = (
        ": ZooKeeper denies access: set KAFKA_OPTS=-Djava.security.auth.login.config=FILE, with a "
        "user that the node's access control list names; a tree that brokers share has the file "
        "cluster.jaas in its coordination.dir"
    )


class InvalidAcl(CoordinationError):
    """The access control list to store names no user, or the user of a session without one."""


class SessionLost(CoordinationError):
    """The session has expired: its ephemeral nodes are removed, and the client must register again."""


class ConnectionSuspended(CoordinationError):
    """The ensemble cannot be reached; the operation may or may not have happened."""


class EnsembleUnreachable(OttlaError):
    """No server of the ensemble responds, or the ensemble rejects the session."""


class LoginRejected(EnsembleUnreachable):
    """The ensemble does not accept the user."""


class SessionState(Enum):
    """State of a session; SUSPENDED means stop acting, LOST means register again."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    LOST = "lost"


class Stat(NamedTuple):
    """The metadata of a node; `czxid` of a broker's node is the broker epoch."""

    czxid: int
    mzxid: int
    version: int
    children_version: int
    ephemeral_owner: int


@dataclass(frozen=True, slots=True)
class Create:
    """Operation of a multi: create a node. `sequential` appends ten digits to the path."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False


@dataclass(frozen=True, slots=True)
class SetData:
    """Operation of a multi: replace a node's data."""

    path: str
    data: bytes
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Delete:
    """Operation of a multi: remove a node without children."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Check:
    """Operation of a multi: fail all operations unless the node has this version."""

    path: str
    version: int


Operation = Create | SetData | Delete | Check
# A created path, the Stat of changed data, or None.
Result = str | Stat | None
Watch = Callable[[str], None]


class Coordination(Protocol):
    """One session with the tree."""

    @property
    def session_id(self) -> int:
        """Identity of the session; owner of its ephemeral nodes."""
        ...

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        """Return data and Stat; raise NoNode, without setting a watch, if the node does not exist."""
        ...

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        """Return the Stat or None; the watch fires on creation, change and deletion."""
        ...

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """Return the names of the children, sorted; the watch fires when one comes or goes."""
        ...

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        """Create a node and return its path; NodeExists, NoNode (parent)."""
        ...

    async def ensure(self, path: str) -> None:
        """Create the node and its parents, empty, if they do not exist."""
        ...

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        """Replace the data; NoNode, BadVersion."""
        ...

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove a node; NoNode, BadVersion, NotEmpty."""
        ...

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """Apply all operations or none; raise the error of the first that fails."""
        ...

    def on_session(self, listener: Callable[[SessionState], None]) -> None:
        """Call `listener` on every change of the session's state."""
        ...

    async def close(self) -> None:
        """End the session; its ephemeral nodes are removed at once."""
        ...
