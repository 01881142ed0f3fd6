"""Which of several instances of an application is the active one: elected through the broker's group protocol.

All instances join the group `<application id>-drivers`, of a protocol type of its own. Whoever leads the group names
the active instance: the one that is active already, else the one that waits longest. The others stand by; when
the active one leaves, or is not heard of for the session's time-out, the next one is named. An instance that could
not send heartbeats for that long takes itself for deposed, so that two are never active for long; what an earlier one
still writes under exactly_once_v2 is fenced by the sink's ledger.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.client.admin.answers import check
from ottla.client.brokers import Brokers
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
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

_log = logging.getLogger(__name__)

PROTOCOL_TYPE = "ottla-streams"
_PROTOCOL = "active-driver"
# A join waits until all members have joined anew, or were given up.
_JOIN_MARGIN_S = 10.0
_PAUSE_S = 0.2
# The group went on without us.
_LOST = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID})
# Trying again does not help.
_FATAL = frozenset(
    {
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    }
)


def group_of(application_id: str) -> str:
    """Return the group in which an application's instances elect the active one."""
    return f"{application_id}-drivers"


@dataclass(frozen=True)
class Candidate:
    """What an instance says of itself; times in ms of its own clock."""

    instance: str
    since_ms: int
    host: str = ""
    is_active: bool = False
    asks_shutdown: bool = False
    """Whether the whole application is to end."""
    metrics: str = ""
    """Where it serves its metrics, host:port; empty if it does not."""

    def encode(self) -> bytes:
        """Return it as it travels."""
        return json.dumps(self.fields()).encode()

    def fields(self) -> dict[str, Any]:
        """Return its fields; `metrics` only if it is set, as older instances do not know it."""
        fields = asdict(self)
        if not self.metrics:
            del fields["metrics"]
        return fields


@dataclass(frozen=True)
class Verdict:
    """What an election came to, the same for all instances."""

    active: str
    instances: tuple[Candidate, ...]
    is_shutdown: bool = False

    def encode(self) -> bytes:
        """Return it as it travels."""
        instances = [each.fields() for each in self.instances]
        return json.dumps({**asdict(self), "instances": instances}).encode()

    @classmethod
    def decode(cls, data: bytes) -> "Verdict":
        """Return what `encode` was given."""
        known = json.loads(data)
        instances = tuple(Candidate(**each) for each in known["instances"])
        return cls(known["active"], instances, known["is_shutdown"])


def elect(candidates: Sequence[Candidate]) -> Verdict:
    """Name the active one: who is active already, else who waits longest."""
    ordered = sorted(
        candidates, key=lambda each: (not each.is_active, each.since_ms, each.instance)
    )
    is_shutdown = any(each.asks_shutdown for each in candidates)
    return Verdict(ordered[0].instance, tuple(ordered), is_shutdown)


@dataclass(frozen=True)
class ElectionSettings:
    """Where and how: times in ms, as Kafka's session.timeout.ms and heartbeat.interval.ms."""

    bootstrap: str
    application_id: str
    session_timeout_ms: int = 10_000
    heartbeat_interval_ms: int = 1_000


class Election:
    """An instance's part in the election, in a thread of its own.

    `on_change` is called in that thread whenever `verdict`, `is_active` or `error` changed; it must not block.
    `error` is what ended it, such as a session's time-out that the broker does not allow.
    """

    def __init__(
        self, settings: ElectionSettings, candidate: Candidate, on_change: Callable[[], None]
    ) -> None:
        self.verdict: Verdict | None = None
        self.is_active = False
        self.error: OttlaError | None = None
        self._settings = settings
        self._candidate = candidate
        self._on_change = on_change
        self._member = _Membership(settings)
        self._stopping = threading.Event()
        self._asks_again = False
        name = f"{settings.application_id}-election"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Take part."""
        self._thread.start()

    def stop(self) -> None:
        """Leave the group; the next instance becomes active at once."""
        self._stopping.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(self._settings.session_timeout_ms / 1000 + _JOIN_MARGIN_S)

    def show_metrics(self, address: str) -> None:
        """Tell others where this instance serves its metrics; before `start`."""
        self._candidate = replace(self._candidate, metrics=address)

    def ask_shutdown(self) -> None:
        """Have all instances end; they hear it at their next heartbeat."""
        self._candidate = replace(self._candidate, asks_shutdown=True)
        self._asks_again = True

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._round()
        finally:
            self._tell(None, is_active=False)
            self._member.leave()

    def _round(self) -> None:
        """Join, then send heartbeats until something has changed."""
        try:
            self._asks_again = False
            own = replace(self._candidate, is_active=self.is_active)
            verdict = self._member.join(own)
            self._tell(verdict, is_active=verdict.active == own.instance)
            while not (self._stopping.wait(self._interval_s) or self._asks_again):
                if not self._member.beat():
                    return
        except (OttlaError, OSError) as error:
            self._suffer(error)

    @property
    def heard_at(self) -> float:
        """When the group's coordinator last took us for a member; monotonic seconds."""
        return self._member.heard_at

    @property
    def _interval_s(self) -> float:
        return self._settings.heartbeat_interval_ms / 1000

    def _suffer(self, error: Exception) -> None:
        """Forget the membership where the broker did; be deposed once the session is over."""
        if isinstance(error, ApiError) and error.code in _FATAL:
            self.error = error
            self._stopping.set()
            self._on_change()
            return
        self._member.look_again(is_lost=isinstance(error, ApiError) and error.code in _LOST)
        if self.is_active and self._member.is_expired():
            _log.warning(
                "Nothing was heard of the brokers for a session's time-out: %s. Another instance may be the active "
                "one by now; this one takes part again when they answer.",
                error,
            )
            self._tell(None, is_active=False)
        self._stopping.wait(_PAUSE_S)

    def _tell(self, verdict: Verdict | None, *, is_active: bool) -> None:
        if (verdict, is_active) != (self.verdict, self.is_active):
            self.verdict, self.is_active = verdict, is_active
            self._on_change()


