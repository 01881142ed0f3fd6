"""ZooKeeper's wire format (jute): requests to operations of the tree, results to replies. Pure.

Every number is big-endian; strings and buffers have a length of four bytes, -1 for null; every
packet has its length in front. Versions do not exist: the format is the same in ZooKeeper 3.4 to
3.9. Follows zookeeper.jute, org.apache.zookeeper.ZooDefs and
org.apache.zookeeper.MultiOperationRecord.

Not done: access control lists (every node is open to everyone), containers and nodes with a
time-to-live, reconfiguration, persistent watches.
"""

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from ottla.base.errors import ProtocolError
from ottla.cluster.zk.port import (
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
    SessionLost,
    SetData,
)

# ZooKeeper's jute.maxbuffer: a longer packet closes the connection.
PACKET_BYTES_MAX = 0xFFFFF

NOTIFICATION_XID = -1
_CONNECTED_STATE = 3
_EPHEMERAL, _SEQUENTIAL = 1, 2
_FLAGS_MAX = _EPHEMERAL | _SEQUENTIAL
_ALL_PERMISSIONS = 31

_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_REPLY = struct.Struct(">iqi")  # xid, zxid, error
_STAT = struct.Struct(">qqqqiiiqiiq")
_MULTI = struct.Struct(">i?i")  # operation, is the last, error
_MULTI_END = _MULTI.pack(-1, True, -1)
_CONNECT_REPLY = struct.Struct(">iiq")  # protocol version, timeout, session id


class OpCode(IntEnum):
    """The requests that the server performs (ZooDefs.OpCode)."""

    CREATE = 1
    DELETE = 2
    EXISTS = 3
    GET_DATA = 4
    SET_DATA = 5
    GET_ACL = 6
    SET_ACL = 7
    GET_CHILDREN = 8
    SYNC = 9
    PING = 11
    GET_CHILDREN2 = 12
    CHECK = 13
    MULTI = 14
    CREATE2 = 15
    AUTH = 100
    SET_WATCHES = 101
    SASL = 102
    GET_EPHEMERALS = 103
    CLOSE_SESSION = -11


class Code(IntEnum):
    """The error codes of replies (KeeperException.Code)."""

    OK = 0
    RUNTIME_INCONSISTENCY = -2
    UNIMPLEMENTED = -6
    BAD_ARGUMENTS = -8
    NO_NODE = -101
    NO_AUTH = -102
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    SESSION_EXPIRED = -112
    AUTH_FAILED = -115


CODES: dict[type[CoordinationError], Code] = {
    NoNode: Code.NO_NODE,
    BadVersion: Code.BAD_VERSION,
    NoChildrenForEphemerals: Code.NO_CHILDREN_FOR_EPHEMERALS,
    NodeExists: Code.NODE_EXISTS,
    NotEmpty: Code.NOT_EMPTY,
    SessionLost: Code.SESSION_EXPIRED,
}


class RequestRefused(Exception):
    """A request that is refused before the tree sees it, with the code of the reply."""

    def __init__(self, code: Code) -> None:
        super().__init__(code.name)
        self.code = code


class NodeStat(NamedTuple):
    """The metadata of a node in the order of a Stat record; times in ms since 1970."""

    czxid: int
    mzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    children_version: int
    owner: int
    data_length: int
    children_count: int

    def encode(self) -> bytes:
        """Return the Stat record; pzxid is the last change of the node itself."""
        czxid, mzxid, ctime, mtime, version, cversion, owner, length, count = self
        times = ctime, mtime
        return _STAT.pack(czxid, mzxid, *times, version, cversion, 0, owner, length, count, mzxid)


class ConnectRequest(NamedTuple):
    """The first packet of a connection; `session_id` 0 starts a session."""

    timeout_ms: int
    session_id: int
    password: bytes
    knows_read_only: bool


class SetWatches(NamedTuple):
    """The watches of a client that has reconnected; it has seen changes up to `zxid`."""

    zxid: int
    data: list[str]
    existence: list[str]
    children: list[str]


class Reader:
    """Fields of a packet, in order; ProtocolError if one is incomplete or not UTF-8."""

    def __init__(self, packet: bytes) -> None:
        self._packet = packet
        self._position = 0

    @property
    def is_at_end(self) -> bool:
        """Return True if no field follows."""
        return self._position >= len(self._packet)

    def integer(self) -> int:
        """Read an int."""
        return int(_INT.unpack(self._take(_INT.size))[0])

    def long(self) -> int:
        """Read a long."""
        return int(_LONG.unpack(self._take(_LONG.size))[0])

    def boolean(self) -> bool:
        """Read a boolean."""
        return self._take(1) != b"\0"

    def buffer(self) -> bytes:
        """Read a buffer; null is empty."""
        return self._take(max(self.integer(), 0))

    def text(self) -> str:
        """Read a string; null is empty."""
        try:
            return self.buffer().decode()
        except UnicodeDecodeError as error:
            raise ProtocolError("a string of a ZooKeeper packet is not UTF-8") from error

    def texts(self) -> list[str]:
        """Read a vector of strings."""
        return [self.text() for _ in range(self._count())]

    def multi_header(self) -> tuple[int, bool]:
        """Read what precedes an operation of a transaction: its code, or that it has ended."""
        code, is_last, _ = _MULTI.unpack(self._take(_MULTI.size))
        return code, is_last

    def skip_acl(self) -> None:
        """Skip an access control list."""
        for _ in range(self._count()):
            self.integer()
            self.buffer()
            self.buffer()

    def _count(self) -> int:
        count = self.integer()
        # Each element has at least four bytes.
        if count * _INT.size > len(self._packet) - self._position:
            raise ProtocolError("a vector of a ZooKeeper packet exceeds the packet")
        return count

    def _take(self, count: int) -> bytes:
        end = self._position + count
        if end > len(self._packet):
            raise ProtocolError("a ZooKeeper packet ends within a field")
        data = self._packet[self._position : end]
        self._position = end
        return data


