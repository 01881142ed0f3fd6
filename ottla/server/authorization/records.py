"""The checks of APIs that write and read records, and of transactions."""

from typing import Any

from ottla.base.errors import ApiError, ErrorCode, ProtocolError
from ottla.cluster.names import is_internal
from ottla.security.acls import AclOperation, ResourceType
from ottla.server.authorization.access import Access
from ottla.server.authorization.by_topic import ByTopic
from ottla.server.authorization.guarding import Check, Verdict
from ottla.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    delete_records,
    describe_producers,
    describe_transactions,
    fetch,
    init_producer_id,
    list_offsets,
    list_transactions,
    offset_for_leader_epoch,
    produce,
    txn_offset_commit,
)
from ottla.wire.records.batch import is_transactional
from ottla.wire.schema import first_version

_TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID
_FAILED = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
_FIRST_VERSION_OF_BROKERS = first_version(
    add_partitions_to_txn.AddPartitionsToTxnRequest, "transactions"
)

PRODUCE = ByTopic(
    operation=AclOperation.WRITE,
    response=produce.ProduceResponse,
    topic=produce.TopicProduceResponse,
    partition=produce.PartitionProduceResponse,
    topics=("topic_data", "responses"),
    partitions=("partition_data", "partition_responses"),
    number=("index", "index"),
    values={"base_offset": -1},
)
OFFSETS_IN_TRANSACTION = ByTopic(
    operation=AclOperation.READ,
    response=txn_offset_commit.TxnOffsetCommitResponse,
    topic=txn_offset_commit.TxnOffsetCommitResponseTopic,
    partition=txn_offset_commit.TxnOffsetCommitResponsePartition,
)
EPOCHS = ByTopic(
    operation=AclOperation.DESCRIBE,
    response=offset_for_leader_epoch.OffsetForLeaderEpochResponse,
    topic=offset_for_leader_epoch.OffsetForLeaderTopicResult,
    partition=offset_for_leader_epoch.EpochEndOffset,
    number=("partition", "partition"),
    name="topic",
)
check_list_offsets = ByTopic(
    operation=AclOperation.DESCRIBE,
    response=list_offsets.ListOffsetsResponse,
    topic=list_offsets.ListOffsetsTopicResponse,
    partition=list_offsets.ListOffsetsPartitionResponse,
)
check_delete_records = ByTopic(
    operation=AclOperation.DELETE,
    response=delete_records.DeleteRecordsResponse,
    topic=delete_records.DeleteRecordsTopicResult,
    partition=delete_records.DeleteRecordsPartitionResult,
    values={"low_watermark": -1},
)
check_describe_producers = ByTopic(
    operation=AclOperation.READ,
    response=describe_producers.DescribeProducersResponse,
    topic=describe_producers.TopicResponse,
    partition=describe_producers.PartitionResponse,
    partitions=("partition_indexes", "partitions"),
    number=(None, "partition_index"),
    values={"error_message": ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED).message},
)


def check_produce(access: Access, request: produce.ProduceRequest) -> Verdict:
    """WRITE of each topic, and of the transactional id of transactional batches."""
    transactional_id = request.transactional_id
    is_refused = (
        transactional_id is not None
        and any(
            is_transactional(item.records)
            for topic in request.topic_data
            for item in topic.partition_data
        )
        and not access.may(AclOperation.WRITE, _TRANSACTIONAL_ID, transactional_id)
    )
    verdict = PRODUCE.all_refused(request, _FAILED) if is_refused else PRODUCE(access, request)
    if verdict is not None and request.acks == 0:
        raise ProtocolError(
            "a produce request with acks=0 is not authorized; closing is the only way to report it"
        )
    return verdict


def check_fetch(access: Access, request: fetch.FetchRequest) -> Verdict:
    """CLUSTER_ACTION for followers; READ of topics is checked where partitions are read."""
    state = request.replica_state
    replica = request.replica_id if state is None else state.replica_id
    if replica >= 0:
        access.require(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER)
    return None


def check_leader_epochs(
    access: Access, request: offset_for_leader_epoch.OffsetForLeaderEpochRequest
) -> Verdict:
    """CLUSTER_ACTION, or DESCRIBE of each topic."""
    if access.has_cluster_right(AclOperation.CLUSTER_ACTION):
        return None
    return EPOCHS(access, request)


