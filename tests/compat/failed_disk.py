"""The responses of a broker with two log directories, one of which is full.

The partition in the full directory is written until a request fails. Then all requests of clients
and administrators about it are sent. Responses are comparable values, without anything that differs
between any two brokers.
"""

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.wire.api_keys import APIS
from ottla.wire.fields import Message
from ottla.wire.messages import (
    alter_replica_log_dirs,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_log_dirs,
    describe_producers,
    elect_leaders,
    fetch,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
)
from ottla.wire.records.records import Record, encode_batch
from tests.compat.recorded.player import Line, Target, ask

TOPIC = "t"
_BATCH = bytes(encode_batch([Record(None, b"x" * 100_000, (), 1_700_000_000_000)]))
_BATCHES_MAX = 500
_PATIENCE_S = 30.0

Answers = dict[str, Any]


class Questions:
    """Sends requests to one broker, on one connection."""

    def __init__(self, target: Target, full: Path) -> None:
        self._line = Line(target)
        self._full = full
        self.failed = self.other = -1

    def _ask(self, request: Message, version: int) -> Any:
        return ask(self._line, request, version, APIS[request.API_KEY].response)

    def play(self) -> Answers:
        """Fill the directory; return the responses by request."""
        self._create(TOPIC, 2)
        self._wait_until(lambda: {self._produce(number, 1) for number in (0, 1)} == {"NONE"})
        self.failed = 0 if (self._full / f"{TOPIC}-0").exists() else 1
        self.other = 1 - self.failed
        responses: Answers = {"write that is refused": self._fill()}
        self._wait_until(lambda: self._metadata()["failed"]["leader"] == -1)
        responses["metadata"] = self._metadata()
        for acks in (1, -1):
            responses[f"produce acks={acks}"] = self._produce(self.failed, acks)
            responses[f"produce elsewhere acks={acks}"] = self._produce(self.other, acks)
        responses["fetch"] = self._fetch()
        for name, timestamp in (("earliest", -2), ("latest", -1), ("time", 1)):
            responses[f"offsets {name}"] = self._offset(timestamp)
        responses["epoch"] = self._epoch()
        responses["delete records"] = self._delete_records()
        responses["producers"] = self._producers()
        responses["log dirs"] = self._log_dirs()
        responses["move to it"] = self._move(self.other, str(self._full))
        for kind in (0, 1):
            responses[f"election {kind}"] = self._elect(kind)
        responses["new topic"] = self._create("new", 1)
        responses["more partitions"] = self._grow()
        responses["where it is new"] = self._metadata("new")
        responses["delete topic"] = self._delete_topic()
        return responses

    def close(self) -> None:
        self._line.close()

    def _create(self, name: str, partitions: int) -> str:
        topic = create_topics.CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1
        )
        request = create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
        return ErrorCode(self._ask(request, 5).topics[0].error_code).name

    def _produce(self, partition: int, acks: int) -> str:
        data = produce.PartitionProduceData(index=partition, records=_BATCH)
        topic = produce.TopicProduceData(name=TOPIC, partition_data=[data])
        request = produce.ProduceRequest(acks=acks, timeout_ms=5000, topic_data=[topic])
        response = self._ask(request, 9).responses[0].partition_responses[0]
        return ErrorCode(response.error_code).name

    def _fill(self) -> str:
        for _ in range(_BATCHES_MAX):
            response = self._produce(self.failed, -1)
            if response != "NONE":
                return response
        raise AssertionError("there is room for everything")

    def _wait_until(self, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while not is_so():
            assert time.monotonic() < deadline, "it does not come to that"

    def _metadata(self, name: str = TOPIC) -> Answers:
        requested = [metadata.MetadataRequestTopic(name=name)]
        request = metadata.MetadataRequest(topics=requested, allow_auto_topic_creation=False)
        (topic,) = self._ask(request, 9).topics
        responses: Answers = {"topic": ErrorCode(topic.error_code).name}
        for partition in topic.partitions:
            alone = "failed" if partition.partition_index == self.failed else "other"
            responses[alone if name == TOPIC else "first"] = {
                "error": ErrorCode(partition.error_code).name,
                "leader": min(partition.leader_id, 0),
                "isr": len(partition.isr_nodes),
                "offline": len(partition.offline_replicas),
            }
        return responses

    def _fetch(self) -> str:
        requested = fetch.FetchPartition(partition=self.failed, partition_max_bytes=1 << 20)
        topics = [fetch.FetchTopic(topic=TOPIC, partitions=[requested])]
        request = fetch.FetchRequest(max_wait_ms=100, max_bytes=1 << 20, topics=topics)
        partition = self._ask(request, 11).responses[0].partitions[0]
        return ErrorCode(partition.error_code).name

    def _offset(self, timestamp: int) -> str:
        requested = list_offsets.ListOffsetsPartition(
            partition_index=self.failed, timestamp=timestamp
        )
        topic = list_offsets.ListOffsetsTopic(name=TOPIC, partitions=[requested])
        request = list_offsets.ListOffsetsRequest(replica_id=-1, topics=[topic])
        return ErrorCode(self._ask(request, 6).topics[0].partitions[0].error_code).name

    def _epoch(self) -> str:
        requested = offset_for_leader_epoch.OffsetForLeaderPartition(
            partition=self.failed, leader_epoch=0
        )
        topic = offset_for_leader_epoch.OffsetForLeaderTopic(topic=TOPIC, partitions=[requested])
        request = offset_for_leader_epoch.OffsetForLeaderEpochRequest(replica_id=-1, topics=[topic])
        return ErrorCode(self._ask(request, 3).topics[0].partitions[0].error_code).name

    def _delete_records(self) -> str:
        requested = delete_records.DeleteRecordsPartition(partition_index=self.failed, offset=1)
        topic = delete_records.DeleteRecordsTopic(name=TOPIC, partitions=[requested])
        request = delete_records.DeleteRecordsRequest(topics=[topic], timeout_ms=5000)
        return ErrorCode(self._ask(request, 2).topics[0].partitions[0].error_code).name

    def _producers(self) -> str:
        topic = describe_producers.TopicRequest(name=TOPIC, partition_indexes=[self.failed])
        request = describe_producers.DescribeProducersRequest(topics=[topic])
        return ErrorCode(self._ask(request, 0).topics[0].partitions[0].error_code).name

    def _log_dirs(self) -> Answers:
        response = self._ask(describe_log_dirs.DescribeLogDirsRequest(topics=None), 1)
        responses: Answers = {}
        for result in response.results:
            logs = sorted(
                f"{topic.name}-{partition.partition_index}"
                for topic in result.topics
                for partition in topic.partitions
                if topic.name == TOPIC
            )
            is_full = result.log_dir == str(self._full)
            error = ErrorCode(result.error_code).name
            responses["full" if is_full else "other"] = error, [log[:-1] for log in logs]
        return responses

    def _move(self, partition: int, path: str) -> str:
        topic = alter_replica_log_dirs.AlterReplicaLogDirTopic(name=TOPIC, partitions=[partition])
        directory = alter_replica_log_dirs.AlterReplicaLogDir(path=path, topics=[topic])
        request = alter_replica_log_dirs.AlterReplicaLogDirsRequest(dirs=[directory])
        return ErrorCode(self._ask(request, 1).results[0].partitions[0].error_code).name

    def _elect(self, kind: int) -> str:
        topic = elect_leaders.TopicPartitions(topic=TOPIC, partitions=[self.failed])
        request = elect_leaders.ElectLeadersRequest(
            election_type=kind, topic_partitions=[topic], timeout_ms=5000
        )
        results = self._ask(request, 2).replica_election_results
        return ErrorCode(results[0].partition_result[0].error_code).name

    def _grow(self) -> str:
        topic = create_partitions.CreatePartitionsTopic(name=TOPIC, count=3, assignments=None)
        request = create_partitions.CreatePartitionsRequest(topics=[topic], timeout_ms=3000)
        return ErrorCode(self._ask(request, 1).results[0].error_code).name

    def _delete_topic(self) -> str:
        request = delete_topics.DeleteTopicsRequest(topic_names=[TOPIC], timeout_ms=3000)
        return ErrorCode(self._ask(request, 5).responses[0].error_code).name


def answers(target: Target, full: Path) -> Answers:
    """Return the responses of a broker whose log directory `full` will be full."""
    with contextlib.closing(Questions(target, full)) as questions:
        return questions.play()
