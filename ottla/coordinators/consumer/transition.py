"""One decision about a group: its inputs, and the changes and deadlines that it collects."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from ottla.cluster.image import ClusterImage
from ottla.coordinators.consumer.changes import Change
from ottla.coordinators.consumer.settings import ConsumerSettings
from ottla.coordinators.consumer.state import ConsumerGroup
from ottla.wire.records.records import Record


class Deadline(Enum):
    """The deadlines of a member."""

    # For the next heartbeat.
    SESSION = "session"
    # For revoking its partitions.
    REBALANCE = "rebalance"
    # Classic members: for rejoining, and for the sync after that.
    JOIN = "join"
    SYNC = "sync"


class SetTimer(NamedTuple):
    """Start or move a deadline of a member; with `is_kept` a deadline that is set is not moved.

    The rebalance deadline has no effect after the member has left `epoch`.
    """

    deadline: Deadline
    member_id: str
    delay_ms: int
    epoch: int | None = None
    is_kept: bool = False


class CancelTimer(NamedTuple):
    """Cancel a deadline, whether or not it is set."""

    deadline: Deadline
    member_id: str


class Client(NamedTuple):
    """The client of a request: its client id, and its address in Java's format.

    `may_describe` returns True for a topic that the client may see; None if it may see every topic.
    """

    client_id: str
    client_host: str
    may_describe: Callable[[str], bool] | None = None


class Topics(NamedTuple):
    """The topics that exist; `version` (ms) increases with every new topic."""

    image: ClusterImage
    version: int


@dataclass(slots=True)
class Transition:
    """Collects the results of a decision: changes in the order in which they are written."""

    group: ConsumerGroup
    topics: Topics
    settings: ConsumerSettings
    now_ms: int
    # The topics were not checked since they have changed.
    is_metadata_due: bool = True
    changes: list[Change] = field(default_factory=list)
    # Records of the classic group that is converted to this one, or the other way round.
    before: list[Record] = field(default_factory=list)
    after: list[Record] = field(default_factory=list)
    timers: list[SetTimer | CancelTimer] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    # Set to the group's new epoch if the topics have been checked.
    checked_at_epoch: int | None = None
    # The target of the group's new epoch is to be computed later.
    is_target_wanted: bool = False
    # The regular expressions to look up now, and the topics that the result may contain.
    regexes_wanted: frozenset[str] = frozenset()
    may_describe: Callable[[str], bool] | None = None

    def note(self, text: str) -> None:
        """Write a line to the broker's log, one per decision."""
        self.notes.append(text)

    def set_timer(self, deadline: Deadline, member_id: str, delay_ms: int) -> None:
        """Start or move a deadline."""
        self.timers.append(SetTimer(deadline, member_id, delay_ms))

    def cancel_timer(self, deadline: Deadline, member_id: str) -> None:
        """Cancel a deadline."""
        self.timers.append(CancelTimer(deadline, member_id))
