"""The writes and syncs before an acknowledgement: evidence for docs/durability.md, from strace."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from ottla.testing.process import BrokerProcess
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from ottla.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests import strace
from tests.handlers.logs import batch

pytestmark = pytest.mark.slow

OFFSETS = "offsets.topic.num.partitions"
TRANSACTIONS = "transaction.state.log.num.partitions"
FIRST_SEGMENT = f"{0:020d}.log"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Return a running broker with two topics; `synced` has flush.on.ack."""
    data = tmp_path_factory.mktemp("broker") / "data"
    with BrokerProcess(data, options={OFFSETS: "1", TRANSACTIONS: "1"}) as running:
        with Brokers(running.bootstrap) as brokers:
            topics.create_topic(brokers, "plain")
            topics.create_topic(brokers, "synced", config={"flush.on.ack": "true"})
        yield running


def raise_for(code: int) -> None:
    """Raise the ApiError of a code, for `Brokers.retry`."""
    if code:
        raise ApiError(ErrorCode(code))


def produce(brokers: Brokers, topic: str, acks: int) -> None:
    """Write a record."""
    data = PartitionProduceData(index=0, records=bytes(batch(b"value")))
    topic_data = [TopicProduceData(name=topic, partition_data=[data])]
    request = ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=topic_data)
    response = brokers.ask_node(1, request, ProduceResponse, max_version=9)
    assert response.responses[0].partition_responses[0].error_code == 0


def commit(brokers: Brokers, offset: int = 1, leader_epoch: int = -1) -> None:
    """Commit an offset of a group."""
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_leader_epoch=leader_epoch
    )
    topic = OffsetCommitRequestTopic(name="plain", partitions=[partition])
    request = OffsetCommitRequest(group_id="g", topics=[topic])
    response = brokers.ask_coordinator("g", request, OffsetCommitResponse, max_version=8)
    raise_for(response.topics[0].partitions[0].error_code)


def committed(brokers: Brokers) -> tuple[int, int]:
    """Return the committed offset and its leader epoch."""
    request = OffsetFetchRequest(
        group_id="g", topics=[OffsetFetchRequestTopic(name="plain", partition_indexes=[0])]
    )
    response = brokers.ask_coordinator("g", request, OffsetFetchResponse, max_version=7)
    raise_for(response.error_code)
    partition = response.topics[0].partitions[0]
    return partition.committed_offset, partition.committed_leader_epoch


def fetch(brokers: Brokers, offset: int) -> int:
    """Fetch without waiting; return the error code."""
    partition = FetchPartition(fetch_offset=offset, partition_max_bytes=1000)
    request = FetchRequest(topics=[FetchTopic(topic="plain", partitions=[partition])])
    response = brokers.ask_node(1, request, FetchResponse, max_version=12)
    return response.responses[0].partitions[0].error_code


def end_of_epoch(brokers: Brokers, leader_epoch: int) -> int:
    """Return the end offset of a leader epoch."""
    partition = OffsetForLeaderPartition(leader_epoch=leader_epoch)
    topic = OffsetForLeaderTopic(topic="plain", partitions=[partition])
    request = OffsetForLeaderEpochRequest(replica_id=-1, topics=[topic])
    response = brokers.ask_node(1, request, OffsetForLeaderEpochResponse)
    return response.topics[0].partitions[0].end_offset


def init_producer_id(brokers: Brokers) -> None:
    """Begin an epoch of a transactional producer."""
    request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=60_000)
    response = brokers.ask_transaction_coordinator(
        "t", request, InitProducerIdResponse, max_version=4
    )
    raise_for(response.error_code)


@contextmanager
def traced(
    broker: BrokerProcess, trace: Path, ready: Callable[[Brokers], object] = topics.list_topics
) -> Iterator[Brokers]:
    """Trace the broker while a client uses it; its connections and coordinators are ready before."""
    with Brokers(broker.bootstrap) as brokers:
        brokers.retry(lambda: ready(brokers))
        with strace.traced(broker.process_id, trace):
            yield brokers


