"""Sends ISR proposals to the controller (the IsrChanges port of `replication`).

Proposals of one iteration of the event loop are sent as one request, and a request is sent when the
previous one got its response. Follows DefaultAlterPartitionManager.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.base.clock import Clock
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.logs import provoked_logger
from ottla.base.tasks import Tasks
from ottla.controller.loop import Controller
from ottla.controller.planning.isr_changes import IsrRequest
from ottla.replication.ports import IsrAnswer, IsrProposal
from ottla.server.brokers.controller_link import ControllerLink
from ottla.server.brokers.remote import known_code
from ottla.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    BrokerState,
    PartitionData,
    TopicData,
)

# One line for each attempt, while a cluster has no controller.
_log = provoked_logger(__name__)

VERSION = 3
# Between two attempts while the controller changes or cannot be reached.
RETRY_SECONDS = 0.05
# Proposals per request: the controller decides them, and this broker applies the decisions, at a
# stretch.
PROPOSALS_MAX = 1000

_Key = tuple[bytes, int]
_Decisions = Mapping[_Key, IsrAnswer]


class _Waiting(NamedTuple):
    """A proposal that the controller has not decided."""

    proposal: IsrProposal
    future: "asyncio.Future[IsrAnswer]"


class IsrProposals:
    """The proposals of this broker; implements IsrChanges."""

    def __init__(
        self, node_id: int, controller: Controller, link: ControllerLink, clock: Clock, tasks: Tasks
    ) -> None:
        self._node_id = node_id
        self._controller = controller
        self._link = link
        self._clock = clock
        self._tasks = tasks
        self._waiting: dict[_Key, _Waiting] = {}
        self._is_sending = False

    def propose(self, proposal: IsrProposal) -> "asyncio.Future[IsrAnswer]":
        """Send a proposal in the next iteration of the event loop, and until its response arrives."""
        future: asyncio.Future[IsrAnswer] = asyncio.get_running_loop().create_future()
        key = (proposal.topic_id, proposal.partition)
        former = self._waiting.get(key)
        if former is not None and not former.future.done():
            # Of an earlier leader epoch: the leader no longer waits for it.
            former.future.set_result(IsrAnswer(ErrorCode.FENCED_LEADER_EPOCH))
        self._waiting[key] = _Waiting(proposal, future)
        if not self._is_sending:
            self._is_sending = True
            self._tasks.supervise(self._send, "changes of the ISR")
        return future

    async def _send(self) -> None:
        try:
            while self._waiting:
                batch = dict(list(self._waiting.items())[:PROPOSALS_MAX])
                decisions = await self._ask([waiting.proposal for waiting in batch.values()])
                self._complete(batch, decisions)
                if decisions.keys() != batch.keys():
                    await self._clock.sleep(RETRY_SECONDS)
        finally:
            self._is_sending = False

    def _complete(self, batch: Mapping[_Key, _Waiting], decisions: _Decisions) -> None:
        for key, decision in decisions.items():
            waiting = batch[key]
            # A later proposal may have replaced it during the request.
            if self._waiting.get(key) is waiting:
                del self._waiting[key]
            if not waiting.future.done():
                waiting.future.set_result(decision)

    async def _ask(self, proposals: Sequence[IsrProposal]) -> _Decisions:
        """Return the controller's decisions; a proposal without a decision is sent again."""
        try:
            if self._controller.is_active:
                decisions = await self._ask_here(proposals)
            else:
                decisions = await self._ask_elsewhere(proposals)
        except ApiError as error:
            _log.info(
                "proposals without response count=%d error=%s", len(proposals), error.code.name
            )
            return {}
        return {
            key: decision
            for key, decision in decisions.items()
            if decision.error is not ErrorCode.NOT_CONTROLLER
        }

    async def _ask_here(self, proposals: Sequence[IsrProposal]) -> _Decisions:
        requests = [
            IsrRequest(
                topic_id=proposal.topic_id,
                partition=proposal.partition,
                leader_epoch=proposal.leader_epoch,
                partition_epoch=proposal.partition_epoch,
                isr=tuple(proposal.new_isr),
            )
            for proposal in proposals
        ]
        results = await self._controller.alter_partitions(
            self._node_id, self._controller.broker_epoch, requests
        )
        return {
            (result.topic_id, result.number): IsrAnswer(result.error)
            if (now := result.partition) is None
            else IsrAnswer(
                ErrorCode.NONE, now.leader, now.leader_epoch, now.isr, now.partition_epoch
            )
            for result in results
        }

    async def _ask_elsewhere(self, proposals: Sequence[IsrProposal]) -> _Decisions:
        by_topic: dict[bytes, TopicData] = {}
        for proposal in proposals:
            topic = by_topic.setdefault(proposal.topic_id, TopicData(topic_id=proposal.topic_id))
            topic.partitions.append(_partition(proposal))
        request = AlterPartitionRequest(
            broker_id=self._node_id,
            broker_epoch=self._controller.broker_epoch,
            topics=list(by_topic.values()),
        )
        response = await self._link.request(request, VERSION, AlterPartitionResponse)
        if response.error_code != ErrorCode.NONE:
            raise ApiError(known_code(response.error_code))
        proposed = {(proposal.topic_id, proposal.partition) for proposal in proposals}
        return {
            key: _decision(partition)
            for topic in response.topics
            for partition in topic.partitions
            if (key := (bytes(topic.topic_id), partition.partition_index)) in proposed
        }


def _partition(proposal: IsrProposal) -> PartitionData:
    return PartitionData(
        partition_index=proposal.partition,
        leader_epoch=proposal.leader_epoch,
        new_isr_with_epochs=[
            BrokerState(broker_id=member.broker_id, broker_epoch=member.broker_epoch)
            for member in proposal.new_isr
        ],
        partition_epoch=proposal.partition_epoch,
    )


def _decision(partition: AlterPartitionResponsePartitionData) -> IsrAnswer:
    return IsrAnswer(
        known_code(partition.error_code),
        partition.leader_id,
        partition.leader_epoch,
        tuple(partition.isr),
        partition.partition_epoch,
    )
