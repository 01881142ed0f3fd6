"""Requests of `kafka-topics` with explicit assignments of replicas."""

from collections.abc import Mapping, Sequence

from ottla.client.admin.answers import check
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

_DEFAULT = -1


def create(
    brokers: Brokers,
    name: str,
    size: tuple[int | None, int | None],
    assignment: Mapping[int, Sequence[int]],
    configs: Mapping[str, str],
) -> None:
    """Create a topic of (partitions, replication factor), or with these brokers by partition."""
    partitions, factor = size
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=name,
                num_partitions=_DEFAULT if assignment else partitions or _DEFAULT,
                replication_factor=_DEFAULT if assignment else factor or _DEFAULT,
                assignments=[
                    CreatableReplicaAssignment(partition_index=index, broker_ids=list(ids))
                    for index, ids in assignment.items()
                ],
                configs=[
                    CreatableTopicConfig(name=key, value=value) for key, value in configs.items()
                ],
            )
        ],
        timeout_ms=int(brokers.timeout_s * 1000),
    )

    def attempt() -> None:
        (done,) = brokers.ask_controller(request, CreateTopicsResponse).topics
        check(done.error_code, done.error_message)

    brokers.retry(attempt)


def add_partitions(
    brokers: Brokers, name: str, total: int, assignment: Sequence[Sequence[int]] | None
) -> None:
    """Increase a topic to `total` partitions, the new ones on these brokers if any are given."""
    rows = None
    if assignment is not None:
        rows = [CreatePartitionsAssignment(broker_ids=list(ids)) for ids in assignment]
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=total, assignments=rows)],
        timeout_ms=int(brokers.timeout_s * 1000),
    )

    def attempt() -> None:
        (done,) = brokers.ask_controller(request, CreatePartitionsResponse).results
        check(done.error_code, done.error_message)

    brokers.retry(attempt)
