"""Reassignments under way (KIP-455)."""

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin import replicas
from ottla.client.admin.replicas import Reassignment
from ottla.client.brokers import Brokers
from ottla.client.errors import Unsupported

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
