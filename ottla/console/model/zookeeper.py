"""A ZooKeeper tree, read-only, if the settings of a cluster name an ensemble."""

from dataclasses import dataclass

from ottla.console.model.connections import ClusterConnection, planned


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


def has_tree(connection: ClusterConnection) -> bool:
    """Return True if the settings of the cluster name a ZooKeeper ensemble."""
    return connection.settings.zookeeper is not None


def read_znode(connection: ClusterConnection, path: str = "/") -> Znode:
    """Return a node with the names of its children; ConfigError if there is no ensemble or node."""
    raise planned()


def run_four_letter_command(connection: ClusterConnection, command: str) -> str:
    """Return the answer of the ensemble's first server to "ruok", "srvr", "mntr", "stat" or "conf"."""
    raise planned()
