"""Operations on topics, their partitions and their options."""

from collections.abc import Mapping, Sequence

from ottla.console.accounts.masked_copies import RecordChoice, copy_masked
from ottla.console.accounts.masking import Masking
from ottla.console.accounts.reading import Reader
from ottla.console.accounts.roles import Role
from ottla.console.api.operations import CLUSTER_PATH, Operation
from ottla.console.model import topics
from ottla.console.model.configs import (
    ConfigKind,
    ConfigPlan,
    ConfigResource,
    ConfigRow,
    alter_config,
    describe_config,
    plan_change,
)
from ottla.console.model.groups import list_topic_groups
from ottla.console.model.log_inspector import BatchRow, PartitionLog, inspect, read_batches
from ottla.console.model.partitions import elect_leaders, list_troubled, read_map
from ottla.operations.changes import Change
from ottla.operations.survey.connections import ClusterConnection


def list_topics(
    connection: ClusterConnection, *, include_internal: bool = False, contains: str = ""
) -> list[topics.TopicRow]:
    """Return the topics by name, optionally only those whose name contains a text."""
    rows = topics.list_topics(connection, include_internal=include_internal)
    return [row for row in rows if contains in row.name]


def copy_topic(
    connection: ClusterConnection,
    reader: Reader,
    masks: Masking,
    name: str,
    *,
    target: str,
    with_records: bool = False,
    is_read_committed: bool = True,
) -> Change:
    """Create a topic with the partitions and overrides of another, optionally with its records.
    Records with masked fields are copied by admins only, and the masking rules with
    them. Records of open and aborted transactions are left out unless `is_read_committed` is false.
    """
    chosen = RecordChoice.of(with_records=with_records, is_read_committed=is_read_committed)
    return copy_masked(connection, reader, masks, name, target, chosen)


def read_statistics(
    connection: ClusterConnection,
    name: str,
    *,
    scan_limit: int = 100_000,
    is_read_committed: bool = True,
) -> topics.TopicStatistics:
    """Scan the newest records of a topic and return rates, sizes, keys and codecs. Records of open
    and aborted transactions are left out unless `is_read_committed` is false.
    """
    return topics.read_statistics(
        connection,
        name,
        scan_limit=min(scan_limit, 1_000_000),
        is_read_committed=is_read_committed,
    )


def inspect_log(connection: ClusterConnection, topic: str, partition: int) -> PartitionLog:
    """Return offsets, leader epochs, producers and replicas of a partition's log."""
    return inspect(connection, topic, partition)


def list_batches(
    connection: ClusterConnection, topic: str, partition: int, *, offset: int
) -> list[BatchRow]:
    """Return the record batches of a partition from the one that contains an offset."""
    return read_batches(connection, topic, partition, offset=offset, limit=1000)


def get_config(connection: ClusterConnection, kind: ConfigKind, name: str) -> list[ConfigRow]:
    """Return the options of a resource. The name of the kind cluster is a dash."""
    return describe_config(connection, _resource(kind, name))


def plan_config(
    connection: ClusterConnection,
    kind: ConfigKind,
    name: str,
    *,
    assign: Mapping[str, str] | None = None,
    delete: Sequence[str] = (),
) -> ConfigPlan:
    """Validate a change of options on the cluster and return its differences; changes nothing."""
    return plan_change(connection, _resource(kind, name), assign=assign, delete=delete)


def alter_topic_config(
    connection: ClusterConnection,
    name: str,
    *,
    assign: Mapping[str, str] | None = None,
    delete: Sequence[str] = (),
) -> Change:
    """Set some options of a topic and reset others, all or nothing."""
    resource = ConfigResource(ConfigKind.TOPIC, name)
    return alter_config(connection, resource, assign=assign, delete=delete)


def alter_any_config(
    connection: ClusterConnection,
    kind: ConfigKind,
    name: str,
    *,
    assign: Mapping[str, str] | None = None,
    delete: Sequence[str] = (),
) -> Change:
    """Set some options of any resource and reset others. The name of the kind cluster is a dash."""
    return alter_config(connection, _resource(kind, name), assign=assign, delete=delete)


def _resource(kind: ConfigKind, name: str) -> ConfigResource:
    return ConfigResource(kind, "" if kind is ConfigKind.CLUSTER else name)


_TOPICS = f"{CLUSTER_PATH}/topics"
_TOPIC = f"{_TOPICS}/{{name}}"
_PARTITION = f"{_TOPICS}/{{topic}}/partitions/{{partition}}"
_CONFIG = f"{CLUSTER_PATH}/configs/{{kind}}/{{name}}"

OPERATIONS = (
    Operation("GET", _TOPICS, Role.VIEWER, list_topics, "topics"),
    Operation("POST", _TOPICS, Role.EDITOR, topics.create_topic, "topics"),
    Operation("GET", _TOPIC, Role.VIEWER, topics.describe_topic, "topics"),
    Operation("DELETE", _TOPIC, Role.EDITOR, topics.delete_topic, "topics"),
    Operation("PATCH", f"{_TOPIC}/config", Role.EDITOR, alter_topic_config, "topics"),
    Operation("POST", f"{_TOPIC}/partitions", Role.EDITOR, topics.add_partitions, "topics"),
    Operation("POST", f"{_TOPIC}/empty", Role.EDITOR, topics.empty_topic, "topics"),
    Operation("POST", f"{_TOPIC}/delete-records", Role.EDITOR, topics.delete_records, "topics"),
    Operation("POST", f"{_TOPIC}/copy", Role.EDITOR, copy_topic, "topics"),
    Operation("GET", f"{_TOPIC}/statistics", Role.VIEWER, read_statistics, "topics"),
    Operation("GET", f"{_TOPICS}/{{topic}}/partitions", Role.VIEWER, read_map, "topics"),
    Operation("GET", f"{_TOPICS}/{{topic}}/groups", Role.VIEWER, list_topic_groups, "topics"),
    Operation("GET", _PARTITION, Role.VIEWER, inspect_log, "topics"),
    Operation("GET", f"{_PARTITION}/batches", Role.VIEWER, list_batches, "topics"),
    Operation("GET", f"{CLUSTER_PATH}/troubled-partitions", Role.VIEWER, list_troubled, "topics"),
    Operation("POST", f"{CLUSTER_PATH}/elections", Role.ADMIN, elect_leaders, "topics"),
    Operation("GET", _CONFIG, Role.VIEWER, get_config, "configs"),
    Operation("POST", f"{_CONFIG}/plan", Role.VIEWER, plan_config, "configs", is_dry_run=True),
    Operation("PATCH", _CONFIG, Role.ADMIN, alter_any_config, "configs"),
)
