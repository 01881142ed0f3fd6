"""Appending of the batches of a produce request, each to its partition.

A batch that is too large for the event loop is validated off it, and appended later.
"""

import asyncio
from collections.abc import Callable

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.names import is_internal
from ottla.replication.partition import Partition
from ottla.replication.replicas import Replicas
from ottla.server.produce.admission import (
    ProduceContext,
    Refusals,
    bytes_of,
    check_admitted,
    check_still_admitted,
    target_of,
)
from ottla.server.quotas.steps import counted
from ottla.storage.log.validation import AppendInfo, HeavyBatchError, UnreadableBatchError
from ottla.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
    TopicProduceResponse,
)
from ottla.wire.records.batch import COMPRESSION_MASK, LOW_ATTRIBUTES_POSITION
from ottla.wire.records.compression import ZSTD

FIRST_VERSION_WITH_ZSTD = 7
# How often a heavy batch is validated if its topic's configuration keeps changing.
_VALIDATIONS_MAX = 5
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

# The results of batches that are not acknowledged or not validated yet.
Waits = list[tuple[PartitionProduceResponse, "asyncio.Future[ErrorCode]"]]


# The results of all batches of a request; those that may still change; True if a batch has failed.
# A plain tuple, because one is created for every request.
Appended = tuple[list[TopicProduceResponse], Waits, bool]
# Batches that are validated off the event loop: each is done as soon as it is written or refused.
Unwritten = list["asyncio.Future[None]"]


def append_all(
    context: ProduceContext,
    request: ProduceRequest,
    refusals: Refusals,
    unwritten: Unwritten | None = None,
) -> Appended:
    """Append the batches that are not refused, and note in `unwritten` those that are heavy."""
    appending = _Appending(context, request, refusals, unwritten)
    return _each(context, request, appending.append, appending.waits)


def refuse_all(context: ProduceContext, request: ProduceRequest, error: ApiError) -> Appended:
    """Return the same error for each batch."""

    def refuse(_: TopicProduceData, item: PartitionProduceData) -> PartitionProduceResponse:
        return failure(item.index, error)

    return _each(context, request, refuse, [])


def _each(
    context: ProduceContext,
    request: ProduceRequest,
    act: Callable[[TopicProduceData, PartitionProduceData], PartitionProduceResponse],
    waits: Waits,
) -> Appended:
    replicas = context.broker.replicas
    responses = []
    has_failed = False
    for topic in request.topic_data:
        name, topic_id = topic.name, topic.topic_id
        partition_responses = []
        for item in topic.partition_data:
            try:
                partition_response = act(topic, item)
            except ApiError as error:
                partition_response = failure(item.index, error)
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
    return responses, waits, has_failed


def _count_failure(replicas: Replicas, target: Partition | None) -> None:
    # Clients choose the names of topics that do not exist.
    if target is not None:
        replicas.failed_appends[target.topic] += 1


class _Appending:
    """Appends the batches of one request."""

    __slots__ = ("_context", "_refusals", "_request", "_unwritten", "waits")

    def __init__(
        self,
        context: ProduceContext,
        request: ProduceRequest,
        refusals: Refusals,
        unwritten: Unwritten | None,
    ) -> None:
        self._context = context
        self._request = request
        self._refusals = refusals
        self._unwritten = unwritten
        self.waits: Waits = []

    def append(
        self, topic: TopicProduceData, item: PartitionProduceData
    ) -> PartitionProduceResponse:
        """Append one batch; raises ApiError if the request may not write it."""
        target = target_of(self._context, topic, item)
        check_admitted(self._context, target, item, self._refusals)
        records, acks = bytes_of(item), self._request.acks
        if not records:
            raise ApiError(ErrorCode.INVALID_RECORD, "There is no record batch for the partition.")
        if self._context.api_version < FIRST_VERSION_WITH_ZSTD and _has_zstd(records):
            raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
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
            self._append_later(target, item, partition_response)
            return partition_response
        except ApiError as error:
            return _refused(target, item, error)
        _accept(partition_response, info)
        seconds = self._request.timeout_ms / 1000
        acknowledged = target.acknowledgement(acks, info.last_offset + 1, seconds)
        if acknowledged is not None:
            self.waits.append((partition_response, acknowledged))
        return partition_response

    def _append_later(
        self,
        target: Partition,
        item: PartitionProduceData,
        partition_response: PartitionProduceResponse,
    ) -> None:
        """Start a task that validates and appends a heavy batch."""
        context, records = self._context, bytes_of(item)
        owned_records = records if type(records) is bytearray else bytearray(records)
        item.records = owned_records
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._unwritten is not None:
            self._unwritten.append(written)
        work = self._append_heavy(target, item, partition_response, written)
        work = counted(work, context.usage, context.broker.clock)
        done = context.broker.tasks.spawn(work, f"heavy batch of {context.client_id}")
        context.connection.budget.hold_until(len(owned_records), done)
        # Later requests of the same client must not overtake the batch.
        context.keeps_order = True
        self.waits.append((partition_response, done))

    async def _append_heavy(
        self,
        target: Partition,
        item: PartitionProduceData,
        partition_response: PartitionProduceResponse,
        written: "asyncio.Future[None]",
    ) -> ErrorCode:
        """Append a batch that is validated off the event loop, and fill in its result.

        `written` is done as soon as the batch is written or refused; its replicas may still be
        awaited.
        """
        request = self._request
        try:
            info = await self._validate_and_append(target, item)
        except ApiError as error:
            refused = _refused(target, item, error)
            _count_failure(self._context.broker.replicas, target)
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
        self, target: Partition, item: PartitionProduceData
    ) -> AppendInfo:
        """Validate and append a batch; validate it again if the configuration has changed since."""
        context, request = self._context, self._request
        heavy_batches, acks = context.broker.heavy_batches, request.acks
        for _ in range(_VALIDATIONS_MAX):
            validated = await heavy_batches.validate(
                context.connection, bytes_of(item), target, acks
            )
            await check_still_admitted(context, target, item, request.transactional_id)
            if validated.is_for(target.log.config):
                return target.append_as_leader(validated, acks=acks)
        # Clients retry this error.
        raise ApiError(
            ErrorCode.REQUEST_TIMED_OUT,
            f"The configuration of {target.topic!r} changed {_VALIDATIONS_MAX} times during validation.",
        )


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


def _accept(partition_response: PartitionProduceResponse, info: AppendInfo) -> None:
    partition_response.base_offset = info.base_offset
    partition_response.log_append_time_ms = info.log_append_time_ms
    partition_response.log_start_offset = info.log_start_offset


def _refused(
    target: Partition, item: PartitionProduceData, error: ApiError
) -> PartitionProduceResponse:
    if error.code == ErrorCode.MESSAGE_TOO_LARGE:
        target.rejected_bytes += len(bytes_of(item))
    refused = failure(item.index, error)
    if not (error.code in _WITHOUT_LOG_START or isinstance(error, UnreadableBatchError)):
        refused.log_start_offset = target.log.log_start_offset
    return refused


def _has_zstd(records: memoryview) -> bool:
    return (
        len(records) > LOW_ATTRIBUTES_POSITION
        and records[LOW_ATTRIBUTES_POSITION] & COMPRESSION_MASK == ZSTD
    )
