"""WriteTxnMarkers: sent by coordinators of other brokers, and by tools for hanging transactions."""

from ottla.base.errors import ErrorCode
from ottla.server.handlers import write_txn_markers
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.handlers.transactions import OFFSETS, transactions_broker


def marker(producer, *places, epoch=0, is_commit=True, transaction_version=0):
    """Return a marker for (topic, partition) pairs."""
    return WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        coordinator_epoch=epoch,
        transaction_result=is_commit,
        transaction_version=transaction_version,
        topics=[
            WritableTxnMarkerTopic(name=topic, partition_indexes=[number])
            for topic, number in places
        ],
    )


async def write(broker, *markers, version=1):
    """Write markers; return the error codes of each."""
    request = WriteTxnMarkersRequest(markers=list(markers))
    response = await broker.ask(write_txn_markers, request, version)
    return [
        [ErrorCode(item.error_code).name for topic in marker.topics for item in topic.partitions]
        for marker in response.markers
    ]


async def test_marker_ends_a_transaction():
    """No coordinator is involved, as tools need it for a hanging transaction."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        await broker.add(producer, 0)
        await broker.send(producer, b"a")
        assert await write(broker, marker(producer, ("t", 0), is_commit=False)) == [["NONE"]]
        partition = await broker.read()
        assert partition.last_stable_offset == 2
        assert len(partition.aborted_transactions) == 1


async def test_marker_may_be_written_twice():
    """A coordinator that lost the response sends it again."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        await broker.add(producer, 0)
        await broker.send(producer, b"a")
        both = [marker(producer, ("t", 0)), marker(producer, ("t", 0))]
        assert await write(broker, *both) == [["NONE"], ["NONE"]]
        assert await broker.committed_values() == [b"a"]


async def test_marker_without_partitions_is_omitted():
    """Kafka omits it as well."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        assert await write(broker, marker(producer)) == []


async def test_stale_markers_are_rejected():
    """Markers of an older producer epoch or of a replaced coordinator are rejected."""
    async with transactions_broker() as broker:
        old = await broker.producer()
        new = await broker.producer()
        await broker.add(new, 0)
        await broker.send(new, b"a")
        assert await write(broker, marker(old, ("t", 0), epoch=5)) == [["INVALID_PRODUCER_EPOCH"]]
        assert await write(broker, marker(new, ("t", 0), epoch=5)) == [["NONE"]]
        refused = [["TRANSACTION_COORDINATOR_FENCED"]]
        assert await write(broker, marker(new, ("t", 0), epoch=4)) == refused


async def test_each_partition_has_its_own_result():
    """Markers in __consumer_offsets are written by the group coordinator."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        topic_partitions = (("t", 0), ("t", 9), ("nope", 0), (OFFSETS, 1))
        unknown = "UNKNOWN_TOPIC_OR_PARTITION"
        assert await write(broker, marker(producer, *topic_partitions)) == [
            ["NONE", unknown, unknown, "NONE"]
        ]
        broker.groups.unload(1)
        assert await write(broker, marker(producer, (OFFSETS, 1))) == [["NOT_COORDINATOR"]]


async def test_late_marker_does_not_end_the_next_transaction():
    """In transaction.version 2 a marker's epoch is above the epoch of its transaction's records
    (KIP-1228).
    """
    async with transactions_broker() as broker:
        producer = await broker.producer()
        topic_partitions = (("t", 0), (OFFSETS, 0))
        following = producer._replace(producer_epoch=1)
        ended = marker(following, *topic_partitions, transaction_version=2)
        assert await broker.send(producer, b"a", version=12) == 0
        assert await write(broker, ended, version=2) == [["NONE", "NONE"]]
        # Nothing has been written since: it is the same marker, once more.
        assert await write(broker, ended, version=2) == [["NONE", "NONE"]]
        assert await broker.end(producer, version=5) == 0
        assert await broker.send(following, b"b", version=12) == 0
        assert await write(broker, ended, version=2) == [["INVALID_PRODUCER_EPOCH", "NONE"]]
        assert (await broker.read()).last_stable_offset < (await broker.read()).high_watermark
        earlier = marker(producer, ("t", 0), transaction_version=2)
        assert await write(broker, earlier, version=2) == [["INVALID_PRODUCER_EPOCH"]]
        assert await broker.end(following, version=5) == 0
        assert await broker.committed_values() == [b"a", b"b"]


async def test_marker_of_transaction_version_1_has_the_epoch_of_its_records():
    """In earlier versions an epoch has many transactions, so a late marker cannot be detected."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        await broker.add(producer, 0)
        await broker.send(producer, b"a")
        for version in (0, 1):
            request_marker = marker(producer, ("t", 0), transaction_version=version)
            assert await write(broker, request_marker, version=2) == [["NONE"]]


async def test_invalid_markers_are_rejected():
    """A marker with an invalid producer id, epoch or version is not written."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        before = (await broker.read()).high_watermark
        for changes in ({"producer_id": -1}, {"producer_epoch": -1}):
            request_marker = marker(producer._replace(**changes), ("t", 0))
            assert await write(broker, request_marker) == [["UNKNOWN_SERVER_ERROR"]]
        request_marker = marker(producer, ("t", 0), transaction_version=-1)
        assert await write(broker, request_marker, version=2) == [["UNKNOWN_SERVER_ERROR"]]
        assert (await broker.read()).high_watermark == before