class _Membership:
    """A member of the group, as the classic protocol has it; for one thread."""

    def __init__(self, settings: ElectionSettings) -> None:
        self._settings = settings
        self._group_id = group_of(settings.application_id)
        self._member_id = ""
        self._generation_id = -1
        self.heard_at = time.monotonic()
        self._session_s = settings.session_timeout_ms / 1000
        self._brokers = Brokers(settings.bootstrap, client_id=settings.application_id)

    def join(self, own: Candidate) -> Verdict:
        """Join, elect where we lead, and return the verdict."""
        self._brokers.timeout_s = self._session_s + _JOIN_MARGIN_S
        joined = self._join(own)
        self._member_id, self._generation_id = joined.member_id, joined.generation_id
        assignments: list[SyncGroupRequestAssignment] = []
        if joined.leader == joined.member_id:
            candidates = {each.member_id: each.metadata for each in joined.members}
            assignments = _assign(candidates)
        request = SyncGroupRequest(
            group_id=self._group_id,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=_PROTOCOL,
            assignments=assignments,
        )
        synced = self._brokers.ask_coordinator(self._group_id, request, SyncGroupResponse)
        check(synced.error_code, subject=f"Group {self._group_id!r}")
        self.heard_at = time.monotonic()
        return Verdict.decode(bytes(synced.assignment))

    def _join(self, own: Candidate) -> JoinGroupResponse:
        request = JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=self._settings.session_timeout_ms,
            rebalance_timeout_ms=self._settings.session_timeout_ms,
            member_id=self._member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequestProtocol(name=_PROTOCOL, metadata=own.encode())],
        )
        found = self._brokers.ask_coordinator(self._group_id, request, JoinGroupResponse)
        if found.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = found.member_id
            return self._join(own)
        check(found.error_code, subject=f"Group {self._group_id!r}")
        return found

    def beat(self) -> bool:
        """Send a heartbeat; return False where the group is elected anew."""
        request = HeartbeatRequest(
            group_id=self._group_id,
            generation_id=self._generation_id,
            member_id=self._member_id,
        )
        # An answer that does not come must not keep us from knowing that we are given up.
        self._brokers.timeout_s = self._session_s / 3
        answer = self._brokers.ask_coordinator(self._group_id, request, HeartbeatResponse)
        is_moving = answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
        if not is_moving:
            check(answer.error_code, subject=f"Group {self._group_id!r}")
        self.heard_at = time.monotonic()
        return not is_moving

    def is_expired(self) -> bool:
        """Tell whether the others need not count on us any more."""
        is_old = time.monotonic() - self.heard_at > self._session_s
        return is_old or not self._member_id

    def look_again(self, *, is_lost: bool) -> None:
        """Look for the coordinator again; where the membership is lost, join as somebody new."""
        if is_lost:
            self._member_id, self._generation_id = "", -1
        self._brokers.forget()

    def leave(self) -> None:
        """Leave, if that can be told; the session's time-out ends it otherwise."""
        try:
            if self._member_id:
                identity = MemberIdentity(member_id=self._member_id)
                # Brokers since 2.4; older ones notice it when the session is over.
                request = LeaveGroupRequest(group_id=self._group_id, members=[identity])
                answer = self._brokers.ask_coordinator(self._group_id, request, LeaveGroupResponse)
                check(answer.error_code, subject=f"Group {self._group_id!r}")
        except (OttlaError, OSError) as error:
            _log.info("The group %s was not told that an instance left: %s", self._group_id, error)
        finally:
            self._brokers.close()


def _assign(metadata: Mapping[str, bytes]) -> list[SyncGroupRequestAssignment]:
    candidates = [Candidate(**json.loads(bytes(each))) for each in metadata.values()]
    told = elect(candidates).encode()
    return [SyncGroupRequestAssignment(member_id=each, assignment=told) for each in metadata]
