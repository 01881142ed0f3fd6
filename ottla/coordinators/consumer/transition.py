"""One decision about a group: what it looks at, and the changes and deadlines it collects."""

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from ottla.cluster.image import ClusterImage
from ottla.coordinators.consumer.changes import Change
from ottla.coordinators.consumer.settings import ConsumerSettings
from ottla.coordinators.consumer.state import ConsumerGroup
from ottla.wire.records.records import Record


class Deadline(Enum):
    """What a member is given time for."""

    # To be heard of again.
    SESSION = "session"
    # To give back its partitions.
    REBALANCE = "rebalance"
    # Classic members: to join again, and to ask for the assignment after that.
    JOIN = "join"
    SYNC = "sync"


class SetTimer(NamedTuple):
    """Start or move a deadline of a member, or leave it where it is set and `is_kept`.

    The rebalance deadline is of no consequence once the member has left `epoch`.
    """

    deadline: Deadline
    member_id: str
    delay_ms: int
    epoch: int | None = None
    is_kept: bool = False


class CancelTimer(NamedTuple):
    """Forget a deadline, whether or not it is set."""

    deadline: Deadline
    member_id: str


class Client(NamedTuple):
    """Who sends a request: the name it gives itself, and its address as Java prints it."""

    client_id: str
    client_host: str


class Topics(NamedTuple):
    """The topics that exist. `version` grows with every topic that comes to them (ms)."""

    image: ClusterImage
    version: int


@dataclass(slots=True)
class Turn:
    """Collects what a decision makes: changes in the order in which they are written."""

    group: ConsumerGroup
    topics: Topics
    settings: ConsumerSettings
    now_ms: int
    # The topics were not looked at since they have changed.
    is_metadata_due: bool = True
    changes: list[Change] = field(default_factory=list)
    # Records of the classic group that this one was, or becomes.
    before: list[Record] = field(default_factory=list)
    after: list[Record] = field(default_factory=list)
    timers: list[SetTimer | CancelTimer] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    # Set to the group's epoch that follows where the topics have been looked at.
    checked_at_epoch: int | None = None
    # The group has an epoch for which a target is to be computed, later.
    is_target_wanted: bool = False
    # The regular expressions that are to be looked up now.
    regexes_wanted: frozenset[str] = frozenset()

    def note(self, text: str) -> None:
        """Write a line to the broker's log: one a decision."""
        self.notes.append(text)

    def set_timer(self, deadline: Deadline, member_id: str, delay_ms: int) -> None:
        """Start or move a deadline."""
        self.timers.append(SetTimer(deadline, member_id, delay_ms))

    def cancel_timer(self, deadline: Deadline, member_id: str) -> None:
        """Forget a deadline."""
        self.timers.append(CancelTimer(deadline, member_id))
