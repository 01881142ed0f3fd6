"""AddPartitionsToTxn (key 24), versions 0-5: make partitions part of a transaction.

v2: PRODUCER_FENCED. v3: flexible. v4: several transactions, and verify_only, which only checks that
the partitions are already part of it; for brokers (KIP-890). v5: TRANSACTION_ABORTABLE.

From version 4 on, only a broker that has proven its identity is served:
CLUSTER_AUTHORIZATION_FAILED.

Not done: nothing.
"""

from ottla.base.errors import ErrorCode
from ottla.cluster.names import is_internal
from ottla.coordinators.replies import Reply, gathered, shaped
from ottla.coordinators.txn.machine import BUMPING_VERSION, ProducerIdAndEpoch
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from ottla.wire.schema import first_version

API = ApiKey.ADD_PARTITIONS_TO_TXN
MIN_VERSION = 0
MAX_VERSION = 5

_FENCED_VERSION = 2
_MANY_TRANSACTIONS_VERSION = first_version(AddPartitionsToTxnRequest, "transactions")
_ABORTABLE_VERSION = 5

PROPERTIES = ApiProperties(needs_proof=True, proof_since=_MANY_TRANSACTIONS_VERSION)

_Place = tuple[str, int]


def handle(
    context: RequestContext, request: AddPartitionsToTxnRequest
) -> Reply[AddPartitionsToTxnResponse]:
    """Add all partitions of a transaction, or none if one of them does not exist."""
    if context.api_version >= _MANY_TRANSACTIONS_VERSION:
        replies = [_result(context, transaction) for transaction in request.transactions]
        return gathered(
            replies, lambda results: AddPartitionsToTxnResponse(results_by_transaction=results)
        )
    only = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    return shaped(
        _result(context, only),
        lambda result: AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=result.topic_results
        ),
    )


def _result(
    context: RequestContext, transaction: AddPartitionsToTxnTransaction
) -> Reply[AddPartitionsToTxnResult]:
    transactional_id = transaction.transactional_id
    topic_partitions = _places(transaction.topics)
    refused = _refused(context, transaction.topics)
    if refused:
        codes = {
            partition: ErrorCode.OPERATION_NOT_ATTEMPTED for partition in topic_partitions
        } | refused
        return _answer(transaction, codes)
    transactions = context.broker.transactions
    producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
    version = context.api_version
    if transaction.verify_only:
        verdicts = {
            partition: _told(transactions.verify(transactional_id, producer, partition), version)
            for partition in topic_partitions
        }
        return _answer(transaction, verdicts)
    return shaped(
        transactions.add_partitions(
            transactional_id, producer, topic_partitions, version=_transaction_version(version)
        ),
        lambda code: _answer(transaction, dict.fromkeys(topic_partitions, _told(code, version))),
    )


def _refused(
    context: RequestContext, topics: list[AddPartitionsToTxnTopic]
) -> dict[_Place, ErrorCode]:
    """Return an error for each partition that cannot be added; brokers may add internal topics."""
    image = context.broker.image
    is_from_client = context.api_version < _MANY_TRANSACTIONS_VERSION
    codes = {}
    for topic in topics:
        known_topic = image.topic(topic.name)
        is_refused = is_from_client and is_internal(topic.name)
        for number in topic.partitions:
            if is_refused:
                codes[topic.name, number] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif known_topic is None or known_topic.partition(number) is None:
                codes[topic.name, number] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return codes


def _places(topics: list[AddPartitionsToTxnTopic]) -> list[_Place]:
    return [(topic.name, number) for topic in topics for number in topic.partitions]


def _transaction_version(version: int) -> int:
    """Return the caller's transaction version; only brokers send batches, and only for version 2."""
    return BUMPING_VERSION if version >= _MANY_TRANSACTIONS_VERSION else 0


def _told(code: ErrorCode, version: int) -> ErrorCode:
    """Return the error code that clients of this request version understand."""
    if code is ErrorCode.PRODUCER_FENCED and version < _FENCED_VERSION:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < _ABORTABLE_VERSION:
        return ErrorCode.INVALID_TXN_STATE
    return code


def _answer(
    transaction: AddPartitionsToTxnTransaction, codes: dict[_Place, ErrorCode]
) -> AddPartitionsToTxnResult:
    """Return the result of one transaction, topic by topic in the order of the request."""
    return AddPartitionsToTxnResult(
        transactional_id=transaction.transactional_id,
        topic_results=[
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(
                        partition_index=number, partition_error_code=codes[(topic.name, number)]
                    )
                    for number in topic.partitions
                ],
            )
            for topic in transaction.topics
        ],
    )
