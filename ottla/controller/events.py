"""The events in the controller's queue; each is handled to its end before the next one.

An event with a waiting caller carries a `reply`; a cancelled reply means that the caller timed out,
and an event that has not started is then dropped. Follows ControllerEvent.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Elect:
    """The controller's role may be free: at the start, after the controller left, or in a new
    session.
    """


@dataclass(frozen=True, slots=True)
class ControllerGone:
    """The process of the controller has ended; `czxid` is that of its node."""

    broker: BrokerImage
    czxid: int


@dataclass(frozen=True, slots=True)
class SessionChanged:
    """The coordination session is suspended, lost or connected again."""

    state: SessionState


@dataclass(frozen=True, slots=True)
class BrokersChanged:
    """A broker registered or left."""


@dataclass(frozen=True, slots=True)
class DirectoriesFailed:
    """A broker reported that one of its log directories failed."""


@dataclass(frozen=True, slots=True)
class BalanceLeaders:
    """The interval between two checks of the balance of leaders has passed."""


@dataclass(frozen=True, slots=True)
class NoticeDelivered:
    """A broker answered a notice."""

    delivered: Delivered


@dataclass(frozen=True, slots=True)
class ChangesExpired:
    """Config change notifications that every broker has read by now."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """An event with a waiting caller."""

    reply: "asyncio.Future[Reply]"


@dataclass(frozen=True, slots=True)
class CreateTopics(Request):
    """Create topics, or only validate the requests."""

    topics: tuple[TopicRequest, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class DeleteTopics(Request):
    """Delete topics by name."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CreatePartitions(Request):
    """Add partitions to topics."""

    topics: tuple[PartitionsRequest, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class AlterConfigs(Request):
    """Change dynamic configuration."""

    requests: tuple[ConfigRequest, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class ElectLeaders(Request):
    """Elect leaders of these partitions; None means all that need it."""

    kind: ElectionType
    partitions: tuple[TopicPartition, ...] | None


@dataclass(frozen=True, slots=True)
class Reassign(Request):
    """Start or cancel reassignments of partitions."""

    requests: tuple[Reassignment, ...]
    may_change_factor: bool = True


@dataclass(frozen=True, slots=True)
class AlterPartitions(Request):
    """Store the ISRs that the leader on a broker proposes."""

    broker_id: int
    broker_epoch: int
    requests: tuple[IsrRequest, ...]


@dataclass(frozen=True, slots=True)
class ShutDown(Request):
    """Move the leaders of a broker away, because it is about to stop."""

    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class Settle(Request):
    """Wait until this broker has received every decision made so far."""


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
