"""One partition of transactional ids: storage, markers, timeouts, and recovery after a restart."""

import asyncio
from dataclasses import replace

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster import names
from ottla.cluster.image import ClusterImage, PartitionImage, TopicImage
from ottla.cluster.names import TRANSACTION_STATE_TOPIC
from ottla.cluster.options.option_tables import BROKER_OPTIONS
from ottla.coordinators.txn.machine import ProducerIdAndEpoch
from ottla.coordinators.txn.sending import MARKERS_AT_ONCE
from ottla.coordinators.txn.service import Environment, TransactionCoordinator
from ottla.coordinators.txn.state import EPOCH_MAX, TransactionState


def topic(name, partitions):
    images = (PartitionImage(number, 1, 0, (1,), (1,)) for number in range(partitions))
    return TopicImage(name, name.encode().ljust(16), tuple(images))


class Markers:
    """Write markers, or return the error codes that the test has set."""

    def __init__(self):
        self.written = []
        self.codes = {}
        self.holds = None

    def write(self, marker, partitions):
        self.written += [(marker, topic_partition) for topic_partition in partitions]
        codes = {
            topic_partition: self.codes.get(topic_partition, ErrorCode.NONE)
            for topic_partition in partitions
        }
        if self.holds is None:
            return codes
        held = asyncio.get_running_loop().create_future()
        self.holds.append((held, codes))
        return held


class Ids:
    """Producer ids from 7 on."""

    def __init__(self):
        self.next = 6
        self.waiting = None

    def next_id(self):
        if self.waiting is not None:
            return self.waiting
        self.next += 1
        return self.next


class Transactions:
    """A transaction coordinator with one partition."""

    def __init__(self, world):
        self.world = world
        self.markers = Markers()
        self.ids = Ids()
        self.options = BROKER_OPTIONS.parse({})
        self.version = 2
        self.image = ClusterImage().with_topics(
            [topic(TRANSACTION_STATE_TOPIC, 1), topic("t", 300)]
        )
        self.coordinator = self.make()

    def make(self):
        coordinator = TransactionCoordinator(
            writer=self.world.partitions,
            markers=self.markers,
            producer_ids=self.ids,
            clock=self.world.clock,
            tasks=self.world.tasks,
            now=Environment(lambda: self.options, lambda: self.image, lambda: self.version),
        )
        return coordinator

    async def restart(self, leader_epoch=9):
        self.coordinator.close()
        self.coordinator = self.make()
        self.coordinator.load(0, leader_epoch)
        await self.world.clock.sleep(0.001)

    async def begin(self, *numbers, timeout_ms=60_000):
        outcome = await self.coordinator.init_producer_id("tx", timeout_ms, ProducerIdAndEpoch())
        producer = ProducerIdAndEpoch(outcome.next.producer_id, outcome.next.producer_epoch)
        topic_partitions = [("t", number) for number in numbers]
        assert self.coordinator.add_partitions("tx", producer, topic_partitions) is ErrorCode.NONE
        return producer

    def state(self):
        return self.coordinator.find("tx").state


@pytest.fixture
def transactions(world):
    return Transactions(world)


def run(world, transactions, scenario):
    async def whole():
        transactions.coordinator.load(0, 3)
        await scenario()
        transactions.coordinator.close()

    world.loop.run(whole())


def test_markers_have_the_coordinators_epoch(world, transactions):
    """One marker is written to each partition, and then the transaction is complete."""

    async def scenario():
        producer = await transactions.begin(1, 0)
        assert transactions.coordinator.end("tx", producer, is_commit=True) is ErrorCode.NONE
        assert [topic_partition for _, topic_partition in transactions.markers.written] == [
            ("t", 0),
            ("t", 1),
        ]
        marker = transactions.markers.written[0][0]
        assert marker == (7, 0, 3, True, 0)
        assert transactions.state() is TransactionState.COMPLETE_COMMIT

    run(world, transactions, scenario)


