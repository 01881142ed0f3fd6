"""A ZooKeeper tree, read-only, if the settings of a cluster name an ensemble."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoAuthError, NoNodeError

from ottla.base.errors import ConfigError
from ottla.operations.survey.connections import ClusterConnection, ClusterUnavailable
from ottla.security.zookeeper.connection import log_in

_log = logging.getLogger(__name__)

# As cluster.secured_znodes: nodes that only the user of the brokers may read, also below a chroot.
_SECRET = ("/config/brokers/", "/config/users/", "/delegation_token/", "/ottla/")
_HIDDEN = "••••••".encode()


@dataclass(frozen=True, slots=True)
class Znode:
    """A node of the tree; `text` is its value, indented if it is JSON, `hex` if it is not text.

    `ephemeral_owner` is 0 for a persistent node.
    """

    path: str
    children: tuple[str, ...]
    text: str
    is_hex: bool
    is_truncated: bool
    size_bytes: int
    version: int
    children_version: int
    created_ms: int
    modified_ms: int
    created_zxid: int
    modified_zxid: int
    ephemeral_owner: int


def _has_secrets(path: str) -> bool:
    """Return True for a node with keys of passwords or the secret of the brokers."""
    return any(part in f"{path}/" for part in _SECRET)


def has_tree(connection: ClusterConnection) -> bool:
    """Return True if the settings of the cluster name a ZooKeeper ensemble."""
    return connection.settings.zookeeper is not None


def read_znode(connection: ClusterConnection, path: str = "/") -> Znode:
    """Return a node with the names of its children; ConfigError if there is no ensemble or node.

    ClusterUnavailable if no server of the ensemble responds.
    """
    if not path.startswith("/") or (path != "/" and path.endswith("/")) or "//" in path:
        raise ConfigError(f"{path!r} is not a path: write it as in /brokers/ids")
    with _session(connection) as client:
        try:
            data, stat = client.get(path)
            children = client.get_children(path)
        except NoNodeError as error:
            raise ConfigError(f"there is no node {path!r}: it may have been deleted") from error
        except NoAuthError as error:
            raise ConfigError(
                f"only the user of the brokers may read {path!r}: use `ottla zookeeper shell` with "
                "KAFKA_OPTS"
            ) from error
        except (KazooException, client.handler.timeout_exception) as error:
            raise _unavailable(connection, error) from error
    text, is_hex, is_truncated = _shown(_HIDDEN if _has_secrets(path) else data or b"")
    return Znode(
        path=path,
        children=tuple(sorted(children)),
        text=text,
        is_hex=is_hex,
        is_truncated=is_truncated,
        size_bytes=stat.dataLength,
        version=stat.version,
        children_version=stat.cversion,
        created_ms=stat.ctime,
        modified_ms=stat.mtime,
        created_zxid=stat.czxid,
        modified_zxid=stat.mzxid,
        ephemeral_owner=stat.ephemeralOwner,
    )


def run_four_letter_command(connection: ClusterConnection, command: str) -> str:
    """Return the answer of one server to "ruok", "srvr", "mntr", "stat" or "conf".

    Servers answer only the commands of their option 4lw.commands.whitelist.
    """
    if command not in COMMANDS:
        raise ConfigError(f"{command!r} is not a command: choose one of {', '.join(COMMANDS)}")
    with _session(connection) as client:
        try:
            return str(client.command(command.encode()))
        except (KazooException, OSError, client.handler.timeout_exception) as error:
            raise _unavailable(connection, error) from error


COMMANDS = ("ruok", "srvr", "mntr", "stat", "conf")
_TEXT_MAX = 100_000
_TIMEOUT_S = 5.0


@contextmanager
def _session(connection: ClusterConnection) -> Iterator[KazooClient]:
    """Open a read-only session for one request; each closes its own."""
    hosts = connection.settings.zookeeper
    if hosts is None:
        raise ConfigError(
            f"the settings of cluster {connection.name!r} name no ZooKeeper ensemble, and its broker "
            "keeps its tree in its own process"
        )
    client = KazooClient(hosts=hosts, timeout=_TIMEOUT_S, read_only=True)
    login = connection.settings.zookeeper_login
    if login is not None:
        log_in(client, login, _log)
    try:
        try:
            client.start(timeout=_TIMEOUT_S)
        except (KazooException, client.handler.timeout_exception) as error:
            raise _unavailable(connection, error) from error
        yield client
    finally:
        client.stop()
        client.close()


def _unavailable(connection: ClusterConnection, error: Exception) -> ClusterUnavailable:
    return ClusterUnavailable(
        f"The ZooKeeper ensemble {connection.settings.zookeeper} of cluster {connection.name!r} does "
        f"not respond: {error or type(error).__name__}. Check that it is running."
    )


def _shown(data: bytes) -> tuple[str, bool, bool]:
    """Return a value as text, with flags for hexadecimal and for cut text; JSON is indented."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data[: _TEXT_MAX // 2].hex(), True, len(data) > _TEXT_MAX // 2
    try:
        if text[:1] in ("{", "["):
            text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text[:_TEXT_MAX], False, len(text) > _TEXT_MAX
    return text[:_TEXT_MAX], False, len(text) > _TEXT_MAX
