"""Produce (key 0), versions 3-13: append record batches.

v3: record batches, transactional id. v5: log start offset. v7: zstd. v8: record errors (KIP-467).
v9: flexible. v10: current leader and endpoints (KIP-951). v11: TRANSACTION_ABORTABLE (KIP-890).
v12: partitions are made part of the transaction (KIP-890, transaction.version 2). v13: topic ids
(KIP-516). Version 0 is advertised and refused (KAFKA-18659).

Not done: nothing.
"""

import asyncio
from collections.abc import Iterator
from functools import partial

from ottla.base.errors import ApiError, ErrorCode, ProtocolError
from ottla.coordinators.replies import Reply
from ottla.server.api_properties import ApiProperties
from ottla.server.context import Broker, RequestContext
from ottla.server.produce.admission import Refusals, Waiting, keep_records, write_of
from ottla.server.produce.appending import (
    Appended,
    Unwritten,
    Waits,
    append_all,
    refuse_all,
    settle,
)
from ottla.server.produce.shortcut import ProduceShortcut
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
)
from ottla.wire.schema import first_version

API = ApiKey.PRODUCE
MIN_VERSION = 3
MAX_VERSION = 13
# Version 0 is advertised and refused: old librdkafka needs it (KAFKA-18659).
PROPERTIES = ApiProperties(advertised_min=0, is_read_ahead=True, shortcut=ProduceShortcut)

_FIRST_VERSION_WITH_LEADER = first_version(PartitionProduceResponse, "current_leader")
# The reason to close a connection, as Kafka does.
_UNREPORTED = "a produce request with acks=0 failed; closing is the only way to report it"


def handle(context: RequestContext, request: ProduceRequest) -> Reply[ProduceResponse | None]:
    """Append the batches; respond with acks=all when they are committed, with acks=0 never."""
    try:
        write = write_of(context, request)
    except ApiError as error:
        return _respond(context, request.acks, refuse_all(context, request, error))
    if write is None:
        return _respond(context, request.acks, append_all(context, request, {}))
    verdict = context.broker.admission.ask(write)
    if isinstance(verdict, Waiting):
        return _when_admitted(context, request, verdict)
    return _respond(context, request.acks, append_all(context, request, verdict))


def _when_admitted(
    context: RequestContext, request: ProduceRequest, waiting: Waiting
) -> Reply[ProduceResponse | None]:
    """Append and respond once the coordinator of the transaction has decided."""
    # The frame is released before the records are written.
    held_bytes = keep_records(request)
    unwritten: Unwritten = []

    def act(refusals: Refusals) -> Reply[ProduceResponse | None]:
        appended = append_all(context, request, refusals, unwritten)
        return _respond(context, request.acks, appended)

    response = waiting.then(act, unwritten)
    context.connection.budget.hold_until(held_bytes, response)
    return response


def _respond(
    context: RequestContext, acks: int, appended: Appended
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


def _name_leaders(context: RequestContext, response: ProduceResponse) -> None:
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
    broker: Broker, topic: str, partition_responses: list[PartitionProduceResponse]
) -> Iterator[tuple[PartitionProduceResponse, int, int]]:
    for partition_response in partition_responses:
        if partition_response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            image = broker.image.partition(topic, partition_response.index)
            if image is not None:
                yield partition_response, image.leader, image.leader_epoch