def test_markers_wait_for_the_commit_of_the_decision(world, transactions):
    """No marker is written while the decision could still be lost."""

    async def scenario():
        producer = await transactions.begin(0)
        world.partitions.holds_commits = True
        response = transactions.coordinator.end("tx", producer, is_commit=True)
        await asyncio.sleep(0)
        assert not response.done()
        assert transactions.markers.written == []
        verdict = transactions.coordinator.verify("tx", producer, ("t", 0))
        assert verdict is ErrorCode.CONCURRENT_TRANSACTIONS
        world.partitions.holds_commits = False
        world.partitions.commit()
        assert await response is ErrorCode.NONE
        assert len(transactions.markers.written) == 1

    run(world, transactions, scenario)


def test_a_state_is_visible_once_it_is_committed(world, transactions):
    """Describe- and ListTransactions show no state that can be lost, and a producer that sees
    the end of its transaction there can begin the next one.
    """

    async def scenario():
        coordinator = transactions.coordinator
        producer = await transactions.begin(0)
        world.partitions.holds_commits = True
        response = coordinator.end("tx", producer, is_commit=True)
        await asyncio.sleep(0)
        assert coordinator.find("tx").state is TransactionState.ONGOING
        assert [shown.state for shown in coordinator.transactions()] == [TransactionState.ONGOING]
        world.partitions.commit()
        assert await response is ErrorCode.NONE
        # The markers are written; their completion is not committed.
        assert len(transactions.markers.written) == 1
        assert coordinator.find("tx").state is TransactionState.PREPARE_COMMIT
        world.partitions.commit()
        await asyncio.sleep(0)
        assert coordinator.find("tx").state is TransactionState.COMPLETE_COMMIT
        verdict = coordinator.verify("tx", producer, ("t", 0))
        assert verdict is ErrorCode.TRANSACTION_ABORTABLE

    run(world, transactions, scenario)


def test_partition_is_not_writable_before_its_addition_is_committed(world, transactions):
    """A partition whose addition could be lost is not writable: its records could be outside the
    transaction.
    """

    async def scenario():
        producer = await transactions.begin(0)
        world.partitions.holds_commits = True
        response = transactions.coordinator.add_partitions("tx", producer, [("t", 1)])
        again = transactions.coordinator.add_partitions("tx", producer, [("t", 1)])
        verdict = transactions.coordinator.verify("tx", producer, ("t", 1))
        assert verdict is ErrorCode.CONCURRENT_TRANSACTIONS
        world.partitions.commit()
        assert [await response, await again] == [ErrorCode.NONE, ErrorCode.NONE]
        await asyncio.sleep(0)
        assert transactions.coordinator.verify("tx", producer, ("t", 1)) is ErrorCode.NONE

    run(world, transactions, scenario)


def test_failed_partitions_are_retried(world, transactions):
    """The other partitions do not wait and get one marker only."""

    async def scenario():
        producer = await transactions.begin(0, 1)
        transactions.markers.codes[("t", 0)] = ErrorCode.NOT_LEADER_OR_FOLLOWER
        transactions.coordinator.end("tx", producer, is_commit=False)
        await world.clock.sleep(0.25)
        assert transactions.state() is TransactionState.PREPARE_ABORT
        transactions.markers.codes.clear()
        await world.clock.sleep(0.2)
        assert transactions.state() is TransactionState.COMPLETE_ABORT
        topic_partitions = [topic_partition for _, topic_partition in transactions.markers.written]
        assert topic_partitions.count(("t", 1)) == 1
        assert topic_partitions.count(("t", 0)) > 2

    run(world, transactions, scenario)


def test_many_partitions_are_written_in_batches(world, transactions):
    """Other requests are served between the batches."""

    async def scenario():
        producer = await transactions.begin(*range(300))
        transactions.coordinator.end("tx", producer, is_commit=True)
        assert len(transactions.markers.written) == MARKERS_AT_ONCE
        await world.clock.sleep(0.01)
        assert len(transactions.markers.written) == 300
        assert transactions.state() is TransactionState.COMPLETE_COMMIT

    run(world, transactions, scenario)


