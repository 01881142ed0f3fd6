"""Preparations for commands of a transcript: open transactions, and members of groups.

    @ open-transaction ID TOPIC
    @ hanging-transaction ID TOPIC
    @ streams-member GROUP TOPIC REPARTITION CHANGELOG    a member that reads TOPIC
    @ share-member GROUP TOPIC MEMBER
    @ streams-leave GROUP
    @ share-leave GROUP MEMBER

REPARTITION and CHANGELOG are internal topics of the application; `-` means none.
"""

from typing import Any

from ottla.client import AdminClient
from ottla.client.admin.answers import check
from ottla.client.brokers import Brokers
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.wire.records.records import Record, encode_batch
from tests.compat import heartbeats

# The last versions with which the client itself adds partitions to its transaction (KIP-890).
_PRODUCE, _INIT, _ADD = 11, 4, 3
_TIMESTAMP = 1_700_000_000_000


def perform(action: str, bootstrap: str) -> None:
    """Do one action."""
    kind, *words = action.split()
    if kind.endswith("-member"):
        with AdminClient(bootstrap_servers=bootstrap) as admin:
            # The first request for a coordinator creates the topic in which it stores groups.
            admin.list_group_offsets(words[0])
    if kind in ("open-transaction", "hanging-transaction"):
        _transaction(kind, bootstrap, *words)
    elif kind == "streams-member":
        _streams_member(bootstrap, *words)
    elif kind == "share-member":
        group, topic, member = words
        heartbeats.join(
            lambda epoch: heartbeats.share_heartbeat(
                bootstrap, group, epoch, topics=[topic], member=member
            )
        )
    elif kind == "streams-leave":
        heartbeats.streams_heartbeat(bootstrap, *words, heartbeats.LEAVING)
    else:
        assert kind == "share-leave", action
        group, member = words
        heartbeats.share_heartbeat(bootstrap, group, heartbeats.LEAVING, member=member)


def _streams_member(
    bootstrap: str, group: str, topic: str, repartition: str, changelog: str
) -> None:
    parts = [heartbeats.subtopology(topic, changelog="" if changelog == "-" else changelog)]
    if repartition != "-":
        parts.append(heartbeats.subtopology("", repartition=repartition, name="1"))

    def beat(epoch: int) -> Any:
        return heartbeats.streams_heartbeat(bootstrap, group, epoch, parts=parts)

    response = heartbeats.join(beat)
    heartbeats.streams_heartbeat(
        bootstrap, group, int(response.member_epoch), active=response.active_tasks
    )


def _transaction(kind: str, bootstrap: str, transactional_id: str, topic: str) -> None:
    with Brokers(bootstrap) as brokers:
        producer = brokers.retry(lambda: _init(brokers, transactional_id))
        if kind == "open-transaction":
            brokers.retry(lambda: _add(brokers, transactional_id, producer, topic))
        brokers.retry(lambda: _write(brokers, transactional_id, producer, topic))


def _init(brokers: Brokers, transactional_id: str) -> tuple[int, int]:
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=60_000
    )
    response = brokers.ask_transaction_coordinator(
        transactional_id, request, InitProducerIdResponse, max_version=_INIT
    )
    check(response.error_code)
    return response.producer_id, response.producer_epoch


def _add(brokers: Brokers, transactional_id: str, producer: tuple[int, int], topic: str) -> None:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0])],
    )
    response = brokers.ask_transaction_coordinator(
        transactional_id, request, AddPartitionsToTxnResponse, max_version=_ADD
    )
    (row,) = response.results_by_topic_v3_and_below
    check(row.results_by_partition[0].partition_error_code)


def _write(brokers: Brokers, transactional_id: str, producer: tuple[int, int], topic: str) -> None:
    data = encode_batch(
        [Record(None, b"half")],
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=0,
        transactional=True,
        timestamp=_TIMESTAMP,
    )
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(
                name=topic, partition_data=[PartitionProduceData(index=0, records=data)]
            )
        ],
    )
    leader = brokers.leaders([(topic, 0)])[topic, 0]
    response = brokers.ask_node(leader, request, ProduceResponse, max_version=_PRODUCE)
    check(response.responses[0].partition_responses[0].error_code)
