"""One step of a group: the group, the time, the settings, and the effects that it collects."""

from dataclasses import dataclass, field

from ottla.base.errors import ErrorCode
from ottla.coordinators.classic.events import (
    CancelTimer,
    Effect,
    Note,
    Persist,
    Respond,
    Response,
    SetTimer,
    Ticket,
    Timer,
    TimerKind,
)
from ottla.coordinators.classic.settings import MachineSettings
from ottla.coordinators.classic.state import Group, Member
from ottla.wire.group_records import GroupMetadataValue
from ottla.wire.messages.join_group import JoinGroupResponse
from ottla.wire.messages.sync_group import SyncGroupResponse


@dataclass(frozen=True, slots=True)
class AfterSync:
    """Continuation of a Persist: when the leader's assignment is stored, all members get their
    responses.
    """

    generation: int
    assignments: dict[str, bytes]


@dataclass(frozen=True, slots=True)
class AfterReplacement:
    """Continuation of a Persist: when a static member's new id is stored, its join gets the
    response. If it could not be stored, the replacement is undone.
    """

    ticket: Ticket
    new_member_id: str
    old_member: Member
    old_leader: str | None
    skips_assignment: bool


@dataclass(frozen=True, slots=True)
class AfterEmpty:
    """Continuation of a Persist: when the empty generation is stored, the members that left get
    their responses.
    """

    responses: tuple[Respond, ...] = ()


Store = AfterSync | AfterReplacement | AfterEmpty


@dataclass(slots=True)
class Stores:
    """The pending `Persist` effects, by token."""

    waiting: dict[int, Store] = field(default_factory=dict)
    next_token: int = 1


@dataclass(slots=True)
class Transition:
    """Collects effects in the order in which they are to be performed."""

    group: Group
    now_ms: int
    settings: MachineSettings
    stores: Stores
    effects: list[Effect] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Write a line to the broker's log."""
        self.effects.append(Note(text))

    def answer(self, ticket: Ticket, response: Response) -> None:
        """Send a response."""
        self.effects.append(Respond(ticket, response))

    def persist(self, value: GroupMetadataValue, continuation: Store) -> int:
        """Store the group's metadata, remember the continuation, and return the token."""
        token = self.stores.next_token
        self.stores.next_token += 1
        self.stores.waiting[token] = continuation
        self.effects.append(Persist(token, value))
        return token

    def set_timer(self, timer: Timer, delay_ms: int) -> None:
        """Start or move a deadline."""
        self.effects.append(SetTimer(timer, delay_ms))

    def cancel_timer(self, timer: Timer) -> None:
        """Cancel a deadline."""
        self.effects.append(CancelTimer(timer))

    def restart_session(self, member: Member) -> None:
        """Restart a member's session with its full timeout."""
        self.set_timer(Timer(TimerKind.SESSION, member.member_id), member.session_timeout_ms)

    def end_session(self, member_id: str) -> None:
        """End a member's session."""
        self.cancel_timer(Timer(TimerKind.SESSION, member_id))

    def await_join(self, member_id: str, ticket: Ticket) -> None:
        """Make a join wait for the rebalance; a join that it replaces gets an error to retry."""
        self.answer_join_error(member_id, ErrorCode.REBALANCE_IN_PROGRESS)
        self.group.awaiting_join[member_id] = ticket

    def await_sync(self, member_id: str, ticket: Ticket) -> None:
        """Make a sync wait for the leader; a sync that it replaces gets an error to rejoin."""
        self.answer_sync_error(member_id, ErrorCode.REBALANCE_IN_PROGRESS)
        self.group.awaiting_sync[member_id] = ticket

    def answer_join(self, member_id: str, response: JoinGroupResponse) -> bool:
        """Respond to a member's waiting join, if there is one."""
        ticket = self.group.awaiting_join.pop(member_id, None)
        if ticket is not None:
            self.answer(ticket, response)
        return ticket is not None

    def answer_sync(self, member_id: str, response: SyncGroupResponse) -> bool:
        """Respond to a member's waiting sync, if there is one."""
        ticket = self.group.awaiting_sync.pop(member_id, None)
        if ticket is not None:
            self.answer(ticket, response)
        return ticket is not None

    def answer_join_error(
        self, member_id: str, code: ErrorCode, *, response_member_id: str | None = None
    ) -> None:
        """Respond to a waiting join with an error; `response_member_id` defaults to the member's
        own id.
        """
        member_id_sent = member_id if response_member_id is None else response_member_id
        self.answer_join(member_id, JoinGroupResponse(error_code=code, member_id=member_id_sent))

    def answer_sync_error(self, member_id: str, code: ErrorCode) -> None:
        """Respond to a waiting sync with an error."""
        self.answer_sync(member_id, SyncGroupResponse(error_code=code))
