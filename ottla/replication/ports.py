"""The port through which a leader changes its in-sync replicas: the controller decides (KIP-497)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ottla.base.errors import ErrorCode

UNKNOWN_BROKER_EPOCH = -1


class IsrMember(NamedTuple):
    """A proposed member of the ISR.

    `broker_epoch` is the epoch of the registration with which it fetched (KIP-903); -1 if that is
    unknown, and then the controller does not check it.
    """

    broker_id: int
    broker_epoch: int = UNKNOWN_BROKER_EPOCH


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrProposal:
    """A change of one partition's ISR, valid for one leader epoch and one partition epoch."""

    topic: str
    topic_id: bytes
    partition: int
    leader_epoch: int
    partition_epoch: int
    new_isr: Sequence[IsrMember]


class IsrAnswer(NamedTuple):
    """The controller's response: an error, or the partition state that is now stored."""

    error: ErrorCode
    leader: int = -1
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    partition_epoch: int = -1


class IsrChanges(Protocol):
    """The connection to the controller, over the network or within this process."""

    def propose(self, proposal: IsrProposal) -> "asyncio.Future[IsrAnswer]":
        """Send a proposal; the future has the controller's response and never raises.

        Proposals of one iteration of the event loop are sent together. A proposal is repeated while
        the controller cannot be reached or another broker becomes the controller, so that its
        result is never in doubt. Errors of a response: FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION,
        INELIGIBLE_REPLICA, INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID,
        OPERATION_NOT_ATTEMPTED.
        """
        ...
