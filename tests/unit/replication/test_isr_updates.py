"""Proposals of a leader to change the ISR, and the controller's responses."""

import asyncio

import pytest

from ottla.base.errors import ErrorCode
from ottla.cluster.image import PartitionImage, TopicImage
from ottla.replication import isr_updates
from ottla.replication.isr_updates import IsrUpdates
from ottla.replication.partition import Partition
from ottla.replication.ports import IsrAnswer, IsrProposal
from tests.handlers.logs import NODE, OTHER, LogsBroker, batch

THIRD = 3


class Leader:
    """A leader of three replicas, of which `THIRD` is not in sync; the test responds to proposals."""

    def __init__(self, broker: LogsBroker) -> None:
        self.proposals: list[tuple[list[int], asyncio.Future[IsrAnswer]]] = []
        self.updates = IsrUpdates(
            isr_updates.Dependencies(
                clock=broker.clock,
                changes=self,
                lag_seconds=lambda: 30.0,
                eligible=lambda: self.alive,
                partitions=broker.replicas.partitions,
            )
        )
        self.alive = {NODE, OTHER, THIRD}
        image = PartitionImage(0, NODE, 3, isr=(NODE, OTHER), replicas=(NODE, OTHER, THIRD))
        states = TopicImage("t", bytes(15) + b"\x05", (image,)).states()
        broker.replicas.apply_leader_and_isr(1, states)

    def propose(self, proposal: IsrProposal) -> "asyncio.Future[IsrAnswer]":
        """Keep a proposal (implements IsrChanges)."""
        future: asyncio.Future[IsrAnswer] = asyncio.get_running_loop().create_future()
        self.proposals.append(([member.broker_id for member in proposal.new_isr], future))
        return future

    def fetched(self, partition: Partition, replica: int, offset: int) -> None:
        """Record a fetch of a follower."""
        partition.follower_fetched(replica, offset, 0)
        self.updates.follower_fetched(partition, replica)

    async def answer(self, answer: IsrAnswer) -> list[int]:
        """Respond to the oldest proposal, and return its ISR."""
        proposed, future = self.proposals.pop(0)
        future.set_result(answer)
        await asyncio.sleep(0)
        return proposed


@pytest.mark.parametrize("error", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
async def test_refused_follower_no_longer_delays_records(
    broker: LogsBroker, error: ErrorCode
) -> None:
    """A record that the ISR has is committed with the refusal, not with the next fetch."""
    leader = Leader(broker)
    partition = broker.replicas.get("t", 0)
    leader.fetched(partition, THIRD, 0)
    partition.append_as_leader(batch(b"a"), acks=-1)
    leader.fetched(partition, OTHER, 1)
    assert partition.high_watermark == 0
    assert await leader.answer(IsrAnswer(error)) == [NODE, OTHER, THIRD]
    assert partition.high_watermark == 1
    assert leader.proposals == []


async def test_follower_is_proposed_when_its_broker_is_known(broker: LogsBroker) -> None:
    """It may fetch before the leader hears from the controller that it is alive."""
    leader = Leader(broker)
    leader.alive = {NODE, OTHER}
    leader.fetched(broker.replicas.get("t", 0), THIRD, 0)
    leader.updates.brokers_changed()
    assert leader.proposals == []
    leader.alive = {NODE, OTHER, THIRD}
    leader.updates.brokers_changed()
    assert [proposed for proposed, _ in leader.proposals] == [[NODE, OTHER, THIRD]]
