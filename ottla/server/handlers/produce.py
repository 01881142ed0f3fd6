"""Produce (key 0), versions 3-13: append record batches.

v3: record batches, transactional id. v5: log start offset. v7: zstd. v8: record errors (KIP-467).
v9: flexible. v10: current leader and endpoints (KIP-951). v11: TRANSACTION_ABORTABLE (KIP-890).
v12: partitions are made part of the transaction (KIP-890, transaction.version 2). v13: topic ids
(KIP-516). Version 0 is advertised and refused (KAFKA-18659).

Not done: nothing.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from functools import partial
from typing import Any

from ottla.base.errors import ApiError, ErrorCode, ProtocolError
from ottla.cluster.names import is_internal
from ottla.coordinators.txn.machine import Producer
from ottla.replication.partition import Partition
from ottla.replication.replicas import Replicas
from ottla.server.api_properties import ApiProperties
from ottla.server.context import Broker, RequestContext
from ottla.server.produce.acknowledged import settle
from ottla.server.produce.admission import (
    Refusals,
    TransactionalWrite,
    TransactionSupport,
    Waiting,
    error_for,
)
from ottla.server.produce.shortcut import ProduceShortcut
from ottla.server.quotas.steps import counted
from ottla.storage.log.validation import AppendInfo, HeavyBatchError, UnreadableBatchError
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ottla.wire.records.batch import LOW_ATTRIBUTES_POSITION, is_transactional, parse_header
from ottla.wire.schema import first_version

API = ApiKey.PRODUCE
MIN_VERSION = 3
MAX_VERSION = 13
# Version 0 is advertised and refused: old librdkafka needs it (KAFKA-18659).
PROPERTIES = ApiProperties(advertised_min=0, is_read_ahead=True, shortcut=ProduceShortcut)

_ZSTD = 4
_FIRST_VERSION_WITH_ZSTD = 7
_FIRST_VERSION_WITH_LEADER = first_version(PartitionProduceResponse, "current_leader")
_FIRST_VERSION_WITH_ABORTABLE = 11
_FIRST_VERSION_THAT_ADDS = 12
_FIRST_VERSION_WITH_TOPIC_IDS = first_version(TopicProduceData, "topic_id")
# How often a heavy batch is validated if its topic's configuration keeps changing.
_VALIDATIONS_MAX = 5
# The reason to close a connection, as Kafka does.
_UNREPORTED = "a produce request with acks=0 failed; closing is the only way to report it"

# Errors for which Kafka does not return the log start offset; with all others it does.
_WITHOUT_LOG_START = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)

Waits = list[tuple[PartitionProduceResponse, "asyncio.Future[ErrorCode]"]]
# Batches that are validated off the event loop: each is done as soon as it is written or refused.
Unwritten = list["asyncio.Future[None]"]


def handle(
    context: RequestContext, request: ProduceRequest
) -> "ProduceResponse | asyncio.Future[ProduceResponse | None] | None":
    """Append the batches; respond with acks=all when they are committed, with acks=0 never."""
    if request.transactional_id is None:
        return _append_all(context, request, _refusal(request), {})
    try:
        write = _transactional_write(context, request, request.transactional_id)
    except ApiError as error:
        return _append_all(context, request, error, {})
    if write is None:
        return _append_all(context, request, None, {})
    verdict = context.broker.admission.ask(write)
    if not isinstance(verdict, Waiting):
        return _append_all(context, request, None, verdict)
    # The frame is released before the records are written.
    held_bytes = _keep_records(request)
    unwritten: Unwritten = []
    act = partial(_append_all, context, request, None, unwritten=unwritten)
    answered = verdict.then(act, unwritten)
    context.connection.budget.hold_until(held_bytes, answered)
    return answered


def _append_all(
    context: RequestContext,
    request: ProduceRequest,
    refusal: ApiError | None,
    refusals: Refusals,
    unwritten: "Unwritten | None" = None,
) -> "ProduceResponse | asyncio.Future[ProduceResponse | None] | None":
    version = context.api_version
    replicas = context.broker.replicas
    waits: Waits = []
    responses = []
    has_failed = False
    for topic in request.topic_data:
        name, topic_id = topic.name, topic.topic_id
        partition_responses = []
        for item in topic.partition_data:
            try:
                if refusal is not None:
                    raise refusal
                if version >= _FIRST_VERSION_WITH_TOPIC_IDS:
                    target = replicas.get_by_id(topic_id, item.index)
                else:
                    target = replicas.get(name, item.index)
                _check_admitted(context, target, item, refusals)
                partition_response = _append(context, target, item, request, waits, unwritten)
            except ApiError as error:
                partition_response = _failure(item.index, error)
            if partition_response.error_code:
                has_failed = True
                _count_failure(replicas, replicas.find(name, topic_id, item.index))
            partition_responses.append(partition_response)
        if partition_responses:
            responses.append(
                TopicProduceResponse(
                    name=name, topic_id=topic_id, partition_responses=partition_responses
                )
            )
    if request.acks == 0:
        if has_failed:
            raise ProtocolError(_UNREPORTED)
        # The following requests of this connection wait for the batches that are still pending.
        return _when_committed(None, waits) if waits else None
    response = ProduceResponse(responses=responses)
    if has_failed and version >= _FIRST_VERSION_WITH_LEADER:
        _name_leaders(context, response)
    return _when_committed(response, waits) if waits else response


def _count_failure(replicas: Replicas, target: Partition | None) -> None:
    # Clients choose the names of topics that do not exist.
    if target is not None:
        replicas.failed_appends[target.topic] += 1


def _refusal(request: ProduceRequest) -> ApiError | None:
    if request.transactional_id is None and any(
        is_transactional(item.records)
        for topic in request.topic_data
        for item in topic.partition_data
    ):
        return ApiError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "A transactional batch needs a transactional id in the request.",
        )
    return None


def _transactional_write(
    context: RequestContext, request: ProduceRequest, transactional_id: str
) -> TransactionalWrite | None:
    """Return the write to be admitted; None if no batch of the request belongs to a transaction."""
    replicas = context.broker.replicas
    has_ids = context.api_version >= _FIRST_VERSION_WITH_TOPIC_IDS
    producers: set[Producer] = set()
    partitions: list[Partition] = []
    for topic in request.topic_data:
        for item in topic.partition_data:
            if not is_transactional(item.records):
                continue
            header = parse_header(_bytes_of(item))
            if header.producer_id < 0:
                continue
            producers.add(Producer(header.producer_id, header.producer_epoch))
            # Partitions with an error join no transaction; the error is reported by `_append_all`.
            with contextlib.suppress(ApiError):
                if has_ids:
                    partition = replicas.get_by_id(topic.topic_id, item.index)
                else:
                    partition = replicas.get(topic.name, item.index)
                partition.check_leader()
                partitions.append(partition)
    if len(producers) > 1:
        raise ApiError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            "The batches of a transaction have more than one producer id or epoch.",
        )
    if not partitions:
        return None
    return TransactionalWrite(
        transactional_id, producers.pop(), partitions, _support(context.api_version)
    )


def _support(version: int) -> TransactionSupport:
    if version >= _FIRST_VERSION_THAT_ADDS:
        return TransactionSupport.ADDING
    is_aware = version >= _FIRST_VERSION_WITH_ABORTABLE
    return TransactionSupport.ABORTABLE if is_aware else TransactionSupport.OLD


def _keep_records(request: ProduceRequest) -> int:
    """Copy the records out of the frame; return their size."""
    size = 0
    for topic in request.topic_data:
        for item in topic.partition_data:
            if item.records is not None:
                item.records = bytearray(_bytes_of(item))
                size += len(item.records)
    return size


def _bytes_of(item: PartitionProduceData) -> Any:
    # Decoded record bytes are one view over the frame.
    return item.records


def _check_admitted(
    context: RequestContext, target: Partition, item: PartitionProduceData, refusals: Refusals
) -> None:
    """Raise ApiError if the batch may not be written because of the state of its transaction."""
    code = refusals.get((target.topic, target.partition))
    if code is not None:
        reason = f"The partition is not known to be part of the transaction: {code.name}."
        raise ApiError(error_for(code, _support(context.api_version)), reason)
    if context.api_version < _FIRST_VERSION_THAT_ADDS or not is_transactional(item.records):
        return
    header = parse_header(_bytes_of(item))
    is_unknown = header.producer_id not in target.log.producers.producers
    if is_unknown and header.base_sequence > 0:
        # Each transaction begins at sequence 0, so earlier batches have been lost.
        raise ApiError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"The first batch of producer {header.producer_id} has sequence number {header.base_sequence} instead of 0.",
        )


def _append(
    context: RequestContext,
    target: Partition,
    item: PartitionProduceData,
    request: ProduceRequest,
    waits: Waits,
    unwritten: "Unwritten | None",
) -> PartitionProduceResponse:
    records = _bytes_of(item)
    if not records:
        raise ApiError(ErrorCode.INVALID_RECORD, "There is no record batch for the partition.")
    version = context.api_version
    if version < _FIRST_VERSION_WITH_ZSTD and _has_zstd(records):
        raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    acks = request.acks
    if not -1 <= acks <= 1:
        raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS)
    if is_internal(target.topic):
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, "Only the broker can write to internal topics."
        )
    partition_response = PartitionProduceResponse(index=item.index)
    try:
        info = target.append_as_leader(records, acks=acks)
    except HeavyBatchError:
        owned_records = records if type(records) is bytearray else bytearray(records)
        item.records = owned_records
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if unwritten is not None:
            unwritten.append(written)
        work = _append_heavy(context, target, item, request, partition_response, written)
        work = counted(work, context.usage, context.broker.clock)
        done = context.broker.tasks.spawn(work, f"heavy batch of {context.client_id}")
        context.connection.budget.hold_until(len(owned_records), done)
        # Later requests of the same client must not overtake the batch.
        context.keeps_order = True
        waits.append((partition_response, done))
        return partition_response
    except ApiError as error:
        return _refused(target, item, error)
    _accept(partition_response, info)
    acknowledged = target.acknowledgement(acks, info.last_offset + 1, request.timeout_ms / 1000)
    if acknowledged is not None:
        waits.append((partition_response, acknowledged))
    return partition_response


def _accept(partition_response: PartitionProduceResponse, info: AppendInfo) -> None:
    partition_response.base_offset = info.base_offset
    partition_response.log_append_time_ms = info.log_append_time_ms
    partition_response.log_start_offset = info.log_start_offset


def _refused(
    target: Partition, item: PartitionProduceData, error: ApiError
) -> PartitionProduceResponse:
    if error.code == ErrorCode.MESSAGE_TOO_LARGE:
        target.rejected_bytes += len(_bytes_of(item))
    failure = _failure(item.index, error)
    if not (error.code in _WITHOUT_LOG_START or isinstance(error, UnreadableBatchError)):
        failure.log_start_offset = target.log.log_start_offset
    return failure


async def _append_heavy(
    context: RequestContext,
    target: Partition,
    item: PartitionProduceData,
    request: ProduceRequest,
    partition_response: PartitionProduceResponse,
    written: "asyncio.Future[None]",
) -> ErrorCode:
    """Append a batch that is validated off the event loop, and fill in its part of the response.

    `written` is done as soon as the batch is written or refused; its replicas may still be awaited.
    """
    try:
        info = await _validate_and_append(context, target, item, request)
    except ApiError as error:
        refused = _refused(target, item, error)
        _count_failure(context.broker.replicas, target)
        for field in PartitionProduceResponse.FIELDS:
            setattr(partition_response, field.name, getattr(refused, field.name))
        return ErrorCode.NONE
    finally:
        if not written.done():
            written.set_result(None)
    _accept(partition_response, info)
    seconds = request.timeout_ms / 1000
    acknowledged = target.acknowledgement(request.acks, info.last_offset + 1, seconds)
    return ErrorCode.NONE if acknowledged is None else await acknowledged


async def _validate_and_append(
    context: RequestContext,
    target: Partition,
    item: PartitionProduceData,
    request: ProduceRequest,
) -> AppendInfo:
    """Validate and append a batch; validate it again if the configuration has changed meanwhile."""
    broker, records = context.broker, _bytes_of(item)
    for _ in range(_VALIDATIONS_MAX):
        validated = await broker.heavy_batches.validate(
            context.connection, records, target, request.acks
        )
        if request.transactional_id is not None and is_transactional(records):
            header = parse_header(records)
            producer = Producer(header.producer_id, header.producer_epoch)
            support = _support(context.api_version)
            write = TransactionalWrite(request.transactional_id, producer, [target], support)
            refusals = await broker.admission.confirm(write)
            _check_admitted(context, target, item, refusals)
        if validated.is_for(target.log.config):
            return target.append_as_leader(validated, acks=request.acks)
    # Clients retry this error.
    raise ApiError(
        ErrorCode.REQUEST_TIMED_OUT,
        f"The configuration of {target.topic!r} changed {_VALIDATIONS_MAX} times during validation.",
    )


def _has_zstd(records: memoryview) -> bool:
    return len(records) > LOW_ATTRIBUTES_POSITION and records[LOW_ATTRIBUTES_POSITION] & 7 == _ZSTD


def _failure(index: int, error: ApiError) -> PartitionProduceResponse:
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
