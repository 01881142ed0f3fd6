"""InitProducerId: ids for idempotent producers."""

import asyncio

import pytest

from ottla.base.errors import ErrorCode
from ottla.server.handlers import init_producer_id
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from tests.handlers.groups import groups_broker


class Supply:
    """Ids from 1000 on; the first is not there at once."""

    def __init__(self):
        self.last = 999

    def next_id(self):
        self.last += 1
        if self.last > 1000:
            return self.last
        found = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(found.set_result, self.last)
        return found


@pytest.mark.parametrize("version", range(init_producer_id.MAX_VERSION + 1))
async def test_every_producer_gets_an_id_of_its_own(version):
    """With epoch 0, whatever id the producer had before."""
    async with groups_broker() as broker:
        broker.producer_ids = Supply()
        request = InitProducerIdRequest(transactional_id=None)
        first = await broker.ask(init_producer_id, request, version)
        if version >= 3:
            request.producer_id, request.producer_epoch = first.producer_id, 0
        second = await broker.ask(init_producer_id, request, version)
        assert [
            (item.error_code, item.producer_id, item.producer_epoch) for item in (first, second)
        ] == [
            (0, 1000, 0),
            (0, 1001, 0),
        ]


@pytest.mark.parametrize(
    ("transactional_id", "code"),
    [("tx", ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED), ("", ErrorCode.INVALID_REQUEST)],
)
async def test_transactional_ids_are_refused(transactional_id, code):
    """With an error that no client tries again on."""
    async with groups_broker() as broker:
        request = InitProducerIdRequest(transactional_id=transactional_id)
        answer = await broker.ask(init_producer_id, request, 5)
        assert (answer.error_code, answer.producer_id) == (code, -1)
