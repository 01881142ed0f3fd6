"""Changes of the ISR that leaders propose: accepted or refused. Pure.

Follows KafkaController.processAlterPartition (KIP-497, KIP-704, KIP-841, KIP-903).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ottla.base.errors import ErrorCode
from ottla.cluster.image import BrokerImage, ClusterImage, PartitionImage

UNKNOWN_BROKER_EPOCH = -1


class IsrRequest(NamedTuple):
    """A proposed ISR: the members, with the broker epoch of each (-1 if the leader does not know
    it).
    """

    topic_id: bytes
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    is_recovering: bool = False

    @property
    def members(self) -> tuple[int, ...]:
        """The ids of the members."""
        return tuple(broker_id for broker_id, _ in self.isr)


class IsrResult(NamedTuple):
    """The result of one proposal; `partition` is the stored state, None if there is an error."""

    topic_id: bytes
    number: int
    error: ErrorCode
    partition: PartitionImage | None = None


class IsrPlan(NamedTuple):
    """The image with the accepted proposals, the topics changed, and an error for each proposal."""

    image: ClusterImage
    topics: tuple[str, ...]
    errors: Sequence[ErrorCode]


def plan(
    image: ClusterImage, requests: Iterable[IsrRequest], eligible: Mapping[int, BrokerImage]
) -> IsrPlan:
    """Accept or reject the proposals; only `eligible` brokers may be members of an ISR."""
    errors = []
    changed: dict[str, list[PartitionImage]] = {}
    for request in requests:
        name = image.topic_names.get(request.topic_id)
        partition = None if name is None else image.partition(name, request.partition)
        if name is None or partition is None:
            missing = name is None
            code = ErrorCode.UNKNOWN_TOPIC_ID if missing else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            errors.append(code)
            continue
        error = _refusal(partition, request, eligible)
        errors.append(error)
        if error is ErrorCode.NONE and not _is_stored(partition, request):
            after = replace(partition, isr=request.members, is_recovering=request.is_recovering)
            changed.setdefault(name, []).append(after)
    topics = [
        image.topics[name].with_partitions(partitions) for name, partitions in changed.items()
    ]
    return IsrPlan(image.with_topics(topics) if topics else image, tuple(changed), errors)


def _is_stored(partition: PartitionImage, request: IsrRequest) -> bool:
    """Return True if an earlier attempt of the same proposal was performed."""
    is_same = set(partition.isr) == set(request.members)
    return is_same and partition.is_recovering == request.is_recovering


def _refusal(
    partition: PartitionImage, request: IsrRequest, eligible: Mapping[int, BrokerImage]
) -> ErrorCode:
    if (
        request.leader_epoch > partition.leader_epoch
        or request.partition_epoch > partition.partition_epoch
    ):
        # The leader knows a later controller: this one has been replaced.
        return ErrorCode.NOT_CONTROLLER
    if request.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if _is_stored(partition, request):
        return ErrorCode.NONE
    if request.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    members = request.members
    is_valid = (
        partition.leader in members
        and len(set(members)) == len(members)
        and set(members) <= set(partition.replicas)
    )
    # A recovering leader is the only member until it has recovered (KIP-704).
    is_recovery_valid = partition.is_recovering or not request.is_recovering
    if not is_valid or not is_recovery_valid or (request.is_recovering and len(members) > 1):
        return ErrorCode.INVALID_REQUEST
    if not all(_is_eligible(*member, eligible) for member in request.isr):
        return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def _is_eligible(broker_id: int, epoch: int, eligible: Mapping[int, BrokerImage]) -> bool:
    broker = eligible.get(broker_id)
    return broker is not None and epoch in (UNKNOWN_BROKER_EPOCH, broker.epoch)
