"""TxnOffsetCommit (key 28), versions 0-5: store the offsets of a group as part of a transaction.

v2: leader epoch (KIP-320). v3: flexible; member, generation and instance, which are checked
(KIP-447). v4: TRANSACTION_ABORTABLE if the group is not part of an open transaction (KIP-890). v5:
the group is added to the transaction (KIP-890, transaction.version 2).

Not done: nothing.
"""

from typing import TYPE_CHECKING

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.loading import deferred_module
from ottla.cluster.names import GROUP_OFFSETS_TOPIC
from ottla.coordinators.refusals import group_error
from ottla.coordinators.replies import Reply, shaped
from ottla.coordinators.txn.machine import ProducerIdAndEpoch
from ottla.server.context import RequestContext
from ottla.server.produce.admission import (
    Refusals,
    TransactionalWrite,
    TransactionSupport,
    Waiting,
    error_for,
)
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from ottla.coordinators.groups import transactional
else:
    transactional = deferred_module("ottla.coordinators.groups.transactional")

API = ApiKey.TXN_OFFSET_COMMIT
MIN_VERSION = 0
MAX_VERSION = 5

_LOADING_VERSION = 2
_ABORTABLE_VERSION = 4
_ADDING_VERSION = 5


def handle(
    context: RequestContext, request: TxnOffsetCommitRequest
) -> Reply[TxnOffsetCommitResponse]:
    """Refuse partitions that do not exist, and pass the others to the group's coordinator."""
    existing: list[TxnOffsetCommitRequestTopic] = []
    refused: dict[str, list[int]] = {}
    for topic in request.topics:
        missing = _missing(context, topic)
        if missing:
            refused.setdefault(topic.name, []).extend(missing)
            topic.partitions = [
                partition
                for partition in topic.partitions
                if partition.partition_index not in missing
            ]
        if topic.partitions:
            existing.append(topic)
    request.topics = existing
    if not existing:
        return _merged(context, TxnOffsetCommitResponse(), refused)
    return shaped(_commit(context, request), lambda response: _merged(context, response, refused))


def _missing(context: RequestContext, topic: TxnOffsetCommitRequestTopic) -> set[int]:
    image = context.broker.image
    numbers = {partition.partition_index for partition in topic.partitions}
    return {number for number in numbers if image.partition(topic.name, number) is None}


def _commit(
    context: RequestContext, request: TxnOffsetCommitRequest
) -> Reply[TxnOffsetCommitResponse]:
    broker = context.broker
    if not request.group_id:
        return broker.groups.commit_offsets_in_transaction(request)
    try:
        target = broker.replicas.get(
            GROUP_OFFSETS_TOPIC, broker.groups.partition_for(request.group_id)
        )
        target.check_leader()
    except ApiError as error:
        return transactional.refused(request, group_error(error.code))
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    support = _support(context.api_version)
    write = TransactionalWrite(request.transactional_id, producer, (target,), support)

    def admitted(refusals: Refusals) -> Reply[TxnOffsetCommitResponse]:
        for code in refusals.values():
            return transactional.refused(request, group_error(error_for(code, support)))
        return broker.groups.commit_offsets_in_transaction(request)

    verdict = broker.admission.ask(write)
    return verdict.then(admitted) if isinstance(verdict, Waiting) else admitted(verdict)


def _support(version: int) -> TransactionSupport:
    if version >= _ADDING_VERSION:
        return TransactionSupport.ADDING
    return TransactionSupport.ABORTABLE if version >= _ABORTABLE_VERSION else TransactionSupport.OLD


def _merged(
    context: RequestContext, response: TxnOffsetCommitResponse, refused: dict[str, list[int]]
) -> TxnOffsetCommitResponse:
    """Add the refused partitions, and replace a code that crashes clients before 2.0 (KAFKA-7296)."""
    if context.api_version < _LOADING_VERSION:
        for topic in response.topics:
            for partition in topic.partitions:
                if partition.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                    partition.error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    by_name = {topic.name: topic for topic in response.topics}
    for name, numbers in refused.items():
        topic_response = by_name.get(name)
        if topic_response is None:
            topic_response = TxnOffsetCommitResponseTopic(name=name)
            response.topics.append(topic_response)
        topic_response.partitions += [
            TxnOffsetCommitResponsePartition(
                partition_index=number, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            for number in sorted(numbers)
        ]
    return response
