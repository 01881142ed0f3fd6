"""Topics: list, describe, create, add partitions, delete."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ottla.base.loading import deferred_module
from ottla.client.admin.answers import check
from ottla.client.admin.config_values import ConfigValue, config_text
from ottla.client.brokers import Brokers
from ottla.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.wire.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ottla.wire.messages.metadata import MetadataResponseTopic

# Only notebooks show tables as HTML; msgspec takes a tenth of the time of `ottla topic list`. Few
# callers ask for authorized operations.
if TYPE_CHECKING:
    from ottla.client import records
    from ottla.client.admin import acls
else:
    acls = deferred_module("ottla.client.admin.acls")
    records = deferred_module("ottla.client.records")

# Use the broker's num.partitions and default.replication.factor (KIP-464).
BROKER_DEFAULT = -1


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition; `leader` is -1 if it has none."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic and its partitions in order; the id is 16 bytes, zero if the broker sends none."""

    name: str
    topic_id: bytes
    is_internal: bool
    partitions: tuple[Partition, ...]
    authorized_operations: "frozenset[acls.AclOperation] | None" = None
    """What the user may do with the topic, if it was requested (KIP-430)."""

    @property
    def replication_factor(self) -> int:
        """The number of replicas of the first partition, as Kafka's tools report it."""
        return len(self.partitions[0].replicas) if self.partitions else 0

    def _repr_html_(self) -> str:
        """Return the partitions as a table for notebooks."""
        names = ["topic", "partition", "leader", "replicas", "isr"]
        rows = [(self.name, p.partition, p.leader, p.replicas, p.isr) for p in self.partitions]
        return records.html_table(names, rows)


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """The created topic; -1 for values that an old broker does not send."""

    name: str
    topic_id: bytes
    partitions: int
    replication_factor: int


def list_topics(brokers: Brokers) -> list[Topic]:
    """Return every topic by name; internal ones are marked."""
    response = brokers.retry(brokers.metadata)
    return sorted((topic_of(row, {}) for row in response.topics), key=lambda topic: topic.name)


def describe_topic(
    brokers: Brokers, name: str | bytes, *, include_authorized_operations: bool = False
) -> Topic:
    """Return a topic with leaders, replicas and ISR; ApiError UNKNOWN_TOPIC_OR_PARTITION or
    UNKNOWN_TOPIC_ID if it does not exist.

    Bytes are its id (KIP-516), which another topic of the same name does not have.
    """
    row = brokers.retry(lambda: brokers.topic(name, with_operations=include_authorized_operations))
    if not include_authorized_operations:
        return topic_of(row, {})
    operations = acls.operations_of(row.topic_authorized_operations)
    return replace(topic_of(row, {}), authorized_operations=operations)


def create_topic(
    brokers: Brokers,
    name: str,
    *,
    partitions: int = BROKER_DEFAULT,
    replication_factor: int = BROKER_DEFAULT,
    assignments: Sequence[Sequence[int]] = (),
    config: Mapping[str, ConfigValue] | None = None,
    validate_only: bool = False,
) -> CreatedTopic:
    """Create a topic; the broker's defaults replace numbers that are not given.

    `assignments` has the brokers of each partition, the preferred leader first; it replaces both
    numbers.

    Raises ApiError TOPIC_ALREADY_EXISTS, INVALID_TOPIC_EXCEPTION, INVALID_CONFIG,
    INVALID_REPLICATION_FACTOR and others.
    """
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=name,
                num_partitions=partitions,
                replication_factor=replication_factor,
                assignments=[
                    CreatableReplicaAssignment(partition_index=number, broker_ids=list(replicas))
                    for number, replicas in enumerate(assignments)
                ],
                configs=[
                    CreatableTopicConfig(name=key, value=config_text(value))
                    for key, value in (config or {}).items()
                ],
            )
        ],
        timeout_ms=int(brokers.timeout_s * 1000),
        validate_only=validate_only,
    )

    def attempt() -> CreatedTopic:
        response = brokers.ask_controller(request, CreateTopicsResponse)
        (created,) = response.topics
        check(created.error_code, created.error_message)
        return CreatedTopic(
            name, created.topic_id, created.num_partitions, created.replication_factor
        )

    return brokers.retry(attempt)


def create_partitions(
    brokers: Brokers,
    name: str,
    total: int,
    *,
    assignments: Sequence[Sequence[int]] | None = None,
    validate_only: bool = False,
) -> None:
    """Increase a topic to `total` partitions; keys may move to other partitions.

    `assignments` has the brokers of each new partition, the preferred leader first. ApiError
    INVALID_PARTITIONS if it is not an increase.
    """
    chosen = None
    if assignments is not None:
        chosen = [CreatePartitionsAssignment(broker_ids=list(row)) for row in assignments]
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=total, assignments=chosen)],
        timeout_ms=int(brokers.timeout_s * 1000),
        validate_only=validate_only,
    )

    def attempt() -> None:
        response = brokers.ask_controller(request, CreatePartitionsResponse)
        (done,) = response.results
        check(done.error_code, done.error_message)

    brokers.retry(attempt)


def delete_topic(brokers: Brokers, name: str | bytes) -> None:
    """Delete a topic, by its name or id, and all its records; ApiError UNKNOWN_TOPIC_OR_PARTITION
    or UNKNOWN_TOPIC_ID if there is none.
    """
    request = DeleteTopicsRequest(timeout_ms=int(brokers.timeout_s * 1000))
    max_version: int | None = None
    if isinstance(name, bytes):
        request.topics = [DeleteTopicState(topic_id=name)]
    else:
        # Version 5 uses names; version 6 only adds deletion by id.
        request.topic_names, max_version = [name], 5

    def attempt() -> None:
        response = brokers.ask_controller(request, DeleteTopicsResponse, max_version=max_version)
        (done,) = response.responses
        check(done.error_code, done.error_message, subject=f"Topic {name!r}")

    brokers.retry(attempt)


def topic_of(row: MetadataResponseTopic, shared: dict[tuple[int, ...], tuple[int, ...]]) -> Topic:
    """Return a topic of a response.

    Many partitions have the same replicas: equal tuples become one object, of `shared`.
    """

    def nodes(ids: Sequence[int]) -> tuple[int, ...]:
        return shared.setdefault(key := tuple(ids), key)

    partitions = [
        Partition(
            partition=item.partition_index,
            leader=item.leader_id,
            leader_epoch=item.leader_epoch,
            replicas=nodes(item.replica_nodes),
            isr=nodes(item.isr_nodes),
            offline=nodes(item.offline_replicas),
        )
        for item in row.partitions
    ]
    partitions.sort(key=lambda item: item.partition)
    return Topic(row.name or "", row.topic_id, row.is_internal, tuple(partitions))
