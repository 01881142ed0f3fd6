"""DescribeTransactions: the state of transactions for tools (KIP-664)."""

from ottla.base.errors import ErrorCode
from ottla.server.handlers import describe_transactions
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest
from tests.handlers.transactions import transactions_broker


async def describe(broker, *transactional_ids):
    """Return the descriptions."""
    request = DescribeTransactionsRequest(transactional_ids=list(transactional_ids))
    return (await broker.ask(describe_transactions, request, 0)).transaction_states


async def test_ongoing_transaction_shows_its_partitions():
    """The description has the time of its start."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        await broker.add(producer, 1, 0)
        (description,) = await describe(broker, "tx")
        assert (description.error_code, description.transactional_id) == (0, "tx")
        assert description.transaction_state == "Ongoing"
        assert description.transaction_timeout_ms == 60_000
        assert description.transaction_start_time_ms == broker.clock.time_ms()
        assert (description.producer_id, description.producer_epoch) == producer
        assert [(topic.topic, topic.partitions) for topic in description.topics] == [("t", [0, 1])]


async def test_id_without_a_transaction_has_no_partitions():
    """Its state is Empty."""
    async with transactions_broker() as broker:
        await broker.producer()
        (description,) = await describe(broker, "tx")
        assert (description.transaction_state, description.transaction_start_time_ms) == (
            "Empty",
            -1,
        )
        assert description.topics == []


async def test_id_that_is_named_twice_has_two_rows():
    """The rows are in the order of the request, as in Kafka."""
    async with transactions_broker() as broker:
        described = await describe(broker, "a", "b", "a")
        assert [item.transactional_id for item in described] == ["a", "b", "a"]


async def test_unknown_ids_have_an_error_each():
    """An empty transactional id is INVALID_REQUEST."""
    async with transactions_broker() as broker:
        description = await describe(broker, "nope", "")
        assert [item.error_code for item in description] == [
            ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
            ErrorCode.INVALID_REQUEST,
        ]
    async with transactions_broker(is_loaded=False) as broker:
        (refused,) = await describe(broker, "tx")
        assert refused.error_code == ErrorCode.NOT_COORDINATOR
