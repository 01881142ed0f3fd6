"""The directory of a broker's coordination tree: coordination.dir, else the first log directory.

This must not create a second cluster by accident. If the tree is in another log directory, because
their order or the setting was changed, or if it is missing while the logs belong to a cluster, the
start fails with a message that says what to do. Nothing is written before these checks have passed.
"""

from collections.abc import Mapping

from ottla.base.errors import ConfigError
from ottla.base.files import FileSystem
from ottla.base.options import Snapshot
from ottla.cluster.zk.journal import JOURNAL_PREFIX, SNAPSHOT
from ottla.storage.directories.log_directory import check_owners

# Apache Kafka with KRaft has the first one in a formatted directory, and the second one in one with
# which a node has started.
_KRAFT_FORMAT = "bootstrap.checkpoint"
_KRAFT_LOG = "__cluster_metadata-0"


def tree_directory(snapshot: Snapshot, files: FileSystem) -> str:
    """Return the directory; raises ConfigError if the tree is in another one, or missing."""
    log_directories = list(dict.fromkeys(snapshot.strings("log.dirs")))
    chosen: str = snapshot["coordination.dir"] or log_directories[0]
    has_tree = _has_tree(files, chosen)
    if not has_tree:
        _refuse_other_place(chosen, log_directories, files)
    clusters = check_owners(files, log_directories, snapshot.integer("node.id"))
    if clusters and not has_tree:
        _refuse_kraft(clusters, files)
        _refuse_missing(chosen, *next(iter(clusters.items())))
    return chosen


def _refuse_other_place(chosen: str, log_directories: list[str], files: FileSystem) -> None:
    for other in log_directories:
        if other != chosen and _has_tree(files, other):
            raise ConfigError(
                f"The cluster's metadata is in {other}, not in {chosen}: set "
                f"coordination.dir={other}, or move the files named cluster.* from there to "
                f"{chosen} while the broker is stopped."
            )


def _refuse_kraft(clusters: Mapping[str, str], files: FileSystem) -> None:
    """Raise ConfigError if one of the directories is of Apache Kafka with KRaft."""
    for directory, cluster_id in clusters.items():
        if files.exists(f"{directory}/{_KRAFT_LOG}"):
            raise ConfigError(
                f"{directory} holds data of Apache Kafka with KRaft, whose metadata Ottla cannot "
                f"read. Start with another directory, and copy the topics from the running Apache "
                f"Kafka: 'ottla topic copy --help' shows how."
            )
        if files.exists(f"{directory}/{_KRAFT_FORMAT}"):
            raise ConfigError(
                f"{directory} has no data yet, but Apache Kafka's kafka-storage has formatted it. "
                f"Delete meta.properties and {_KRAFT_FORMAT} in it: Ottla needs no formatting. To "
                f"keep the id of the cluster, run 'ottla log format --data {directory} --cluster-id "
                f"{cluster_id}' then."
            )


def _refuse_missing(chosen: str, log_directory: str, cluster_id: str) -> None:
    raise ConfigError(
        f"{log_directory} holds data of the cluster {cluster_id}, but the cluster's metadata (files "
        f"named cluster.*) is missing from {chosen}. Restore these files from a backup, or set "
        f"coordination.dir to the directory that has them. If the data is of Apache Kafka with "
        f"ZooKeeper, set zookeeper.connect, or run 'ottla zookeeper import --connect HOST:PORT "
        f"--data {chosen}'."
    )


def _has_tree(files: FileSystem, folder: str) -> bool:
    try:
        names = files.list(folder)
    except OSError:
        # The directory does not exist or cannot be read, which is reported when it is opened.
        return False
    return any(name == SNAPSHOT or name.startswith(JOURNAL_PREFIX) for name in names)
