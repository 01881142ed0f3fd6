"""The owners of log directories before a broker opens them: read, verified, written.

Synchronous. Sentences are the same as in Apache Kafka 4.3, because people and programs look for
them. Follows org.apache.kafka.metadata.properties.MetaPropertiesEnsemble and
kafka.tools.StorageTool.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ottla.base import uuids
from ottla.base.errors import ConfigError
from ottla.base.files import FileSystem, make_directories_durably
from ottla.base.rng import Rng
from ottla.storage.files import meta_properties
from ottla.storage.files.checkpoints import META_PROPERTIES_FILE
from ottla.storage.files.meta_properties import KRAFT, ZOOKEEPER, MetaProperties

_LEGACY = (
    "The kafka configuration file appears to be for a cluster in KRaft mode, but the directories "
    "are formatted for legacy mode."
)
_NOT_LEGACY = (
    "The kafka configuration file appears to be for a legacy cluster, but the directories are "
    "formatted for a cluster in KRaft mode."
)


class Owners(NamedTuple):
    """Directories without an owner, with an owner that cannot be read, and with one that can."""

    empty: Sequence[str]
    unreadable: Sequence[str]
    by_directory: Mapping[str, MetaProperties]


class Report(NamedTuple):
    """The directories that exist, the first owner, and what must be corrected."""

    found: Sequence[str]
    owner: MetaProperties | None
    problems: Sequence[str]


def read_owners(files: FileSystem, directories: Iterable[str]) -> Owners:
    """Read which node each directory belongs to."""
    empty, unreadable, by_directory = [], [], {}
    for directory in sorted(set(directories)):
        try:
            owner = _read(files, directory)
        except (OSError, ValueError):
            unreadable.append(directory)
            continue
        if owner is None:
            empty.append(directory)
        else:
            by_directory[directory] = owner
    return Owners(empty, unreadable, by_directory)


def verify(owners: Owners, cluster_id: str, node_id: int) -> None:
    """Raise ConfigError if a directory belongs to another cluster or node."""
    for directory, owner in owners.by_directory.items():
        path = f"{directory}/{META_PROPERTIES_FILE}"
        if owner.cluster_id not in (None, cluster_id):
            raise ConfigError(
                f"Invalid cluster.id in: {path}. Expected {cluster_id}, but read {owner.cluster_id}"
            )
        if owner.node_id not in (None, node_id):
            raise ConfigError(
                f"Stored node id {owner.node_id} doesn't match previous node id {node_id} in {path}."
                " If you moved your data, make sure your configured node id matches. If you intend "
                "to create a new node, you should remove all data in your data directories."
            )


def select_empty(owners: Owners, *, ignores_formatted: bool) -> Sequence[str]:
    """Return the directories to format.

    Raises ConfigError if a directory has been formatted, unless that is to be ignored, or if none
    can be read.
    """
    if owners.by_directory and not ignores_formatted:
        raise ConfigError(
            f"Log directory {next(iter(owners.by_directory))} is already formatted. Use "
            "--ignore-formatted to ignore this directory and format the others."
        )
    if not owners.empty and not owners.by_directory:
        raise ConfigError("No available log directories to format.")
    return owners.empty


def write_owner(files: FileSystem, directory: str, owner: MetaProperties) -> None:
    """Create a directory if it does not exist, and write its owner; ConfigError if it cannot."""
    try:
        make_directories_durably(files, directory)
        files.replace(f"{directory}/{META_PROPERTIES_FILE}", meta_properties.encode(owner))
    except OSError as error:
        raise ConfigError(
            f"Error while writing meta.properties file {directory}: {error.strerror or error}"
        ) from error


def directory_id(rng: Rng) -> str:
    """Return a new id for a directory."""
    return uuids.uuid_text(uuids.random_uuid(rng))


def examine(files: FileSystem, directories: Iterable[str], *, is_kraft: bool) -> Report:
    """Report on directories; `is_kraft`: the configuration names roles of a KRaft node."""
    found: list[str] = []
    problems: list[str] = []
    first: MetaProperties | None = None
    for directory in sorted(set(directories)):
        if not files.is_directory(directory):
            is_there = files.exists(directory)
            problems.append(f"{directory} {'is not a directory' if is_there else 'does not exist'}")
            continue
        found.append(directory)
        try:
            owner = _read(files, directory)
        except (OSError, ValueError) as error:
            problems.append(f"Error loading {directory}/{META_PROPERTIES_FILE}: {error}")
            continue
        if owner is None:
            problems.append(f"{directory} is not formatted.")
        elif first is None:
            first = owner
        elif first.cluster_id != owner.cluster_id:
            problems.append("Mismatched cluster IDs between storage directories.")
        elif first.node_id != owner.node_id:
            problems.append("Mismatched node IDs between storage directories.")
    if first is not None and first.version != (KRAFT if is_kraft else ZOOKEEPER):
        problems.append(_LEGACY if is_kraft else _NOT_LEGACY)
    return Report(found, first, problems)


def _read(files: FileSystem, directory: str) -> MetaProperties | None:
    path = f"{directory}/{META_PROPERTIES_FILE}"
    if not files.exists(path):
        # A file in place of the directory is an error.
        if files.exists(directory) and not files.is_directory(directory):
            raise NotADirectoryError(directory)
        return None
    return meta_properties.parse(files.read(path))
