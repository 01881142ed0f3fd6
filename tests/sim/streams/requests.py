"""The twin of `Brokers`: responses of the model to the requests of the engine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.brokers import Brokers
from ottla.client.records import TopicPartition
from ottla.wire.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from tests.sim.streams.clients import ProcessPorts

T = TypeVar("T")
_NODE = 1
_LATEST = -1
_PAUSE_S = 0.1


class ModelBrokers(Brokers):
    """Connections to the model; each request takes its time."""

    def __init__(self, ports: ProcessPorts) -> None:
        super().__init__("sim:9092")
        self._ports = ports

    def retry(self, attempt: Callable[[], T]) -> T:
        """Return the result, repeating while errors are transient."""
        while True:
            try:
                return attempt()
            except ApiError as error:
                # The leader of a group does not wait: its members do.
                if not error.code.is_retriable or not self._ports.threads.can_wait():
                    raise
            self._ports.threads.wait(_PAUSE_S)

    def ask_nodes(
        self, requests: Mapping[int, Any], response_type: type[Any], **options: Any
    ) -> dict[int, Any]:
        """Return the responses of several brokers."""
        return {node: self.ask_node(node, row, response_type) for node, row in requests.items()}

    def ask_node(self, node_id: int, request: Any, *arguments: Any, **options: Any) -> Any:
        """Return a response."""
        self._ports.request()
        respond: Any = {
            ListOffsetsRequest: self._list_offsets,
            OffsetFetchRequest: self._fetch_offsets,
            DeleteRecordsRequest: self._delete_records,
            CreateTopicsRequest: self._create_topics,
        }[type(request)]
        return respond(request)

    def ask_controller(self, request: Any, *arguments: Any, **options: Any) -> Any:
        """Return a response."""
        return self.ask_node(_NODE, request)

    def ask_coordinator(self, group_id: str, request: Any, *arguments: Any, **options: Any) -> Any:
        """Return a response."""
        return self.ask_node(_NODE, request)

    def metadata(self, topics: Any = None, **options: Any) -> MetadataResponse:
        """Return the topics and their partitions."""
        self._ports.request()
        known = self._ports.cluster.topics
        rows = []
        for name in sorted(known) if topics is None else topics:
            partitions = [
                MetadataResponsePartition(
                    partition_index=number,
                    leader_id=_NODE,
                    replica_nodes=[_NODE],
                    isr_nodes=[_NODE],
                )
                for number in range(len(known[name]))
            ]
            topic_id = name.encode()[:16].ljust(16, b"-")
            rows.append(MetadataResponseTopic(name=name, topic_id=topic_id, partitions=partitions))
        node = MetadataResponseBroker(node_id=_NODE, host="sim", port=9092)
        return MetadataResponse(brokers=[node], topics=rows)

    def _list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        topics = []
        for topic in request.topics:
            rows = []
            for row in topic.partitions:
                log = self._ports.cluster.log(TopicPartition(topic.name, row.partition_index))
                is_stalled = log.stalled_until > self._ports.cluster.loop.time()
                rows.append(
                    ListOffsetsPartitionResponse(
                        partition_index=row.partition_index,
                        error_code=ErrorCode.LEADER_NOT_AVAILABLE if is_stalled else 0,
                        offset=log.end if row.timestamp == _LATEST else log.start,
                    )
                )
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=rows))
        return ListOffsetsResponse(topics=topics)

    def _fetch_offsets(self, request: OffsetFetchRequest) -> OffsetFetchResponse:
        cluster, group = self._ports.cluster, request.group_id
        keys = [
            TopicPartition(topic.name, partition)
            for topic in request.topics or ()
            for partition in topic.partition_indexes
        ]
        if request.require_stable and not cluster.is_stable(group, keys):
            return OffsetFetchResponse(error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT)
        committed = cluster.committed.get(group, {})
        topics = [
            OffsetFetchResponseTopic(
                name=key.topic,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=key.partition,
                        committed_offset=committed.get(key, (-1, ""))[0],
                        metadata=committed.get(key, (-1, ""))[1],
                    )
                ],
            )
            for key in keys
        ]
        return OffsetFetchResponse(topics=topics)

    def _delete_records(self, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
        topics = []
        for topic in request.topics:
            rows = []
            for row in topic.partitions:
                log = self._ports.cluster.log(TopicPartition(topic.name, row.partition_index))
                log.start = max(log.start, row.offset)
                rows.append(
                    DeleteRecordsPartitionResult(
                        partition_index=row.partition_index, low_watermark=log.start
                    )
                )
            topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=rows))
        return DeleteRecordsResponse(topics=topics)

    def _create_topics(self, request: CreateTopicsRequest) -> CreateTopicsResponse:
        results = []
        for topic in request.topics:
            exists = topic.name in self._ports.cluster.topics
            if not exists:
                self._ports.cluster.create(topic.name, topic.num_partitions)
            code = ErrorCode.TOPIC_ALREADY_EXISTS if exists else ErrorCode.NONE
            results.append(CreatableTopicResult(name=topic.name, error_code=code))
        return CreateTopicsResponse(topics=results)

    def close(self) -> None:
        """Do nothing: no connection is open."""


@dataclass(frozen=True)
class ModelAccess:
    """The twin of ClusterAccess."""

    ports: ProcessPorts
    bootstrap: str = "sim:9092"
    options: Mapping[str, str] = field(default_factory=dict)

    def brokers(self, **options: Any) -> ModelBrokers:
        """Return connections to the model."""
        return ModelBrokers(self.ports)

    def librdkafka_settings(self) -> dict[str, Any]:
        """Return no options."""
        return {}