def steps(trace: Path, file: Path) -> list[str]:
    """Return the steps in their order: written, synced (the file), acknowledged (over the socket)."""
    settings = {
        strace.Call("write", os.path.realpath(file)): "written",
        strace.Call("sync", os.path.realpath(file)): "synced",
        strace.Call("write", "socket"): "acknowledged",
    }
    return [settings[call] for call in strace.calls(trace) if call in settings]


@pytest.mark.parametrize("acks", [1, -1])
def test_records_are_written_and_not_synced_before_the_acknowledgement(
    broker: BrokerProcess, tmp_path: Path, acks: int
) -> None:
    """By default records survive kill -9, and the operating system decides when they are on the
    disk.
    """
    trace = tmp_path / "trace"
    with traced(broker, trace) as brokers:
        produce(brokers, "plain", acks)
    assert steps(trace, broker.data / "plain-0" / FIRST_SEGMENT) == ["written", "acknowledged"]


@pytest.mark.parametrize("acks", [1, -1])
def test_with_flush_on_ack_records_are_synced_before_the_acknowledgement(
    broker: BrokerProcess, tmp_path: Path, acks: int
) -> None:
    """With flush.on.ack records survive a power loss."""
    trace = tmp_path / "trace"
    with traced(broker, trace) as brokers:
        produce(brokers, "synced", acks)
    log = broker.data / "synced-0" / FIRST_SEGMENT
    assert steps(trace, log) == ["written", "synced", "acknowledged"]


def test_committed_offsets_are_synced_before_the_acknowledgement(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    """`__consumer_offsets` is created with flush.on.ack."""
    trace = tmp_path / "trace"
    with traced(broker, trace, commit) as brokers:
        commit(brokers)
    log = broker.data / "__consumer_offsets-0" / FIRST_SEGMENT
    assert steps(trace, log) == ["written", "synced", "acknowledged"]


def test_the_state_of_transactions_is_synced_before_the_acknowledgement(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    """`__transaction_state` is created with flush.on.ack."""
    trace = tmp_path / "trace"
    with traced(broker, trace, init_producer_id) as brokers:
        init_producer_id(brokers)
    log = broker.data / "__transaction_state-0" / FIRST_SEGMENT
    assert steps(trace, log)[:3] == ["written", "synced", "acknowledged"]


def test_a_new_topic_is_synced_before_the_acknowledgement(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    """The cluster's metadata is written to a journal that is synced for each group of changes."""
    trace = tmp_path / "trace"
    with traced(broker, trace) as brokers:
        topics.create_topic(brokers, "new")
    (journal,) = broker.data.glob("cluster.journal.*")
    actual = steps(trace, journal)
    assert "written" in actual
    # Each change is durable before it becomes visible.
    pairs = actual[: actual.index("acknowledged")]
    assert pairs == ["written", "synced"] * (len(pairs) // 2)


def test_offset_for_leader_epoch_reveals_lost_records_below_committed_offset(
    tmp_path: Path,
) -> None:
    """After a power loss the log ends before a committed offset, and OffsetForLeaderEpoch returns
    where.
    """
    with BrokerProcess(tmp_path / "data") as broker:
        log = broker.data / "plain-0" / FIRST_SEGMENT
        with Brokers(broker.bootstrap) as brokers:
            topics.create_topic(brokers, "plain")
            produce(brokers, "plain", -1)
            durable_bytes = log.stat().st_size
            produce(brokers, "plain", -1)
            brokers.retry(lambda: commit(brokers, offset=2, leader_epoch=0))
        broker.kill()
        # The part of a file that was not synced is lost in a power loss.
        os.truncate(log, durable_bytes)
        broker.start()
        with Brokers(broker.bootstrap) as brokers:
            assert brokers.retry(lambda: committed(brokers)) == (2, 0)
            assert fetch(brokers, offset=2) == ErrorCode.OFFSET_OUT_OF_RANGE
            # New records get the offsets of the lost ones; the leader epoch distinguishes them
            # (KIP-320).
            produce(brokers, "plain", -1)
            produce(brokers, "plain", -1)
            assert fetch(brokers, offset=2) == ErrorCode.NONE
            assert end_of_epoch(brokers, 0) == 1