def check_init_producer_id(
    access: Access, request: init_producer_id.InitProducerIdRequest
) -> Verdict:
    """WRITE of the transactional id; else IDEMPOTENT_WRITE, or WRITE of some topic (KIP-679)."""
    if request.transactional_id is not None:
        if access.may(AclOperation.WRITE, _TRANSACTIONAL_ID, request.transactional_id):
            return None
        code = _FAILED
    elif access.has_cluster_right(AclOperation.IDEMPOTENT_WRITE) or access.may_some(
        AclOperation.WRITE, ResourceType.TOPIC
    ):
        return None
    else:
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return init_producer_id.InitProducerIdResponse(
        error_code=int(code), producer_id=-1, producer_epoch=-1
    )


def transaction(operation: AclOperation) -> Check:
    """Return the check of an API whose request names one transactional id."""

    def check(access: Access, request: Any) -> Verdict:
        access.require(operation, _TRANSACTIONAL_ID, request.transactional_id)
        return None

    return check


def check_add_offsets(
    access: Access, request: add_offsets_to_txn.AddOffsetsToTxnRequest
) -> Verdict:
    """WRITE of the transactional id and READ of the group."""
    access.require(AclOperation.WRITE, _TRANSACTIONAL_ID, request.transactional_id)
    access.require(AclOperation.READ, ResourceType.GROUP, request.group_id)
    return None


def check_add_partitions(
    access: Access, request: add_partitions_to_txn.AddPartitionsToTxnRequest
) -> Verdict:
    """CLUSTER_ACTION of brokers; else WRITE of the transactional id and of each topic.

    If one topic is refused, none is added.
    """
    if access.version >= _FIRST_VERSION_OF_BROKERS:
        access.require(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER)
        return None
    may_write = access.may(
        AclOperation.WRITE, _TRANSACTIONAL_ID, request.v3_and_below_transactional_id
    )
    topics = request.v3_and_below_topics
    if not may_write:
        return _added(topics, lambda _topic, _number: _FAILED)
    denied = {
        topic.name
        for topic in topics
        if is_internal(topic.name) or not access.may_topic(AclOperation.WRITE, topic.name)
    }
    if not denied:
        return None

    def code(topic: str, number: int) -> ErrorCode:
        if topic in denied:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if access.image.partition(topic, number) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.OPERATION_NOT_ATTEMPTED

    return _added(topics, code)


def _added(topics: list[add_partitions_to_txn.AddPartitionsToTxnTopic], code: Any) -> Verdict:
    rows = add_partitions_to_txn
    return rows.AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            rows.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    rows.AddPartitionsToTxnPartitionResult(
                        partition_index=number, partition_error_code=int(code(topic.name, number))
                    )
                    for number in topic.partitions
                ],
            )
            for topic in topics
        ]
    )


def check_txn_offset_commit(
    access: Access, request: txn_offset_commit.TxnOffsetCommitRequest
) -> Verdict:
    """WRITE of the transactional id, READ of the group and of each topic."""
    if not access.may(AclOperation.WRITE, _TRANSACTIONAL_ID, request.transactional_id):
        return OFFSETS_IN_TRANSACTION.all_refused(request, _FAILED)
    if not access.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return OFFSETS_IN_TRANSACTION.all_refused(request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return OFFSETS_IN_TRANSACTION(access, request)


def check_describe_transactions(
    access: Access, request: describe_transactions.DescribeTransactionsRequest
) -> Verdict:
    """DESCRIBE of each transactional id; topics that the sender may not describe are hidden."""
    refused = [
        describe_transactions.TransactionState(transactional_id=name, error_code=int(_FAILED))
        for name in request.transactional_ids
        if not access.may(AclOperation.DESCRIBE, _TRANSACTIONAL_ID, name)
    ]
    names = {row.transactional_id for row in refused}
    request.transactional_ids = [name for name in request.transactional_ids if name not in names]

    def complete(
        response: describe_transactions.DescribeTransactionsResponse,
    ) -> describe_transactions.DescribeTransactionsResponse:
        for state in response.transaction_states:
            state.topics = [
                topic for topic in state.topics if access.shows(ResourceType.TOPIC, topic.topic)
            ]
        response.transaction_states += refused
        return response

    return complete


def check_list_transactions(
    access: Access, _: list_transactions.ListTransactionsRequest
) -> Verdict:
    """Hide transactional ids that the sender may not describe."""

    def complete(
        response: list_transactions.ListTransactionsResponse,
    ) -> list_transactions.ListTransactionsResponse:
        response.transaction_states = [
            state
            for state in response.transaction_states
            if access.shows(_TRANSACTIONAL_ID, state.transactional_id)
        ]
        return response

    return complete
