"""ListTransactions: all transactional ids of a broker, with filters (KIP-664, KIP-994, KIP-1152)."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.server.handlers import list_transactions
from ottla.wire.messages.list_transactions import ListTransactionsRequest
from tests.handlers.transactions import transactions_broker


async def listed(broker, version=1, **filters):
    """Return the response and its transactional ids."""
    response = await broker.ask(list_transactions, ListTransactionsRequest(**filters), version)
    return response, {item.transactional_id for item in response.transaction_states}


@pytest.mark.parametrize("version", range(list_transactions.MAX_VERSION + 1))
async def test_all_are_listed_without_filters(version):
    """Each has its producer id and state."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        await broker.add(producer, 0)
        await broker.producer("other")
        response, names = await listed(broker, version)
        assert (response.error_code, names) == (0, {"tx", "other"})
        states = {
            item.transactional_id: item.transaction_state for item in response.transaction_states
        }
        assert states == {"tx": "Ongoing", "other": "Empty"}


async def test_filters_narrow_the_list():
    """Filters by state, producer id and duration apply; unknown states are returned."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        await broker.add(producer, 0)
        await broker.producer("other")
        response, names = await listed(broker, state_filters=["Ongoing", "Bogus"])
        assert (names, response.unknown_state_filters) == ({"tx"}, ["Bogus"])
        assert (await listed(broker, producer_id_filters=[1001]))[1] == {"other"}
        assert "tx" not in (await listed(broker, duration_filter=0))[1]


async def test_pattern_matches_the_whole_id():
    """An empty pattern matches every id, and an invalid one has an error code (KIP-1152)."""
    async with transactions_broker() as broker:
        for name in ("tx", "other"):
            await broker.producer(name)
        for pattern, names in (("t.", {"tx"}), ("t", set()), ("", {"tx", "other"})):
            _, actual = await listed(broker, 2, transactional_id_pattern=pattern)
            assert actual == names
        response, names = await listed(broker, 2, transactional_id_pattern="[")
        assert (response.error_code, names) == (ErrorCode.INVALID_REGULAR_EXPRESSION, set())


async def test_no_list_is_returned_while_it_would_be_incomplete(monkeypatch):
    """The error is returned while a partition is being loaded."""
    async with transactions_broker() as broker:
        monkeypatch.setattr(broker.transactions, "is_loading", lambda: True)
        response, _ = await listed(broker)
        assert response.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
