"""TxnOffsetCommit: offsets that are committed with a transaction (KIP-98, KIP-447)."""

import asyncio

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster import names
from ottla.server.handlers import (
    add_offsets_to_txn,
    consumer_group_heartbeat,
    offset_fetch,
    txn_offset_commit,
)
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ottla.wire.records.records import Record, encode_batch
from tests.handlers.groups import join_request
from tests.handlers.transactions import transactions_broker

MEMBER = ConsumerGroupHeartbeatRequest(
    group_id="g",
    member_id="m",
    rebalance_timeout_ms=1000,
    subscribed_topic_names=["t"],
    topic_partitions=[],
)


async def add(broker, producer):
    """Add group `g` to the transaction."""
    request = AddOffsetsToTxnRequest(
        transactional_id="tx",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        group_id="g",
    )
    assert (await broker.ask(add_offsets_to_txn, request, 3)).error_code == 0


async def commit(broker, producer, *places, version=3, **fields):
    """Commit (partition, offset) pairs of `t`; return the codes."""
    request = TxnOffsetCommitRequest(
        transactional_id=fields.pop("transactional_id", "tx"),
        group_id=fields.pop("group_id", "g"),
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        topics=[
            TxnOffsetCommitRequestTopic(
                name="t",
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=number, committed_offset=offset, committed_metadata="m"
                    )
                    for number, offset in places
                ],
            )
        ],
        **fields,
    )
    response = await broker.ask(txn_offset_commit, request, version)
    return [
        ErrorCode(item.error_code).name for topic in response.topics for item in topic.partitions
    ]


async def stored(broker, *, require_stable=False):
    """Return the offset and error code of partition 0."""
    request = OffsetFetchRequest(
        group_id="g",
        topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0])],
        require_stable=require_stable,
    )
    partition = (await broker.ask(offset_fetch, request, 7)).topics[0].partitions[0]
    return partition.committed_offset, ErrorCode(partition.error_code).name


async def joined(broker):
    """Join the group, in generation 1; return the member id."""
    response = broker.groups.membership.join_group(
        join_request(), api_version=3, client_id="c", client_host="/127.0.0.1"
    )
    if asyncio.isfuture(response):
        response = await response
    assert (response.error_code, response.generation_id) == (0, 1)
    return response.member_id


@pytest.mark.parametrize("version", range(txn_offset_commit.MAX_VERSION + 1))
async def test_offsets_apply_when_the_transaction_is_committed(version):
    """Before the commit the offsets are unstable."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        await add(broker, producer)
        assert await commit(broker, producer, (0, 7), version=version) == ["NONE"]
        assert await stored(broker) == (-1, "NONE")
        assert await stored(broker, require_stable=True) == (-1, "UNSTABLE_OFFSET_COMMIT")
        assert await broker.end(producer) == 0
        assert await stored(broker, require_stable=True) == (7, "NONE")


async def test_commit_adds_the_group_to_the_transaction():
    """In version 5 (KIP-890) the commit adds the group, and the end of the transaction decides."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        assert await commit(broker, producer, (0, 7), version=5) == ["NONE"]
        assert await stored(broker, require_stable=True) == (-1, "UNSTABLE_OFFSET_COMMIT")
        assert await broker.end(producer, version=5) == 0
        assert await stored(broker, require_stable=True) == (7, "NONE")
        late = await commit(broker, producer, (0, 9), version=5)
        assert late == ["INVALID_PRODUCER_EPOCH"]
        following = producer._replace(producer_epoch=1)
        assert await commit(broker, following, (0, 9), version=5) == ["NONE"]
        assert await broker.end(following, is_commit=False, version=5) == 0
        assert await stored(broker, require_stable=True) == (7, "NONE")


async def test_offsets_of_an_aborted_transaction_are_dropped():
    """The offset from before stays."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        for offset, is_commit in ((7, True), (9, False)):
            await add(broker, producer)
            await commit(broker, producer, (0, offset))
            assert await broker.end(producer, is_commit=is_commit) == 0
        assert await stored(broker, require_stable=True) == (7, "NONE")


async def restarted(broker):
    """Load the group's partition of __consumer_offsets from the log again."""
    partition = broker.groups.partition_for("g")
    broker.groups.unload(partition)
    broker.groups.load(partition, 3)
    while isinstance(broker.groups.runtime.find(partition), ErrorCode):
        await asyncio.sleep(0)


