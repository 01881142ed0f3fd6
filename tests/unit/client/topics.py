"""A topic on a scripted broker: record batches in memory, and failures that a test defines."""

from collections.abc import Sequence
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.wire.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from ottla.wire.messages.init_producer_id import InitProducerIdResponse
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from ottla.wire.records import batch
from ottla.wire.records.records import Record, encode_batch, iterate_batches, iterate_records


class Topic:
    """Partitions as lists of batches. `failures` has error codes for the next responses, by API.

    An error of None disconnects. `leader` is a node id, which the brokers that serve the topic
    return in their metadata.
    """

    def __init__(self, name: str, partitions: int = 1) -> None:
        self.name = name
        self.leader = 0
        self.start = 0
        self.batches: dict[int, list[bytes]] = {number: [] for number in range(partitions)}
        self.aborted: list[AbortedTransaction] = []
        self.last_stable: int | None = None
        self.failures: dict[str, list[ErrorCode | None]] = {"Fetch": [], "Produce": []}
        # An error that is returned after the batch was written, as if the response had been lost.
        self.lost_answers = 0

    def serve_from(self, *brokers: Any) -> "Topic":
        """Make the brokers serve the topic."""
        for broker in brokers:
            broker.answers |= {
                "Metadata": lambda request, broker=broker: self._metadata(broker, request),
                "ListOffsets": self._list_offsets,
                "Fetch": lambda request, broker=broker: self._fetch(broker, request),
                "InitProducerId": lambda _: InitProducerIdResponse(producer_id=7),
                "Produce": lambda request, broker=broker: self._produce(broker, request),
            }
        return self

    def append(self, records: Sequence[Record], partition: int = 0, **fields: Any) -> None:
        """Append a batch."""
        fields["base_offset"] = self.end(partition)
        self.batches[partition].append(bytes(encode_batch(records, **fields)))

    def fill(self, count: int, partition: int = 0, each: int = 10) -> None:
        """Add `count` small records in batches of `each`."""
        for first in range(0, count, each):
            size = min(each, count - first)
            self.append([Record(None, b"%d" % (first + index)) for index in range(size)], partition)

    def end(self, partition: int = 0) -> int:
        """Return the log end offset."""
        if not self.batches[partition]:
            return 0
        return batch.parse_header(self.batches[partition][-1]).last_offset + 1

    def values(self, partition: int = 0) -> list[bytes | None]:
        """Return the values of all records."""
        return [record.value for record in iterate_records(b"".join(self.batches[partition]))]

    def _metadata(self, broker: Any, request: Any) -> MetadataResponse:
        response: MetadataResponse = broker.metadata(request)
        names = [self.name] if request.topics is None else [row.name for row in request.topics]
        for name in names:
            if name != self.name:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                response.topics.append(MetadataResponseTopic(name=name, error_code=code))
                continue
            rows = [
                MetadataResponsePartition(partition_index=number, leader_id=self.leader)
                for number in self.batches
            ]
            response.topics.append(MetadataResponseTopic(name=name, partitions=rows))
        return response

    def _list_offsets(self, request: Any) -> ListOffsetsResponse:
        rows = []
        for requested in request.topics[0].partitions:
            offset, timestamp = self._offset_at(requested, request.isolation_level)
            rows.append(
                ListOffsetsPartitionResponse(
                    partition_index=requested.partition_index, offset=offset, timestamp=timestamp
                )
            )
        topic = ListOffsetsTopicResponse(name=self.name, partitions=rows)
        return ListOffsetsResponse(topics=[topic])

    def _offset_at(self, requested: Any, isolation_level: int) -> tuple[int, int]:
        if requested.timestamp == -2:
            return self.start, -1
        if requested.timestamp == -1:
            end = self.end(requested.partition_index)
            return (
                end if not isolation_level or self.last_stable is None else self.last_stable
            ), -1
        for record in iterate_records(b"".join(self.batches[requested.partition_index])):
            if record.timestamp >= requested.timestamp:
                return record.offset, record.timestamp
        return -1, -1

    def _refusal(self, api: str, broker: Any) -> ErrorCode | None:
        if self.failures[api]:
            return self.failures[api].pop(0)
        is_leader = broker.node_id == self.leader
        return ErrorCode.NONE if is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def _fetch(self, broker: Any, request: Any) -> FetchResponse | None:
        code = self._refusal("Fetch", broker)
        if code is None:
            return None
        requested = request.topics[0].partitions[0]
        end = self.end(requested.partition)
        if code is ErrorCode.NONE and not self.start <= requested.fetch_offset <= end:
            code = ErrorCode.OFFSET_OUT_OF_RANGE
        data = PartitionData(
            partition_index=requested.partition,
            error_code=code,
            high_watermark=end,
            records=b"" if code else self._slice(requested),
            aborted_transactions=self.aborted if request.isolation_level else None,
        )
        topic = FetchableTopicResponse(topic=self.name, partitions=[data])
        return FetchResponse(responses=[topic])

    def _slice(self, requested: Any) -> bytes:
        result = b""
        for stored in self.batches[requested.partition]:
            if batch.parse_header(stored).last_offset >= requested.fetch_offset:
                # As a broker does: the first batch completely, whatever its size, the last one
                # truncated.
                room = requested.partition_max_bytes - len(result)
                result += stored if not result else stored[: max(room, 0)]
        return result

    def _produce(self, broker: Any, request: Any) -> ProduceResponse | None:
        code = self._refusal("Produce", broker)
        data = request.topic_data[0].partition_data[0]
        if code is ErrorCode.NONE:
            code = self._append(data.index, bytes(data.records))
        if self.lost_answers:
            self.lost_answers -= 1
            return None
        if code is None:
            return None
        row = PartitionProduceResponse(index=data.index, error_code=code)
        topic = TopicProduceResponse(name=self.name, partition_responses=[row])
        return ProduceResponse(responses=[topic])

    def _append(self, partition: int, records: bytes) -> ErrorCode:
        """Append the batch of an idempotent producer: in sequence, and once."""
        ((_, header),) = iterate_batches(records)
        held = [batch.parse_header(stored) for stored in self.batches[partition]]
        if any(held_batch.base_sequence == header.base_sequence for held_batch in held):
            return ErrorCode.DUPLICATE_SEQUENCE_NUMBER
        expected = held[-1].last_sequence + 1 if held else 0
        if header.base_sequence != expected:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        placed = bytearray(records)
        batch.patch_offset_and_epoch(placed, 0, self.end(partition), 0)
        self.batches[partition].append(bytes(placed))
        return ErrorCode.NONE
