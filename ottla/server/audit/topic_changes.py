"""The changes of topics and partitions. Pure."""

from collections.abc import Iterator

from ottla.base.uuids import uuid_text
from ottla.security.acls import ResourceType
from ottla.server.audit.changes import AuditedChange, Exchange, failure
from ottla.server.audit.cluster_changes import shown_value
from ottla.server.audit.record import Details, Resource
from ottla.server.config.store import ConfigResource

_TOPIC = ResourceType.TOPIC.name
_ELECTIONS = {0: "preferred", 1: "unclean"}


def _topic(name: str, code: int, details: Details | None = None) -> AuditedChange:
    return AuditedChange(Resource(_TOPIC, name), code, details or {}, (ResourceType.TOPIC, name))


def _partition(topic: str, number: int, code: int, details: Details | None = None) -> AuditedChange:
    resource = Resource(_TOPIC, topic, number)
    return AuditedChange(resource, code, details or {}, (ResourceType.TOPIC, topic))


def created_topics(exchange: Exchange) -> Iterator[AuditedChange]:
    """Yield the topics of CreateTopics."""
    if exchange.request.validate_only:
        return
    requested = {topic.name: topic for topic in exchange.request.topics}
    for row in exchange.response.topics:
        topic = requested.get(row.name)
        details: Details = {}
        if topic is not None:
            details = {
                "partitions": len(topic.assignments) or topic.num_partitions,
                "replication_factor": topic.replication_factor,
                **{
                    config.name: shown_value(ConfigResource.TOPIC, config.name, config.value)
                    for config in topic.configs
                },
            }
        yield _topic(row.name, row.error_code, details)


def deleted_topics(exchange: Exchange) -> Iterator[AuditedChange]:
    """Yield the topics of DeleteTopics; one without a name by its id."""
    for row in exchange.response.responses:
        yield _topic(row.name or uuid_text(row.topic_id), row.error_code)


def extended_topics(exchange: Exchange) -> Iterator[AuditedChange]:
    """Yield the topics of CreatePartitions."""
    if exchange.request.validate_only:
        return
    counts = {topic.name: topic.count for topic in exchange.request.topics}
    for row in exchange.response.results:
        details: Details = {"partitions": counts[row.name]} if row.name in counts else {}
        yield _topic(row.name, row.error_code, details)


def deleted_records(exchange: Exchange) -> Iterator[AuditedChange]:
    """Yield the partitions of DeleteRecords."""
    offsets = {
        (topic.name, partition.partition_index): partition.offset
        for topic in exchange.request.topics
        for partition in topic.partitions
    }
    for topic in exchange.response.topics:
        for row in topic.partitions:
            details: Details = {"before_offset": offsets.get((topic.name, row.partition_index))}
            yield _partition(topic.name, row.partition_index, row.error_code, details)


def reassigned_partitions(exchange: Exchange) -> Iterator[AuditedChange]:
    """Yield the partitions of AlterPartitionReassignments."""
    replicas = {
        (topic.name, partition.partition_index): partition.replicas
        for topic in exchange.request.topics
        for partition in topic.partitions
    }
    for topic in exchange.response.responses:
        for row in topic.partitions:
            brokers = replicas.get((topic.name, row.partition_index))
            details: Details = {"replicas": "cancelled" if brokers is None else list(brokers)}
            yield _partition(topic.name, row.partition_index, row.error_code, details)


def elected_leaders(exchange: Exchange) -> Iterator[AuditedChange]:
    """Yield the partitions of ElectLeaders."""
    kind = exchange.request.election_type
    details: Details = {"election": _ELECTIONS.get(kind, kind)}
    is_empty = True
    for topic in exchange.response.replica_election_results:
        for row in topic.partition_result:
            is_empty = False
            yield _partition(topic.topic, row.partition_id, row.error_code, details)
    if is_empty and exchange.response.error_code:
        yield failure(exchange.response.error_code)


def moved_logs(exchange: Exchange) -> Iterator[AuditedChange]:
    """Yield the partitions of AlterReplicaLogDirs."""
    directories = {
        (topic.name, number): directory.path
        for directory in exchange.request.dirs
        for topic in directory.topics
        for number in topic.partitions
    }
    for topic in exchange.response.results:
        for row in topic.partitions:
            path = directories.get((topic.topic_name, row.partition_index))
            details: Details = {"directory": path}
            yield _partition(topic.topic_name, row.partition_index, row.error_code, details)


def ended_transactions(exchange: Exchange) -> Iterator[AuditedChange]:
    """Yield the partitions of WriteTxnMarkers, by which tools end a hanging transaction."""
    results = {marker.producer_id: marker.transaction_result for marker in exchange.request.markers}
    for marker in exchange.response.markers:
        details: Details = {
            "producer_id": marker.producer_id,
            "end": "commit" if results.get(marker.producer_id) else "abort",
        }
        for topic in marker.topics:
            for row in topic.partitions:
                yield _partition(topic.name, row.partition_index, row.error_code, details)
