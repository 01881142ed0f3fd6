"""DescribeProducers: the idempotent and transactional producers of a partition."""

from typing import Any

from ottla.base.errors import ErrorCode
from ottla.server.handlers import describe_producers
from ottla.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from tests.handlers.logs import OTHER, LogsBroker, batch
from tests.handlers.transactions import transactions_broker


async def describe(broker: LogsBroker, *topics: tuple[str, list[int]]) -> Any:
    requested = [TopicRequest(name=name, partition_indexes=numbers) for name, numbers in topics]
    request = DescribeProducersRequest(topics=requested)
    return (await broker.ask(describe_producers, request, 0)).topics


def produce(broker: LogsBroker, *values: bytes, timestamp: int, **fields: Any) -> None:
    """Append a batch of an idempotent producer."""
    records = batch(*values, timestamp=timestamp, **fields)
    broker.partition("t").append_as_leader(records, acks=1)


async def test_producer_has_the_values_of_its_last_batch(broker: LogsBroker) -> None:
    """The response has epoch, sequence and time of the last record; other producers are omitted."""
    broker.create("t", partitions=2)
    broker.write("t", b"plain")
    produce(broker, b"a", timestamp=1000, producer_id=7, producer_epoch=2, base_sequence=0)
    produce(broker, b"b", b"c", timestamp=2000, producer_id=7, producer_epoch=2, base_sequence=1)
    (topic,) = await describe(broker, ("t", [0, 1]))
    with_records, empty = topic.partitions
    (state,) = with_records.active_producers
    assert (with_records.error_code, state.producer_id, state.producer_epoch) == (0, 7, 2)
    assert (state.last_sequence, state.last_timestamp) == (2, 2000)
    assert (state.current_txn_start_offset, state.coordinator_epoch) == (-1, -1)
    assert (empty.partition_index, empty.error_code, empty.active_producers) == (1, 0, [])


async def test_open_transaction_has_its_first_offset(broker: LogsBroker) -> None:
    """Tools find a hanging transaction by this offset."""
    broker.create("t")
    broker.write("t", b"plain")
    fields = {"producer_id": 8, "producer_epoch": 0, "transactional": True}
    produce(broker, b"a", timestamp=1000, base_sequence=0, **fields)
    produce(broker, b"b", timestamp=1000, base_sequence=1, **fields)
    (topic,) = await describe(broker, ("t", [0]))
    (state,) = topic.partitions[0].active_producers
    assert (state.producer_id, state.current_txn_start_offset) == (8, 1)
    assert state.last_timestamp == 1000


async def test_end_of_a_transaction_updates_the_timestamp() -> None:
    """The time of the marker is the producer's last timestamp."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        await broker.add(producer, 0)
        await broker.send(producer, b"a")
        await broker.end(producer)
        (topic,) = await describe(broker, ("t", [0]))
        (state,) = topic.partitions[0].active_producers
        assert (state.last_sequence, state.current_txn_start_offset) == (0, -1)
        assert state.last_timestamp == broker.clock.time_ms()


async def test_only_the_leader_describes_a_partition(broker: LogsBroker) -> None:
    """Unknown partitions and other leaders' partitions have error codes."""
    broker.create("theirs", leader=OTHER, replicas=(OTHER,))
    broker.create("followed", leader=OTHER, replicas=(1, OTHER))
    broker.create("t")
    requested = [("theirs", [0]), ("followed", [0]), ("t", [5]), ("no", [0]), ("a b", [0])]
    topics = await describe(broker, *requested)
    codes = [ErrorCode(topic.partitions[0].error_code) for topic in topics]
    elsewhere, unknown = ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == [elsewhere, elsewhere, unknown, unknown, ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert all(topic.partitions[0].error_message for topic in topics[3:])


async def test_partition_that_is_named_twice_has_two_rows(broker: LogsBroker) -> None:
    """The rows are in the order of the request, as in Kafka."""
    broker.create("t", partitions=2)
    (topic,) = await describe(broker, ("t", [1, 0, 1]))
    assert [item.partition_index for item in topic.partitions] == [1, 0, 1]
