"""The response to a produce request: the result of each batch, once its replicas have it."""

import asyncio
from collections.abc import Iterator
from functools import partial

from ottla.base.errors import ApiError, ErrorCode, ProtocolError
from ottla.coordinators.replies import Reply
from ottla.server.produce.request import ProduceBroker, ProduceContext
from ottla.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from ottla.wire.schema import first_version

_FIRST_VERSION_WITH_LEADER = first_version(PartitionProduceResponse, "current_leader")
# The reason to close a connection, as Kafka does.
_UNREPORTED = "a produce request with acks=0 failed; closing is the only way to report it"

# The results of batches that are not acknowledged or not validated yet.
Waits = list[tuple[PartitionProduceResponse, "asyncio.Future[ErrorCode]"]]


# The results of all batches of a request; those that may still change; True if a batch has failed.
# A plain tuple, because one is created for every request.
Appended = tuple[list[TopicProduceResponse], Waits, bool]


def respond(
    context: ProduceContext, acks: int, appended: Appended
) -> Reply[ProduceResponse | None]:
    """Return the response, or a future of it if batches wait; None with acks=0.

    Raises ProtocolError if a batch with acks=0 has failed.
    """
    topics, waits, has_failed = appended
    if acks == 0:
        if has_failed:
            raise ProtocolError(_UNREPORTED)
        # The following requests of this connection wait for the batches that are still pending.
        return _when_committed(None, waits) if waits else None
    response = ProduceResponse(responses=topics)
    if has_failed and context.api_version >= _FIRST_VERSION_WITH_LEADER:
        _name_leaders(context, response)
    return _when_committed(response, waits) if waits else response


def failure(index: int, error: ApiError) -> PartitionProduceResponse:
    """Return the result of a batch that is refused."""
    record_errors = getattr(error, "record_errors", ())
    return PartitionProduceResponse(
        index=index,
        error_code=int(error.code),
        base_offset=-1,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=number, batch_index_error_message=message)
            for number, message in record_errors
        ],
        error_message=error.message,
    )


def settle(partition_response: PartitionProduceResponse, code: ErrorCode) -> None:
    """Put the result of waiting for the acknowledgement into the response for a written batch."""
    if code:
        partition_response.error_code = int(code)
        partition_response.error_message = code.message
        partition_response.base_offset = -1


def _when_committed(
    response: ProduceResponse | None, waits: Waits
) -> "asyncio.Future[ProduceResponse | None]":
    answered: asyncio.Future[ProduceResponse | None] = asyncio.get_running_loop().create_future()
    pending_count = len(waits)
    has_failed = False

    def committed(
        partition_response: PartitionProduceResponse, done: "asyncio.Future[ErrorCode]"
    ) -> None:
        nonlocal pending_count, has_failed
        pending_count -= 1
        if done.cancelled() or done.exception() is not None:
            # The broker is stopping, or there is a bug, which is logged elsewhere.
            answered.cancel()
            return
        settle(partition_response, done.result())
        has_failed = has_failed or partition_response.error_code != 0
        if pending_count or answered.done():
            return
        if response is None and has_failed:
            answered.set_exception(ProtocolError(_UNREPORTED))
        else:
            answered.set_result(response)

    for partition_response, future in waits:
        future.add_done_callback(partial(committed, partition_response))
    return answered


def _name_leaders(context: ProduceContext, response: ProduceResponse) -> None:
    """Add the leaders of the partitions that this broker does not lead (KIP-951)."""
    broker = context.broker
    leaders = set()
    for topic in response.responses:
        name = topic.name or broker.image.topic_names.get(topic.topic_id, "")
        for partition_response, leader, epoch in _led_elsewhere(
            broker, name, topic.partition_responses
        ):
            partition_response.current_leader = LeaderIdAndEpoch(
                leader_id=leader, leader_epoch=epoch
            )
            leaders.add(leader)
    for leader in sorted(leaders):
        image = broker.image.broker(leader)
        address = image and context.address_of(image)
        if image and address:
            response.node_endpoints.append(
                NodeEndpoint(node_id=leader, host=address[0], port=address[1], rack=image.rack)
            )


def _led_elsewhere(
    broker: ProduceBroker, topic: str, partition_responses: list[PartitionProduceResponse]
) -> Iterator[tuple[PartitionProduceResponse, int, int]]:
    for partition_response in partition_responses:
        if partition_response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            image = broker.image.partition(topic, partition_response.index)
            if image is not None:
                yield partition_response, image.leader, image.leader_epoch
