"""Formatting of a broker's log directories: a new cluster with a chosen id, before the first start.

A broker creates its directories and its cluster's id by itself; formatting is for those who choose
the id, as Apache Kafka's kafka-storage demands. Owners have version 1 if the configuration has
process.roles, else version 0. The coordination tree is written first, with the id: a directory that
has an owner but no tree has lost its cluster's metadata (`directory`).
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.base.clock import Clock
from ottla.base.errors import ConfigError
from ottla.base.files import FileSystem
from ottla.base.options import Snapshot
from ottla.base.rng import Rng
from ottla.cluster import zookeeper_transfer
from ottla.cluster.options.roles import refuse_separate_cluster
from ottla.cluster.zk.embedded import EmbeddedTree
from ottla.cluster.zk.port import Create
from ottla.cluster.znodes import ClusterIdNode, ConfigNode, FeatureNode
from ottla.server.coordination.directory import tree_directory
from ottla.storage.directories import formatting
from ottla.storage.files.meta_properties import KRAFT, ZOOKEEPER, MetaProperties


class Format(NamedTuple):
    """The content: the cluster's id, the levels of its features (None: the highest), and the id
    of the first log directory (None: a new one).
    """

    cluster_id: str
    levels: Mapping[str, int] | None = None
    directory_id: str | None = None
    ignores_formatted: bool = False
    # The settings of users, by their names.
    users: Mapping[str, Mapping[str, str]] = {}


class Formatted(NamedTuple):
    """The directories that were formatted, and those that could not be read."""

    directories: Sequence[str]
    unreadable: Sequence[str]


def format_directories(
    options: Snapshot,
    wanted: Format,
    *,
    files: FileSystem,
    clock: Clock,
    rng: Rng,
) -> Formatted:
    """Format the log directories that have no owner.

    Raises ConfigError or StorageError with a sentence for the administrator. Nothing has been
    written then, unless a disk has failed.
    """
    _check(options, wanted)
    log_directories = options.strings("log.dirs")
    node_id = options.integer("node.id")
    owners = formatting.read_owners(files, log_directories)
    formatting.verify(owners, wanted.cluster_id, node_id)
    empty = formatting.select_empty(owners, ignores_formatted=wanted.ignores_formatted)
    if empty:
        tree = tree_directory(options, files)
        asyncio.run(_store_cluster(EmbeddedTree(files, clock, tree), tree, wanted))
    is_kraft = bool(options["process.roles"])
    for directory in empty:
        is_first = directory == log_directories[0]
        own_id = (is_first and wanted.directory_id) or formatting.directory_id(rng)
        owner = (
            MetaProperties(KRAFT, wanted.cluster_id, node_id, own_id)
            if is_kraft
            else MetaProperties(ZOOKEEPER, wanted.cluster_id, node_id)
        )
        formatting.write_owner(files, directory, owner)
    return Formatted(empty, owners.unreadable)


def _check(options: Snapshot, wanted: Format) -> None:
    if not wanted.cluster_id.strip() or not wanted.cluster_id.isprintable():
        raise ConfigError(
            f"{wanted.cluster_id!r} cannot be the id of a cluster: use the output of "
            "`kafka-storage random-uuid`"
        )
    if options.text("zookeeper.connect"):
        raise ConfigError(
            "with zookeeper.connect the id of the cluster is in ZooKeeper, and the broker creates "
            "its log directories: no directory needs to be formatted"
        )
    if not options.text("coordination.listener"):
        refuse_separate_cluster(options)


async def _store_cluster(tree: EmbeddedTree, directory: str, wanted: Format) -> None:
    try:
        session = tree.session()
        existing_id = await zookeeper_transfer.cluster_id(session)
        if existing_id is None:
            operations = [Create(ClusterIdNode.PATH, ClusterIdNode.encode(wanted.cluster_id))]
            if wanted.levels is not None:
                levels = {name: level for name, level in wanted.levels.items() if level}
                operations.append(Create(FeatureNode.PATH, FeatureNode.encode(levels)))
            await session.ensure(ClusterIdNode.PATH.rpartition("/")[0])
            await session.ensure(ConfigNode.type_path(ConfigNode.USERS))
            for name, settings in wanted.users.items():
                path = ConfigNode.path(ConfigNode.USERS, ConfigNode.sanitize(name))
                operations.append(Create(path, ConfigNode.encode(settings)))
            await session.multi(operations)
        elif existing_id != wanted.cluster_id:
            raise ConfigError(
                f"{directory} holds the metadata of the cluster {existing_id}, not of "
                f"{wanted.cluster_id}: format with that id, or choose another directory"
            )
    finally:
        await tree.close()
