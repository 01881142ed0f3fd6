"""The content of `meta.properties`, which names the owner of a log directory; pure.

Version 0 is of brokers on ZooKeeper, version 1 of KRaft nodes; a broker of Ottla reads both.
Follows org.apache.kafka.metadata.properties.MetaProperties.
"""

from typing import NamedTuple

from ottla.storage.files.checkpoints import encode_properties, parse_properties

ZOOKEEPER, KRAFT = 0, 1
_NODE_ID = {ZOOKEEPER: "broker.id", KRAFT: "node.id"}
VERSIONS = frozenset(map(str, _NODE_ID))


class MetaProperties(NamedTuple):
    """The owner; a directory of version 0 may lack each field but the version."""

    version: int
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None = None

    def fields(self) -> dict[str, str]:
        """Return the entries of the file by name, sorted."""
        entries = {
            "cluster.id": self.cluster_id,
            "directory.id": self.directory_id,
            _NODE_ID[self.version]: None if self.node_id is None else str(self.node_id),
            "version": str(self.version),
        }
        return {name: text for name, text in sorted(entries.items()) if text is not None}


def encode(owner: MetaProperties) -> bytes:
    """Return the content of the file."""
    return encode_properties(owner.fields())


def parse(data: bytes) -> MetaProperties:
    """Return the owner; raise ValueError, with Kafka's sentence, if the file is damaged."""
    properties = parse_properties(data)
    version = int(properties.get("version", ""))
    if version not in _NODE_ID:
        raise ValueError(f"Unknown meta.properties version number {version}")
    node_id = properties.get(_NODE_ID[version])
    if version == KRAFT:
        for name in ("cluster.id", "node.id"):
            if name not in properties:
                raise ValueError(f"{name} was not found.")
    return MetaProperties(
        version,
        properties.get("cluster.id"),
        None if node_id is None else int(node_id),
        properties.get("directory.id"),
    )
