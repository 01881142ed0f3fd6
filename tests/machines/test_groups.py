"""Transcripts of groups: events, and indented below each event the effects of the state machine.

`group_*.txt` are executed line by line. Set OTTLA_REWRITE_TRANSCRIPTS=1 to write the current
effects into the files, and review the difference like code.

    join T [member= instance= client= type= protocols=NAME:TEXT,…
            session= rebalance= version= reason=]
    sync T member= generation= [instance= assign=MEMBER:TEXT,… type= protocol=]
    heartbeat T member= generation= [instance=]
    leave T members=MEMBER,@INSTANCE,MEMBER@INSTANCE
    touch MEMBER · timer join|sync|session:MEMBER
    stored N · failed N CODE [written] · loaded · unloaded
    settings [delay= max=] · now MS · reload (a new machine from the last stored state) · show

T is the ticket of a request. New members are called client-1, client-2, … in the order of joins.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.coordinators.classic.events import (
    CancelTimer,
    Effect,
    Event,
    Heartbeat,
    Join,
    Leave,
    Loaded,
    Note,
    Persist,
    Respond,
    SetTimer,
    Stored,
    StoreFailed,
    Sync,
    Timer,
    TimerFired,
    TimerKind,
    Touch,
    Unloaded,
)
from ottla.coordinators.classic.machine import GroupMachine
from ottla.coordinators.classic.settings import MachineSettings
from ottla.coordinators.classic.state import Group
from ottla.coordinators.classic.stored import group_from
from ottla.wire.group_records import GroupMetadataValue
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from ottla.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from ottla.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

TRANSCRIPTS = sorted(Path(__file__).parent.glob("group_*.txt"))
REWRITE = os.environ.get("OTTLA_REWRITE_TRANSCRIPTS") == "1"


class Player:
    """Executes the lines of one transcript."""

    def __init__(self) -> None:
        self.machine = GroupMachine(Group("g"))
        self.settings = MachineSettings()
        self.stored: GroupMetadataValue | None = None
        self.now_ms = 0
        self.joins = 0

    def play(self, line: str) -> Iterator[str]:
        """Execute one line and return its effects."""
        verb, *words = line.split()
        before = self._state()
        if verb == "settings":
            values = pairs(words)
            self.settings = MachineSettings(
                initial_rebalance_delay_ms=int(values.get("delay", 0)),
                max_size=int(values.get("max", 1000)),
            )
            return
        if verb == "now":
            self.now_ms = int(words[0])
            return
        if verb == "reload":
            assert self.stored is not None
            self.machine = GroupMachine(group_from("g", self.stored))
            yield f"is {self._state()}"
            return
        if verb == "show":
            yield from self._show()
            return
        for effect in self.machine.step(self._event(verb, words), self.now_ms, self.settings):
            if isinstance(effect, Persist):
                self.stored = effect.value
            yield render(effect)
        if self._state() != before:
            yield f"is {self._state()}"

    def _state(self) -> str:
        group = self.machine.group
        return f"{group.state.value} generation={group.generation}"

    def _show(self) -> Iterator[str]:
        group = self.machine.group
        yield f"{self._state()} since={group.state_since_ms} leader={group.leader}"
        for member in group.members.values():
            instance = f" instance={member.group_instance_id}" if member.is_static else ""
            yield f"{member.member_id} assignment={text(member.assignment)}{instance}"

    def _event(self, verb: str, words: list[str]) -> Event:
        match verb:
            case "join":
                self.joins += 1
                return join_event(words[0], pairs(words[1:]), str(self.joins))
            case "sync":
                return sync_event(words[0], pairs(words[1:]))
            case "heartbeat":
                values = pairs(words[1:])
                request = HeartbeatRequest(
                    group_id="g",
                    member_id=values["member"],
                    generation_id=int(values["generation"]),
                    group_instance_id=values.get("instance"),
                )
                return Heartbeat(words[0], request)
            case "leave":
                return leave_event(words[0], pairs(words[1:])["members"])
            case "touch":
                return Touch(words[0])
            case "timer":
                kind, _, member_id = words[0].partition(":")
                return TimerFired(Timer(TimerKind(kind), member_id))
            case "stored":
                return Stored(int(words[0]))
            case "failed":
                is_written = words[2:] == ["written"]
                return StoreFailed(int(words[0]), ErrorCode[words[1]], is_written)
            case "loaded":
                return Loaded()
            case "unloaded":
                return Unloaded()
        raise AssertionError(f"no such event: {verb}")


def join_event(ticket: str, values: dict[str, str], number: str) -> Join:
    """Parse a join line."""
    protocols = [item.partition(":") for item in values.get("protocols", "range:s").split(",")]
    request = JoinGroupRequest(
        group_id="g",
        member_id=values.get("member", ""),
        group_instance_id=values.get("instance"),
        protocol_type=values.get("type", "consumer"),
        protocols=[
            JoinGroupRequestProtocol(name=name, metadata=blob.encode())
            for name, _, blob in protocols
        ],
        session_timeout_ms=int(values.get("session", 10_000)),
        rebalance_timeout_ms=int(values.get("rebalance", 60_000)),
        reason=values.get("reason"),
    )
    version = int(values.get("version", 9))
    return Join(ticket, request, version, values.get("client", "client"), "/127.0.0.1", number)


def sync_event(ticket: str, values: dict[str, str]) -> Sync:
    """Parse a sync line."""
    assigned = [item.partition(":") for item in values.get("assign", "").split(",") if item]
    request = SyncGroupRequest(
        group_id="g",
        member_id=values["member"],
        generation_id=int(values["generation"]),
        group_instance_id=values.get("instance"),
        protocol_type=values.get("type"),
        protocol_name=values.get("protocol"),
        assignments=[
            SyncGroupRequestAssignment(member_id=member_id, assignment=blob.encode())
            for member_id, _, blob in assigned
        ],
    )
    return Sync(ticket, request)


def leave_event(ticket: str, members: str) -> Leave:
    """Parse a leave line."""
    identities = []
    for item in members.split(","):
        member_id, _, instance = item.partition("@")
        identities.append(MemberIdentity(member_id=member_id, group_instance_id=instance or None))
    return Leave(ticket, LeaveGroupRequest(group_id="g", members=identities))


def pairs(words: list[str]) -> dict[str, str]:
    """Parse key=value words."""
    return dict(word.split("=", 1) for word in words)


def render(effect: Effect) -> str:
    """Write an effect as one line."""
    match effect:
        case Note(text=said):
            return f"log {said}"
        case SetTimer(timer=timer, delay_ms=delay_ms):
            return f"set {name(timer)} {delay_ms}"
        case CancelTimer(timer=timer):
            return f"cancel {name(timer)}"
        case Persist(token=token, value=value):
            members = [f"{item.member_id}:{text(item.assignment)}" for item in value.members]
            return (
                f"store {token} generation={value.generation} protocol={value.protocol}"
                f" leader={value.leader} members=[{' '.join(members)}]"
            )
        case Respond(ticket=ticket, response=response):
            return f"{ticket}: {ErrorCode(response.error_code).name}{details(response)}"


def details(response: Any) -> str:
    """Write the fields of a response other than its error."""
    if isinstance(response, JoinGroupResponse):
        message = f" member={response.member_id}"
        if response.generation_id < 0:
            return message
        message += f" generation={response.generation_id} protocol={response.protocol_name}"
        message += f" leader={response.leader}" + " skips" * response.skip_assignment
        members = [f"{item.member_id}:{text(item.metadata)}" for item in response.members]
        return message + (f" members=[{' '.join(members)}]" if members else "")
    if isinstance(response, SyncGroupResponse) and not response.error_code:
        return f" assignment={text(response.assignment)}"
    if isinstance(response, LeaveGroupResponse):
        return "".join(
            f" {item.member_id}@{item.group_instance_id or ''}={ErrorCode(item.error_code).name}"
            for item in response.members
        )
    return ""


def name(timer: Timer) -> str:
    """Write a timer's name."""
    return timer.kind.value + (f":{timer.member_id}" if timer.member_id else "")


def text(blob: bytes) -> str:
    """Write a blob."""
    return bytes(blob).decode() or "-"


def played(transcript: str) -> str:
    """Execute a transcript's events and return it with their effects."""
    player = Player()
    lines: list[str] = []
    for line in transcript.splitlines():
        if line.startswith("  "):
            continue
        lines.append(line)
        if line and not line.startswith("#"):
            lines.extend(f"  {outcome}" for outcome in player.play(line))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_group_has_the_effects_of_the_transcript(path: Path) -> None:
    """Every event has exactly the effects that are written below it."""
    written = path.read_text(encoding="utf-8")
    happened = played(written)
    if REWRITE:
        path.write_text(happened, encoding="utf-8")
    else:
        assert happened == written
