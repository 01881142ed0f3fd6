"""What happens to a group, and what the group wants done: the language of `machine.py`.

A ticket stands for a waiting request: the machine passes it on and never looks inside. Requests and
responses are wire messages, so nothing is said twice.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

from ottla.base.errors import ErrorCode
from ottla.wire.group_records import GroupMetadataValue
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

Ticket: TypeAlias = Hashable
Response = JoinGroupResponse | SyncGroupResponse | HeartbeatResponse | LeaveGroupResponse


class TimerKind(Enum):
    """The deadlines of a group."""

    # The members that have not rejoined by then are left out; one a group.
    JOIN = "join"
    # The members that have not synced by then are removed; one a group.
    SYNC = "sync"
    # The member that was not heard of by then is removed; one a member, pending ones included.
    SESSION = "session"


class Timer(NamedTuple):
    """Identity of a deadline; `member_id` is empty where the group has only one of the kind."""

    kind: TimerKind
    member_id: str = ""


JOIN_TIMER = Timer(TimerKind.JOIN)
SYNC_TIMER = Timer(TimerKind.SYNC)


@dataclass(frozen=True, slots=True)
class Join:
    """A JoinGroup request. `fresh_id` is random text for the member id, should one be needed."""

    ticket: Ticket
    request: JoinGroupRequest
    api_version: int
    client_id: str
    client_host: str
    fresh_id: str


@dataclass(frozen=True, slots=True)
class Sync:
    """A SyncGroup request."""

    ticket: Ticket
    request: SyncGroupRequest


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A Heartbeat request."""

    ticket: Ticket
    request: HeartbeatRequest


@dataclass(frozen=True, slots=True)
class Leave:
    """A LeaveGroup request; versions 0 to 2 are brought into the form of version 3 before."""

    ticket: Ticket
    request: LeaveGroupRequest


@dataclass(frozen=True, slots=True)
class Touch:
    """A sign of life of a member that came with another request (OffsetCommit)."""

    member_id: str


@dataclass(frozen=True, slots=True)
class TimerFired:
    """A deadline has passed that was set and neither moved nor cancelled."""

    timer: Timer


@dataclass(frozen=True, slots=True)
class Stored:
    """What `Persist` asked for is committed."""

    token: int


@dataclass(frozen=True, slots=True)
class StoreFailed:
    """What `Persist` asked for was not committed; `code` is what the members are told.

    Where it `is_written` it is in the log all the same, and may yet be committed.
    """

    token: int
    code: ErrorCode
    is_written: bool = False


@dataclass(frozen=True, slots=True)
class Loaded:
    """The group has come from the log: its members have a whole session timeout from now on."""


@dataclass(frozen=True, slots=True)
class Unloaded:
    """Another broker coordinates the group from now on."""


@dataclass(frozen=True, slots=True)
class Converted:
    """The group is one of the consumer protocol from now on: who waits has to join again."""


@dataclass(frozen=True, slots=True)
class Rebalance:
    """Something that only the coordinator knows calls for a rebalance."""

    reason: str


Event = (
    Join
    | Sync
    | Heartbeat
    | Leave
    | Touch
    | TimerFired
    | Stored
    | StoreFailed
    | Loaded
    | Unloaded
    | Converted
    | Rebalance
)


@dataclass(frozen=True, slots=True)
class Answer:
    """Send the response of a ticket; each ticket gets exactly one."""

    ticket: Ticket
    response: Response


@dataclass(frozen=True, slots=True)
class Persist:
    """Append the group's metadata; tell the outcome by `Stored` or `StoreFailed` with the token."""

    token: int
    value: GroupMetadataValue


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Start or move a deadline, `delay_ms` from now."""

    timer: Timer
    delay_ms: int


@dataclass(frozen=True, slots=True)
class CancelTimer:
    """Forget a deadline, whether or not it is set."""

    timer: Timer


@dataclass(frozen=True, slots=True)
class Note:
    """A line for the broker's log: one a decision."""

    text: str


Effect = Answer | Persist | SetTimer | CancelTimer | Note
