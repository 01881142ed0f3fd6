"""AddPartitionsToTxn: the partitions that a transaction may write to."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.cluster.names import GROUP_OFFSETS_TOPIC
from ottla.coordinators.txn.machine import ProducerIdAndEpoch
from ottla.server.handlers import add_partitions_to_txn
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from tests.handlers.transactions import transactions_broker


def many(*transactions):
    """Return a request of version 4; (id, producer, verify, topic, partitions) each."""
    return AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id=transactional_id,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                verify_only=verify,
                topics=[AddPartitionsToTxnTopic(name=topic, partitions=partitions)],
            )
            for transactional_id, producer, verify, topic, partitions in transactions
        ]
    )


def codes(response):
    """Return the error codes by transactional id and partition."""
    return {
        (result.transactional_id, topic.name, item.partition_index): ErrorCode(
            item.partition_error_code
        ).name
        for result in response.results_by_transaction
        for topic in result.topic_results
        for item in topic.results_by_partition
    }


async def test_partitions_can_be_added_twice():
    """A repeated request changes nothing."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        assert await broker.add(producer, 0) == 0
        assert await broker.add(producer, 0, 1) == 0
        assert await broker.add(producer, 0, 1) == 0
        assert broker.transactions.find("tx").partitions == {("t", 0), ("t", 1)}


@pytest.mark.parametrize("version", range(4))
async def test_unknown_partition_rejects_the_others(version):
    """The other partitions get OPERATION_NOT_ATTEMPTED."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="tx",
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name="t", partitions=[0, 9])],
        )
        response = await broker.ask(add_partitions_to_txn, request, version)
        results = response.results_by_topic_v3_and_below[0].results_by_partition
        assert [ErrorCode(item.partition_error_code).name for item in results] == [
            "OPERATION_NOT_ATTEMPTED",
            "UNKNOWN_TOPIC_OR_PARTITION",
        ]
        assert broker.transactions.find("tx").partitions == frozenset()


async def test_internal_topics_cannot_be_added_by_clients():
    """Clients cannot add internal topics; brokers use version 4 and above."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="tx",
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name="t", partitions=[0]),
                AddPartitionsToTxnTopic(name=GROUP_OFFSETS_TOPIC, partitions=[0]),
            ],
        )
        response = await broker.ask(add_partitions_to_txn, request, 3)
        results = [item.results_by_partition[0] for item in response.results_by_topic_v3_and_below]
        assert [ErrorCode(item.partition_error_code).name for item in results] == [
            "OPERATION_NOT_ATTEMPTED",
            "TOPIC_AUTHORIZATION_FAILED",
        ]
        assert broker.transactions.find("tx").partitions == frozenset()


async def test_response_has_the_structure_of_the_request():
    """A repeated partition and a topic without partitions are both in the response."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        topics = [
            AddPartitionsToTxnTopic(name="t", partitions=[0, 0]),
            AddPartitionsToTxnTopic(name="u", partitions=[]),
        ]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="tx",
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=topics,
        )
        response = await broker.ask(add_partitions_to_txn, request, 3)
        results = response.results_by_topic_v3_and_below
        assert [(item.name, len(item.results_by_partition)) for item in results] == [
            ("t", 2),
            ("u", 0),
        ]


@pytest.mark.parametrize(
    ("version", "code"), [(1, "INVALID_PRODUCER_EPOCH"), (2, "PRODUCER_FENCED")]
)
async def test_former_producer_is_fenced(version, code):
    """The error code depends on the version."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        await broker.producer()
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="tx",
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name="t", partitions=[0])],
        )
        response = await broker.ask(add_partitions_to_txn, request, version)
        result = response.results_by_topic_v3_and_below[0].results_by_partition[0]
        assert ErrorCode(result.partition_error_code).name == code


async def test_unknown_producers_are_rejected():
    """An unknown or another producer's id is an invalid mapping, an empty id an invalid request."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        refused = ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert await broker.add(producer, 0, transactional_id="nobody") == refused
        assert await broker.add(ProducerIdAndEpoch(5, 0), 0) == refused
        assert await broker.add(producer, 0, transactional_id="") == ErrorCode.INVALID_REQUEST


async def test_brokers_add_and_verify_several_at_once():
    """In version 4 verify_only changes nothing, and the code of a missing partition depends on the
    version.
    """
    async with transactions_broker() as broker:
        producer, other = await broker.producer(), await broker.producer("other")
        request = many(("tx", producer, False, "t", [0]), ("other", other, True, "t", [0]))
        response = await broker.ask(add_partitions_to_txn, request, 4)
        assert codes(response) == {("tx", "t", 0): "NONE", ("other", "t", 0): "INVALID_TXN_STATE"}
        request = many(("tx", producer, True, "t", [0, 1]))
        response = await broker.ask(add_partitions_to_txn, request, 5)
        assert codes(response) == {("tx", "t", 0): "NONE", ("tx", "t", 1): "TRANSACTION_ABORTABLE"}
        request = many(("tx", producer, True, "no", [0]))
        response = await broker.ask(add_partitions_to_txn, request, 5)
        assert codes(response) == {("tx", "no", 0): "UNKNOWN_TOPIC_OR_PARTITION"}
        assert broker.transactions.find("tx").partitions == {("t", 0)}


async def test_addition_by_a_broker_means_transaction_version_2():
    """The markers use this version if the transaction times out before it ends (KIP-1228)."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        for version, spoken in ((3, 0), (4, 2)):
            if version < 4:
                assert await broker.add(producer, 0) == 0
            else:
                request = many(("tx", producer, False, "t", [1]))
                await broker.ask(add_partitions_to_txn, request, version)
            assert broker.transactions.find("tx").client_version == spoken


async def test_verification_checks_the_producer():
    """A wrong producer id and an old epoch are rejected."""
    async with transactions_broker() as broker:
        old = await broker.producer()
        await broker.producer()
        request = many(
            ("tx", ProducerIdAndEpoch(5, 0), True, "t", [0]), ("tx", old, True, "t", [1])
        )
        response = await broker.ask(add_partitions_to_txn, request, 5)
        assert list(codes(response).values()) == ["INVALID_PRODUCER_ID_MAPPING", "PRODUCER_FENCED"]
