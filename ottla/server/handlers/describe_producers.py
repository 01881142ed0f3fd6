"""DescribeProducers (key 61), version 0: active idempotent and transactional producers (KIP-664).

The leader of a partition responds; clients ask each leader for its own partitions.

Not done: nothing.
"""

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.names import validate_topic_name
from ottla.server.context import RequestContext
from ottla.storage.log.producers import ProducerStateEntry
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)

API = ApiKey.DESCRIBE_PRODUCERS
MIN_VERSION = 0
MAX_VERSION = 0


def handle(context: RequestContext, request: DescribeProducersRequest) -> DescribeProducersResponse:
    """Return the producer states of the logs."""
    return DescribeProducersResponse(topics=[_topic(context, topic) for topic in request.topics])


def _topic(context: RequestContext, topic: TopicRequest) -> TopicResponse:
    numbers = topic.partition_indexes
    try:
        validate_topic_name(topic.name)
        if context.broker.image.topic(topic.name) is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    except ApiError as error:
        partitions = [
            PartitionResponse(
                partition_index=number, error_code=int(error.code), error_message=error.message
            )
            for number in numbers
        ]
    else:
        # As in Kafka, a partition that is named twice has two rows.
        described = {number: _described(context, topic.name, number) for number in set(numbers)}
        partitions = [described[number] for number in numbers]
    return TopicResponse(name=topic.name, partitions=partitions)


def _described(context: RequestContext, topic: str, number: int) -> PartitionResponse:
    try:
        partition = context.broker.replicas.get(topic, number)
        partition.check_leader()
    except ApiError as error:
        return PartitionResponse(partition_index=number, error_code=int(error.code))
    producers = partition.log.producers.producers
    return PartitionResponse(
        partition_index=number,
        active_producers=[_state(key, producer) for key, producer in producers.items()],
    )


def _state(producer_id: int, producer: ProducerStateEntry) -> ProducerState:
    state = ProducerState(
        producer_id=producer_id,
        producer_epoch=producer.epoch,
        last_timestamp=producer.last_timestamp,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=producer.transaction_first_offset,
    )
    if producer.batches:
        last = producer.batches[-1]
        state.last_sequence = last.last_sequence
        # The records' timestamp, not the arrival time by which an inactive producer
        # expires. The end of a transaction has the time of its marker, which is the time of its
        # arrival.
        if producer.coordinator_epoch < 0 or producer.transaction_first_offset >= 0:
            state.last_timestamp = last.timestamp
    return state
