"""The events and effects of a group: the interface of `machine.py`.

A ticket identifies a waiting request: the state machine passes it on without reading it. Requests
and responses are wire messages, so that their fields are not defined a second time.
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

    # Members that have not rejoined when it expires are left out; one per group.
    JOIN = "join"
    # Members that have not synced when it expires are removed; one per group.
    SYNC = "sync"
    # A member without a sign of life until it expires is removed; one per member, also pending
    # ones.
    SESSION = "session"


class Timer(NamedTuple):
    """The key of a deadline; `member_id` is empty if the group has only one of the kind."""

    kind: TimerKind
    member_id: str = ""


JOIN_TIMER = Timer(TimerKind.JOIN)
SYNC_TIMER = Timer(TimerKind.SYNC)


@dataclass(frozen=True, slots=True)
class Join:
    """A JoinGroup request; `fresh_id` is random text for a new member id if one is needed."""

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
    """A LeaveGroup request; the caller has converted versions 0 to 2 to version 3."""

    ticket: Ticket
    request: LeaveGroupRequest


@dataclass(frozen=True, slots=True)
class Touch:
    """A request other than Heartbeat that renews the session of a member (OffsetCommit)."""

    member_id: str


@dataclass(frozen=True, slots=True)
class TimerFired:
    """A deadline has expired."""

    timer: Timer


@dataclass(frozen=True, slots=True)
class Stored:
    """The value of a `Persist` is committed."""

    token: int


@dataclass(frozen=True, slots=True)
class StoreFailed:
    """The value of a `Persist` was not committed; `code` is the error for the members.

    If `is_written` is true, the value is in the log and may still be committed.
    """

    token: int
    code: ErrorCode
    is_written: bool = False


@dataclass(frozen=True, slots=True)
class Loaded:
    """The group was loaded from the log: its members' sessions start with their full timeout."""


@dataclass(frozen=True, slots=True)
class Unloaded:
    """Another broker coordinates the group from now on."""


@dataclass(frozen=True, slots=True)
class Converted:
    """The group uses the consumer protocol from now on: waiting members have to rejoin."""


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
)


@dataclass(frozen=True, slots=True)
class Respond:
    """Send the response to a ticket; each ticket gets exactly one."""

    ticket: Ticket
    response: Response


@dataclass(frozen=True, slots=True)
class Persist:
    """Append the group's metadata; the caller reports `Stored` or `StoreFailed` with the token."""

    token: int
    value: GroupMetadataValue


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Start or move a deadline, `delay_ms` from now."""

    timer: Timer
    delay_ms: int


@dataclass(frozen=True, slots=True)
class CancelTimer:
    """Cancel a deadline, whether or not it is set."""

    timer: Timer


@dataclass(frozen=True, slots=True)
class Note:
    """A line for the broker's log, one per decision."""

    text: str


Effect = Respond | Persist | SetTimer | CancelTimer | Note