def test_fenced_coordinator_writes_no_more_markers(world, transactions):
    """A fenced coordinator leaves the markers to the newer coordinator."""

    async def scenario():
        producer = await transactions.begin(0)
        transactions.markers.codes[("t", 0)] = ErrorCode.TRANSACTION_COORDINATOR_FENCED
        transactions.coordinator.end("tx", producer, is_commit=True)
        await world.clock.sleep(1)
        assert len(transactions.markers.written) == 1
        assert transactions.state() is TransactionState.PREPARE_COMMIT

    run(world, transactions, scenario)


def test_next_coordinator_completes_a_prepared_transaction(world, transactions):
    """The markers were delayed; the next coordinator's markers carry its epoch."""

    async def scenario():
        producer = await transactions.begin(0)
        transactions.markers.holds = []
        transactions.coordinator.end("tx", producer, is_commit=True)
        transactions.markers.holds = None
        await transactions.restart(leader_epoch=9)
        assert [marker.coordinator_epoch for marker, _ in transactions.markers.written] == [3, 9]
        assert transactions.state() is TransactionState.COMPLETE_COMMIT

    run(world, transactions, scenario)


def test_empty_image_skips_no_partition(world, transactions):
    """A starting broker loads before it receives metadata, and must still write the markers."""

    async def scenario():
        producer = await transactions.begin(0)
        transactions.markers.holds = []
        transactions.coordinator.end("tx", producer, is_commit=True)
        transactions.markers.holds = None
        transactions.image = ClusterImage()
        await transactions.restart()
        assert len(transactions.markers.written) == 2

    run(world, transactions, scenario)


def test_transaction_that_times_out_is_aborted(world, transactions):
    """A coordinator that has loaded the transaction also aborts it; the producer is fenced."""

    async def scenario():
        producer = await transactions.begin(0, timeout_ms=5000)
        await transactions.restart()
        await world.clock.sleep(9)
        assert transactions.state() is TransactionState.ONGOING
        await world.clock.sleep(2)
        assert transactions.state() is TransactionState.COMPLETE_ABORT
        assert transactions.markers.written[0][0] == (7, 1, 9, False, 2)
        actual = transactions.coordinator.end("tx", producer, is_commit=True)
        assert actual is ErrorCode.PRODUCER_FENCED

    run(world, transactions, scenario)


def exhaust(transactions):
    """Advance to the last but one epoch of the producer id; return the producer with it."""
    ((_, shard),) = transactions.coordinator.runtime.shards()
    transaction = shard.transactions["tx"]
    shard.transactions["tx"] = replace(transaction, producer_epoch=EPOCH_MAX - 1)
    return ProducerIdAndEpoch(transaction.producer_id, EPOCH_MAX - 1)


def test_last_epoch_waits_for_another_producer_id(world, transactions):
    """The end of a transaction in the last epoch waits for the allocation of a producer id."""

    async def scenario():
        await transactions.begin(0)
        producer = exhaust(transactions)
        transactions.ids.waiting = asyncio.get_running_loop().create_future()
        response = transactions.coordinator.end_with_bump("tx", producer, is_commit=True)
        await asyncio.sleep(0)
        assert transactions.state() is TransactionState.ONGOING
        transactions.ids.waiting.set_result(99)
        assert (await response).producer == ProducerIdAndEpoch(99, 0)
        assert transactions.markers.written[0][0] == (7, EPOCH_MAX, 3, True, 2)
        assert transactions.state() is TransactionState.COMPLETE_COMMIT

    run(world, transactions, scenario)


