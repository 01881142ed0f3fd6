"""The events in the controller's queue; each is handled to its end before the next one.

An event with a waiting caller carries a `reply`; a cancelled reply means that the caller timed out,
and an event that has not started is then dropped. Follows ControllerEvent.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

from ottla.cluster.image import BrokerImage
from ottla.cluster.zk.port import SessionState
from ottla.controller.planning.elections import ElectionType, TopicPartition
from ottla.controller.planning.isr_changes import IsrRequest
from ottla.controller.planning.notices import Delivered
from ottla.controller.planning.requests import (
    ConfigRequest,
    PartitionsRequest,
    Reassignment,
    TopicRequest,
)


class Reply(NamedTuple):
    """The result for the caller, and the deliveries to brokers that the caller waits for first."""

    value: Any
    deliveries: Sequence["asyncio.Future[None]"] = ()


class Elect:
    """The controller's role may be free: at the start, after the controller left, or in a new
    session.
    """

    __slots__ = ()


class ControllerGone(NamedTuple):
    """The process of the controller has ended; `czxid` is that of its node."""

    broker: BrokerImage
    czxid: int


class SessionChanged(NamedTuple):
    """The coordination session is suspended, lost or connected again."""

    state: SessionState


class BrokersChanged:
    """A broker registered or left."""

    __slots__ = ()


class DirectoriesFailed:
    """A broker reported that one of its log directories failed."""

    __slots__ = ()


class BalanceLeaders:
    """The interval between two checks of the balance of leaders has passed."""

    __slots__ = ()


class NoticeDelivered(NamedTuple):
    """A broker answered a notice."""

    delivered: Delivered


class ChangesExpired(NamedTuple):
    """Config change notifications that every broker has read by now."""

    paths: tuple[str, ...]


# -- events with a waiting caller


class CreateTopics(NamedTuple):
    """Create topics, or only validate the requests."""

    reply: "asyncio.Future[Reply]"
    topics: tuple[TopicRequest, ...]
    validate_only: bool = False


class DeleteTopics(NamedTuple):
    """Delete topics by name."""

    reply: "asyncio.Future[Reply]"
    names: tuple[str, ...]


class CreatePartitions(NamedTuple):
    """Add partitions to topics."""

    reply: "asyncio.Future[Reply]"
    topics: tuple[PartitionsRequest, ...]
    validate_only: bool = False


class AlterConfigs(NamedTuple):
    """Change dynamic configuration."""

    reply: "asyncio.Future[Reply]"
    requests: tuple[ConfigRequest, ...]
    validate_only: bool = False


class ElectLeaders(NamedTuple):
    """Elect leaders of these partitions; None means all that need it."""

    reply: "asyncio.Future[Reply]"
    kind: ElectionType
    partitions: tuple[TopicPartition, ...] | None


class Reassign(NamedTuple):
    """Start or cancel reassignments of partitions."""

    reply: "asyncio.Future[Reply]"
    requests: tuple[Reassignment, ...]
    may_change_factor: bool = True


class AlterPartitions(NamedTuple):
    """Store the ISRs that the leader on a broker proposes."""

    reply: "asyncio.Future[Reply]"
    broker_id: int
    broker_epoch: int
    requests: tuple[IsrRequest, ...]


class ShutDown(NamedTuple):
    """Move the leaders of a broker away, because it is about to stop."""

    reply: "asyncio.Future[Reply]"
    broker_id: int
    broker_epoch: int


class Settle(NamedTuple):
    """Wait until this broker has received every decision made so far."""

    reply: "asyncio.Future[Reply]"


Requested = (
    CreateTopics
    | DeleteTopics
    | CreatePartitions
    | AlterConfigs
    | ElectLeaders
    | Reassign
    | AlterPartitions
    | ShutDown
    | Settle
)
Event = (
    Elect
    | ControllerGone
    | SessionChanged
    | BrokersChanged
    | DirectoriesFailed
    | BalanceLeaders
    | NoticeDelivered
    | ChangesExpired
    | Requested
)
