"""WriteTxnMarkers (key 27), versions 1-2: end a transaction in partitions that this broker leads.

v1: flexible. v2: transaction version, which from 2 on requires a higher epoch in each marker
(KIP-1228). Sent by the coordinator on another broker, and by tools that end a transaction which its
coordinator has forgotten (KIP-664).

A sender that has not proven to be a broker needs the right to alter the cluster. Without an
authorizer no client has it: CLUSTER_AUTHORIZATION_FAILED for each partition.

Not done: nothing.
"""

from collections.abc import Mapping
from functools import partial

from ottla.base.errors import ErrorCode
from ottla.coordinators.ports import Marker
from ottla.coordinators.replies import Reply, gathered, shaped
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

API = ApiKey.WRITE_TXN_MARKERS
MIN_VERSION = 1
MAX_VERSION = 2


def refused(request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    """Return the response to a sender that may not write markers."""
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return WriteTxnMarkersResponse(
        markers=[
            _result(marker, dict.fromkeys(_partitions(marker), code)) for marker in request.markers
        ]
    )


PROPERTIES = ApiProperties(
    is_administrative=True,
    is_among_brokers=True,
    is_read_ahead=True,
    needs_proof=True,
    is_for_administrators=True,
    refuse=refused,
)


def handle(
    context: RequestContext, request: WriteTxnMarkersRequest
) -> Reply[WriteTxnMarkersResponse]:
    """Write every marker; the response is sent when all are committed.

    Markers without partitions have no entry in the response.
    """
    replies = [
        _write(context, marker)
        for marker in request.markers
        if any(topic.partition_indexes for topic in marker.topics)
    ]
    return gathered(replies, lambda results: WriteTxnMarkersResponse(markers=results))


def _write(context: RequestContext, requested: WritableTxnMarker) -> Reply[WritableTxnMarkerResult]:
    marker = Marker(
        requested.producer_id,
        requested.producer_epoch,
        requested.coordinator_epoch,
        requested.transaction_result,
        requested.transaction_version,
    )
    topic_partitions = _partitions(requested)
    answer = partial(_result, requested)
    if min(requested.producer_id, requested.producer_epoch, requested.transaction_version) < 0:
        # A transaction cannot have such a marker; Kafka fails while it creates one, with this
        # error.
        return answer(dict.fromkeys(topic_partitions, ErrorCode.UNKNOWN_SERVER_ERROR))
    return shaped(
        context.broker.markers.write(marker, list(dict.fromkeys(topic_partitions))), answer
    )


def _partitions(marker: WritableTxnMarker) -> list[tuple[str, int]]:
    return [(topic.name, number) for topic in marker.topics for number in topic.partition_indexes]


def _result(
    marker: WritableTxnMarker, codes: Mapping[tuple[str, int], ErrorCode]
) -> WritableTxnMarkerResult:
    """Return the code of each partition, topic by topic in the order of the request."""
    return WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(
                        partition_index=number, error_code=codes[(topic.name, number)]
                    )
                    for number in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ],
    )