async def test_groups_survive_a_bad_record():
    """An invalid record of __consumer_offsets or __transaction_state is skipped."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        assert await commit(broker, producer, (0, 7), version=5) == ["NONE"]
        bad = Record(b"\0\0\xff\xff", b"garbage", (), broker.clock.time_ms())
        for coordinator, topic, key in (
            (broker.groups, names.GROUP_OFFSETS_TOPIC, "g"),
            (broker.transactions, names.TRANSACTION_STATE_TOPIC, "tx"),
        ):
            number = coordinator.partition_for(key)
            broker.partition(topic, number).append_as_leader(
                encode_batch([bad]), acks=1, from_client=False
            )
            coordinator.unload(number)
            coordinator.load(number, 3)
            while coordinator.runtime.find(number) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                await asyncio.sleep(0)
            assert coordinator.skipped_count == 1
        assert await broker.end(producer, version=5) == 0
        assert await stored(broker, require_stable=True) == (7, "NONE")


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("protocol", ["none", "classic", "consumer"])
async def test_later_offset_wins_whichever_transaction_ends_last(protocol, is_restarted):
    """Transactions a and b commit 100, then 200; b ends first, and 200 stays, after a restart too."""
    async with transactions_broker() as broker:
        if protocol == "classic":
            await joined(broker)
        elif protocol == "consumer":
            await broker.ask(consumer_group_heartbeat, MEMBER, 1)
        producers = {name: await broker.producer(name) for name in "ab"}
        for name, offset in (("a", 100), ("b", 200)):
            fields = {"version": 5, "transactional_id": name}
            assert await commit(broker, producers[name], (0, offset), **fields) == ["NONE"]
        for name in "ba":
            assert await broker.end(producers[name], version=5, transactional_id=name) == 0
            if is_restarted:
                await restarted(broker)
            assert await stored(broker) == (200, "NONE")
        assert await stored(broker, require_stable=True) == (200, "NONE")


@pytest.mark.parametrize(
    ("version", "code"), [(3, "INVALID_TXN_STATE"), (4, "TRANSACTION_ABORTABLE")]
)
async def test_group_must_be_part_of_the_transaction(version, code):
    """Otherwise no marker would ever complete the offsets (KIP-890)."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        await broker.add(producer, 0)
        assert await commit(broker, producer, (0, 7), version=version) == [code]
        assert await stored(broker, require_stable=True) == (-1, "NONE")


async def test_former_producer_is_fenced():
    """Its offsets are not stored."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        await add(broker, producer)
        await broker.init()
        assert await commit(broker, producer, (0, 7)) == ["INVALID_PRODUCER_EPOCH"]


async def test_member_that_lost_its_partitions_cannot_commit():
    """Its generation has ended (KIP-447); a client without a member id is not checked."""
    async with transactions_broker() as broker:
        broker.groups.membership.join_group(
            join_request(), api_version=3, client_id="c", client_host="/127.0.0.1"
        )
        producer = await broker.producer()
        await add(broker, producer)
        assert await commit(broker, producer, (0, 7), member_id="m", generation_id=1) == [
            "UNKNOWN_MEMBER_ID"
        ]
        assert await commit(broker, producer, (0, 7)) == ["NONE"]


async def test_member_of_a_former_generation_cannot_commit():
    """The member has joined again, but its partitions may be another member's (KIP-447)."""
    async with transactions_broker() as broker:
        member = await joined(broker)
        producer = await broker.producer()
        await add(broker, producer)
        for generation, code in ((0, "ILLEGAL_GENERATION"), (2, "ILLEGAL_GENERATION"), (1, "NONE")):
            codes = await commit(
                broker, producer, (0, 7), member_id=member, generation_id=generation
            )
            assert codes == [code]


async def test_generation_of_no_group_is_illegal():
    """The group of the request does not exist."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        await add(broker, producer)
        codes = await commit(broker, producer, (0, 7), member_id="m", generation_id=1)
        assert codes == ["ILLEGAL_GENERATION"]


async def test_only_unknown_partitions_are_rejected():
    """A topic is in the response once."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        await add(broker, producer)
        assert await commit(broker, producer, (0, 7), (9, 1)) == [
            "NONE",
            "UNKNOWN_TOPIC_OR_PARTITION",
        ]
        assert await commit(broker, producer, (9, 1)) == ["UNKNOWN_TOPIC_OR_PARTITION"]


async def test_empty_group_is_rejected():
    """The error is INVALID_GROUP_ID."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        assert await commit(broker, producer, (0, 7), group_id="") == ["INVALID_GROUP_ID"]


@pytest.mark.parametrize(
    ("version", "code"), [(1, "COORDINATOR_NOT_AVAILABLE"), (2, "COORDINATOR_LOAD_IN_PROGRESS")]
)
async def test_loading_error_depends_on_the_version(version, code, monkeypatch):
    """The error code depends on the version, because old clients fail on others (KAFKA-7296)."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        await add(broker, producer)
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        monkeypatch.setattr(broker.groups.runtime, "_active", refuse(loading))
        assert await commit(broker, producer, (0, 7), version=version) == [code]


def refuse(code):
    """Return a function that raises an ApiError."""

    def raising(_):
        raise ApiError(code)

    return raising