# -- requests
# -----------------------------------------------------------------------------------------


def read_connect(packet: bytes) -> ConnectRequest:
    """Parse the first packet of a connection."""
    fields = Reader(packet)
    fields.integer()
    fields.long()
    timeout_ms, session_id, password = fields.integer(), fields.long(), fields.buffer()
    # Clients older than 3.4 do not send the flag and do not expect it in the reply.
    return ConnectRequest(timeout_ms, session_id, password, not fields.is_at_end)


def read_set_watches(fields: Reader) -> SetWatches:
    """Parse the watches of a client that has reconnected."""
    return SetWatches(fields.long(), fields.texts(), fields.texts(), fields.texts())


def read_operation(code: int, fields: Reader) -> Operation:
    """Parse one operation that writes, or a check; RequestRefused if the tree cannot perform it."""
    path = fields.text()
    if code in (OpCode.CREATE, OpCode.CREATE2):
        data = fields.buffer()
        fields.skip_acl()
        flags = fields.integer()
        if not 0 <= flags <= _FLAGS_MAX:
            raise RequestRefused(Code.UNIMPLEMENTED)
        is_sequential = bool(flags & _SEQUENTIAL)
        _check(path, is_written=True, may_end_open=is_sequential)
        return Create(path, data, bool(flags & _EPHEMERAL), is_sequential)
    if code == OpCode.SET_DATA:
        operation: Operation = SetData(path, fields.buffer(), fields.integer())
    elif code == OpCode.DELETE:
        operation = Delete(path, fields.integer())
    elif code == OpCode.CHECK:
        operation = Check(path, fields.integer())
    else:
        raise RequestRefused(Code.UNIMPLEMENTED)
    _check(path, is_written=not isinstance(operation, Check | SetData) or path != "/")
    return operation


def read_multi(fields: Reader) -> list[tuple[int, Operation]]:
    """Parse the operations of a transaction, each with its code."""
    operations: list[tuple[int, Operation]] = []
    while True:
        code, is_last = fields.multi_header()
        if is_last:
            return operations
        operations.append((code, read_operation(code, fields)))


def read_path(fields: Reader) -> str:
    """Parse the path of a request that reads."""
    path = fields.text()
    _check(path, is_written=False)
    return path


def _check(path: str, *, is_written: bool, may_end_open: bool = False) -> None:
    """Refuse paths that are malformed; clients write neither the root nor ZooKeeper's own nodes."""
    checked = f"{path}0" if may_end_open else path
    is_root = checked == "/"
    parts = checked.split("/")[1:]
    if not checked.startswith("/") or "\0" in checked:
        raise RequestRefused(Code.BAD_ARGUMENTS)
    if not is_root and any(part in ("", ".", "..") for part in parts):
        raise RequestRefused(Code.BAD_ARGUMENTS)
    if is_written and is_root:
        raise RequestRefused(Code.BAD_ARGUMENTS)
    if is_written and parts[0] == "zookeeper":
        raise RequestRefused(Code.NO_AUTH)


# -- replies
# ------------------------------------------------------------------------------------------


def framed(packet: bytes) -> bytes:
    """Return a packet with its length in front."""
    return _INT.pack(len(packet)) + packet


def connect_reply(
    timeout_ms: int, session_id: int, password: bytes, *, knows_read_only: bool
) -> bytes:
    """Return the response packet to a ConnectRequest; a timeout of 0 means that the session
    expired.
    """
    fields = _CONNECT_REPLY.pack(0, timeout_ms, session_id)
    return framed(fields + buffer(password) + (b"\0" if knows_read_only else b""))


def reply(xid: int, zxid: int, code: int, body: bytes = b"") -> bytes:
    """Return the response packet to a request."""
    return framed(_REPLY.pack(xid, zxid, code) + body)


def notification(event: int, path: str) -> bytes:
    """Return the packet that announces a change to a client that watches `path`."""
    body = _INT.pack(event) + _INT.pack(_CONNECTED_STATE) + text(path)
    return reply(NOTIFICATION_XID, -1, Code.OK, body)


def text(value: str) -> bytes:
    """Return a string field."""
    return buffer(value.encode())


def buffer(value: bytes) -> bytes:
    """Return a buffer field."""
    return _INT.pack(len(value)) + value


def texts(values: Sequence[str]) -> bytes:
    """Return a vector of strings."""
    return _INT.pack(len(values)) + b"".join(map(text, values))


def open_acl() -> bytes:
    """Return the access control list that lets everyone do everything: world:anyone."""
    return _INT.pack(1) + _INT.pack(_ALL_PERMISSIONS) + text("world") + text("anyone")


def multi_reply(parts: Sequence[tuple[int, bytes]]) -> bytes:
    """Return the body for a transaction that was performed: a code and a result for each operation."""
    return b"".join(_MULTI.pack(code, False, 0) + body for code, body in parts) + _MULTI_END


def failed_multi_reply(count: int, failed: int, code: Code) -> bytes:
    """Return the body for a transaction of `count` operations of which number `failed` failed."""
    codes = [Code.OK] * failed + [code] + [Code.RUNTIME_INCONSISTENCY] * (count - failed - 1)
    parts = [_MULTI.pack(-1, False, code) + _INT.pack(code) for code in codes]
    return b"".join(parts) + _MULTI_END
