"""What the controller's queue holds: each event is handled alone, from start to end.

An event that somebody waits for carries a `reply`; a cancelled reply means that its asker's time is
up, and an event not yet begun is then dropped. Follows ControllerEvent.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ottla.cluster.zk.port import SessionState
from ottla.controller.elections import ElectionType, TopicPartition
from ottla.controller.notices import Delivered
from ottla.controller.requests import ConfigRequest, PartitionsRequest, Reassignment, TopicRequest


class Reply(NamedTuple):
    """An answer, and what still has to be delivered to brokers before it is true everywhere."""

    value: Any
    deliveries: Sequence["asyncio.Future[None]"] = ()


@dataclass(frozen=True, slots=True)
class Elect:
    """The role may be free: at the start, after a controller is gone, after a new session."""


@dataclass(frozen=True, slots=True)
class SessionChanged:
    """The session with the tree is suspended, lost or back."""

    state: SessionState


@dataclass(frozen=True, slots=True)
class BrokersChanged:
    """A broker has registered or is gone."""


@dataclass(frozen=True, slots=True)
class DirectoriesFailed:
    """A broker has told that one of its log directories has failed."""


@dataclass(frozen=True, slots=True)
class NoticeDelivered:
    """A broker has answered to a notice."""

    delivered: Delivered


@dataclass(frozen=True, slots=True)
class ChangesExpired:
    """Config change notifications that every broker has seen by now."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """An event that somebody waits for."""

    reply: "asyncio.Future[Reply]"


@dataclass(frozen=True, slots=True)
class CreateTopics(Request):
    """Create topics, or only say what would become of it."""

    topics: tuple[TopicRequest, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class DeleteTopics(Request):
    """Delete topics by name."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CreatePartitions(Request):
    """Give topics more partitions."""

    topics: tuple[PartitionsRequest, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class AlterConfigs(Request):
    """Change dynamic configuration."""

    requests: tuple[ConfigRequest, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class ElectLeaders(Request):
    """Elect leaders of these partitions, None for all that need it."""

    kind: ElectionType
    partitions: tuple[TopicPartition, ...] | None


@dataclass(frozen=True, slots=True)
class Reassign(Request):
    """Begin or cancel moves of partitions."""

    requests: tuple[Reassignment, ...]
    may_change_factor: bool = True


@dataclass(frozen=True, slots=True)
class Settle(Request):
    """Wait until this broker has been told everything decided so far."""


Asked = (
    CreateTopics | DeleteTopics | CreatePartitions | AlterConfigs | ElectLeaders | Reassign | Settle
)
Event = (
    Elect
    | SessionChanged
    | BrokersChanged
    | DirectoriesFailed
    | NoticeDelivered
    | ChangesExpired
    | Asked
)
