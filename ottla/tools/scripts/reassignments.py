"""Reassignments under way, and starting or cancelling them (KIP-455)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin import replicas
from ottla.client.admin.answers import check
from ottla.client.admin.replicas import Reassignment
from ottla.client.brokers import Brokers
from ottla.client.errors import Unsupported
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)

TopicPartition = tuple[str, int]


def list_reassignments(brokers: Brokers) -> dict[TopicPartition, Reassignment]:
    """Return the reassignments under way; none if the cluster cannot say."""
    try:
        return replicas.list_reassignments(brokers)
    except Unsupported:
        return {}
    except ApiError as error:
        if error.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            return {}
        raise


def alter_reassignments(
    brokers: Brokers,
    targets: Mapping[TopicPartition, Sequence[int] | None],
    *,
    keeps_factor: bool = False,
) -> dict[TopicPartition, ApiError]:
    """Start reassignments, or cancel those whose value is None; return the partitions that failed."""
    rows: dict[str, list[ReassignablePartition]] = defaultdict(list)
    for (topic, partition), brokers_of in targets.items():
        rows[topic].append(
            ReassignablePartition(
                partition_index=partition, replicas=None if brokers_of is None else list(brokers_of)
            )
        )
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=30_000,
        allow_replication_factor_change=not keeps_factor,
        topics=[
            ReassignableTopic(name=name, partitions=partitions) for name, partitions in rows.items()
        ],
    )

    def attempt() -> dict[TopicPartition, ApiError]:
        response = brokers.ask_controller(request, AlterPartitionReassignmentsResponse)
        check(response.error_code, response.error_message)
        failed: dict[TopicPartition, ApiError] = {}
        for topic in response.responses:
            for row in topic.partitions:
                try:
                    check(row.error_code, row.error_message)
                except ApiError as error:
                    failed[topic.name, row.partition_index] = error
        return failed

    return brokers.retry(attempt)