@pytest.mark.parametrize("is_ended_meanwhile", [True, False])
def test_timeout_in_the_last_epoch_waits_for_another_producer_id(
    world, transactions, is_ended_meanwhile
):
    """The timeout has no effect if the transaction ends while the allocation is pending."""

    async def scenario():
        await transactions.begin(0, timeout_ms=5000)
        producer = exhaust(transactions)
        transactions.ids.waiting = asyncio.get_running_loop().create_future()
        await world.clock.sleep(11)
        assert transactions.state() is TransactionState.ONGOING
        if is_ended_meanwhile:
            assert transactions.coordinator.end("tx", producer, is_commit=True) is ErrorCode.NONE
        transactions.ids.waiting.set_result(99)
        await asyncio.sleep(0)
        result = transactions.coordinator.find("tx")
        if is_ended_meanwhile:
            assert result.state is TransactionState.COMPLETE_COMMIT
        else:
            assert (result.producer_id, result.producer_epoch) == (99, 0)
            assert transactions.markers.written[0][0] == (7, EPOCH_MAX, 3, False, 2)

    run(world, transactions, scenario)


def test_timeout_without_a_producer_id_is_retried(world, transactions):
    """The next check of the timeouts tries again."""

    async def scenario():
        await transactions.begin(0, timeout_ms=5000)
        exhaust(transactions)
        transactions.ids.waiting = asyncio.get_running_loop().create_future()
        transactions.ids.waiting.set_exception(ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        await world.clock.sleep(11)
        assert transactions.state() is TransactionState.ONGOING
        transactions.ids.waiting = None
        await world.clock.sleep(10)
        assert transactions.state() is TransactionState.COMPLETE_ABORT

    run(world, transactions, scenario)


def test_next_coordinator_keeps_the_transaction_version(world, transactions):
    """Its markers have the version of the transaction, and the next producer id is kept, too."""

    async def scenario():
        await transactions.begin(0)
        producer = exhaust(transactions)
        transactions.markers.holds = []
        outcome = transactions.coordinator.end_with_bump("tx", producer, is_commit=True)
        assert (await outcome).producer == ProducerIdAndEpoch(8, 0)
        transactions.markers.holds = None
        transactions.markers.written.clear()
        await transactions.restart(leader_epoch=9)
        assert transactions.markers.written[0][0] == (7, EPOCH_MAX, 9, True, 2)
        assert transactions.coordinator.find("tx").producer_id == 8

    run(world, transactions, scenario)


def test_unused_transactional_id_expires(world, transactions):
    """After transactional.id.expiration.ms the id is also removed from the log."""

    async def scenario():
        transactions.options = BROKER_OPTIONS.parse({"transactional.id.expiration.ms": "1000"})
        await transactions.coordinator.init_producer_id("tx", 1000, ProducerIdAndEpoch())
        await world.clock.sleep(3601)
        assert transactions.coordinator.find("tx") is None
        assert world.partitions.records(names.TRANSACTION_STATE_TOPIC, 0)[-1].value is None
        await transactions.restart()
        assert transactions.coordinator.find("tx") is None

    run(world, transactions, scenario)


def test_failed_append_is_reported(world, transactions):
    """The error is COORDINATOR_NOT_AVAILABLE, and the transaction is unchanged."""

    async def scenario():
        producer = await transactions.begin(0)
        world.partitions.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
        actual = transactions.coordinator.end("tx", producer, is_commit=True)
        assert actual is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert transactions.state() is TransactionState.ONGOING

    run(world, transactions, scenario)


def test_failed_completion_is_retried(world, transactions):
    """The markers are written; only the next transaction waits for the completion."""

    async def scenario():
        producer = await transactions.begin(0)
        transactions.markers.holds = []
        transactions.coordinator.end("tx", producer, is_commit=True)
        world.partitions.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
        for held, codes in transactions.markers.holds:
            held.set_result(codes)
        await world.clock.sleep(0.5)
        assert transactions.state() is TransactionState.PREPARE_COMMIT
        world.partitions.refuses = None
        await world.clock.sleep(0.5)
        assert transactions.state() is TransactionState.COMPLETE_COMMIT

    run(world, transactions, scenario)
