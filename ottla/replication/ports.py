"""The interfaces that replication requires of its broker; `server/brokers` implements them."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ottla.base.errors import ErrorCode


class AlterPartitionResult(NamedTuple):
    """The controller's answer to a proposed ISR (KIP-497).

    If `error` is NONE, the other fields are the partition's current state: the leader adopts it if
    `partition_epoch` is higher than its own. Otherwise they have no meaning, and the leader keeps
    its ISR: INVALID_UPDATE_VERSION, FENCED_LEADER_EPOCH and UNKNOWN_TOPIC_ID mean that a newer
    LeaderAndIsr is on its way; INELIGIBLE_REPLICA means that a proposed member is shutting down or
    not registered, so the leader proposes again later.
    """

    error: ErrorCode
    leader: int = -1
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    partition_epoch: int = -1


class IsrChanges(Protocol):
    """Proposes changes of the ISR to the controller. Lives on the broker's loop."""

    def propose(
        self,
        topic_id: bytes,
        topic: str,
        partition: int,
        leader_epoch: int,
        partition_epoch: int,
        new_isr: Sequence[int],
    ) -> "asyncio.Future[AlterPartitionResult]":
        """Propose an ISR for a partition that this broker leads.

        The future does not fail: the proposal is sent again until a controller answers. A partition
        has one proposal in flight at a time; the caller cancels the future if it stops to lead.
        """
        ...
