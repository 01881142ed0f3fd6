"""Elects the active instance of an application through the broker's group protocol.

All instances join the group `<application id>-drivers`, which has a protocol type of its own. The
leader of the group elects the active instance: the current one if it is a member, else the instance
that has waited longest. The others are standbys. When the active instance leaves, or sends no
heartbeats for the session timeout, the next one is elected. An instance that could not send
heartbeats for that long considers itself deposed, so that two are never active for long. With
exactly_once_v2 the sink's ledger fences later writes of a deposed instance.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.base.loading import deferred
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

# Commands that only list applications do not need it.
_cluster_access = deferred("ottla.client.config.access", "ClusterAccess")
_log = logging.getLogger(__name__)

PROTOCOL_TYPE = "ottla-streams"
_PROTOCOL = "active-driver"
# A join waits until all members have rejoined or have been removed.
_JOIN_MARGIN_S = 10.0
_PAUSE_S = 0.2
# The coordinator has removed this member.
_LOST = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID})
# Errors that cannot be retried.
_FATAL = frozenset(
    {
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        ErrorCode.UNSUPPORTED_SASL_MECHANISM,
    }
)


def group_of(application_id: str) -> str:
    """Return the id of the group in which the instances of an application elect the active one."""
    return f"{application_id}-drivers"


@dataclass(frozen=True)
class Candidate:
    """The data that an instance sends about itself. Times are in ms of its own clock."""

    instance: str
    since_ms: int
    host: str = ""
    is_active: bool = False
    asks_shutdown: bool = False
    """If True, all instances must shut down."""
    metrics: str = ""
    """The address (host:port) of its metrics; empty if it does not serve them."""
    topology: str = ""
    """The encoded description of its topology (published_topology.py); empty if there is none."""

    def encode(self) -> bytes:
        """Return the encoded candidate."""
        return json.dumps(self.fields()).encode()

    def fields(self) -> dict[str, Any]:
        """Return the fields; `metrics` and `topology` only if they are set."""
        fields = asdict(self)
        return {
            name: value
            for name, value in fields.items()
            if value or name not in ("metrics", "topology")
        }

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> "Candidate":
        """Return a candidate; fields of newer instances are ignored."""
        known_fields = cls.__dataclass_fields__
        return cls(**{name: value for name, value in fields.items() if name in known_fields})


@dataclass(frozen=True)
class ElectionResult:
    """The result of an election, the same for all instances."""

    active: str
    instances: tuple[Candidate, ...]
    is_shutdown: bool = False

    def encode(self) -> bytes:
        """Return the encoded result, without topologies: it is sent to every instance."""
        instances = [replace(instance, topology="").fields() for instance in self.instances]
        return json.dumps({**asdict(self), "instances": instances}).encode()

    @classmethod
    def decode(cls, data: bytes) -> "ElectionResult":
        """Decode a result that was encoded with `encode`."""
        document = json.loads(data)
        instances = tuple(Candidate.read(candidate) for candidate in document["instances"])
        return cls(document["active"], instances, document["is_shutdown"])


def elect(candidates: Sequence[Candidate]) -> ElectionResult:
    """Elect the instance that is already active, else the one that has waited longest."""
    ordered = sorted(
        candidates,
        key=lambda candidate: (not candidate.is_active, candidate.since_ms, candidate.instance),
    )
    is_shutdown = any(candidate.asks_shutdown for candidate in candidates)
    return ElectionResult(ordered[0].instance, tuple(ordered), is_shutdown)


@dataclass(frozen=True)
class ElectionSettings:
    """The settings of an election; times in ms, as Kafka's session.timeout.ms and
    heartbeat.interval.ms. `security` has the options of Kafka's clients for TLS and SASL.
    """

    bootstrap: str
    application_id: str
    session_timeout_ms: int = 10_000
    heartbeat_interval_ms: int = 1_000
    security: Mapping[str, str] = field(default_factory=dict, repr=False)


class Election:
    """The membership of an instance in the election, in a thread of its own.

    `on_change` is called in that thread after each change of `result`, `is_active` or `error`; it
    must not block. `error` is a fatal error, such as a session timeout that the broker does not
    allow.
    """

    def __init__(
        self, settings: ElectionSettings, candidate: Candidate, on_change: Callable[[], None]
    ) -> None:
        self.result: ElectionResult | None = None
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
        """Start to take part in the election."""
        self._thread.start()

    def stop(self) -> None:
        """Leave the group; the next instance becomes active immediately."""
        self._stopping.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(self._settings.session_timeout_ms / 1000 + _JOIN_MARGIN_S)

    @property
    def candidate(self) -> Candidate:
        """This instance."""
        return self._candidate

    def show_metrics(self, address: str) -> None:
        """Set the address of this instance's metrics, for other instances. Call it before `start`."""
        self._candidate = replace(self._candidate, metrics=address)

    def ask_shutdown(self) -> None:
        """Request that all instances shut down; they receive the request with their next heartbeat."""
        self._candidate = replace(self._candidate, asks_shutdown=True)
        self._asks_again = True

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._join_and_beat()
        finally:
            self._publish(None, is_active=False)
            self._member.leave()

    def _join_and_beat(self) -> None:
        """Join, then send heartbeats until the group rebalances."""
        try:
            self._asks_again = False
            own = replace(self._candidate, is_active=self.is_active)
            result = self._member.join(own)
            self._publish(result, is_active=result.active == own.instance)
            while not (self._stopping.wait(self._interval_s) or self._asks_again):
                if not self._member.beat():
                    return
        except (OttlaError, OSError) as error:
            self._handle_error(error)

    @property
    def confirmed_at(self) -> float:
        """The time of the last confirmation of the membership, in monotonic seconds."""
        return self._member.confirmed_at

    @property
    def _interval_s(self) -> float:
        return self._settings.heartbeat_interval_ms / 1000

    def _handle_error(self, error: Exception) -> None:
        """Forget the membership if the broker has; stop being active after the session timeout."""
        if isinstance(error, ApiError) and error.code in _FATAL:
            self.error = error
            self._stopping.set()
            self._on_change()
            return
        self._member.find_coordinator_again(
            is_lost=isinstance(error, ApiError) and error.code in _LOST
        )
        if self.is_active and self._member.is_expired():
            _log.warning(
                "The brokers did not respond within the session timeout: %s. Another instance may be the active "
                "one by now; this one rejoins the election when they respond.",
                error,
            )
            self._publish(None, is_active=False)
        self._stopping.wait(_PAUSE_S)

    def _publish(self, result: ElectionResult | None, *, is_active: bool) -> None:
        if (result, is_active) != (self.result, self.is_active):
            self.result, self.is_active = result, is_active
            self._on_change()


class _Membership:
    """A member of a group of the classic protocol. For one thread."""

    def __init__(self, settings: ElectionSettings) -> None:
        self._settings = settings
        self._group_id = group_of(settings.application_id)
        self._member_id = ""
        self._generation_id = -1
        self.confirmed_at = time.monotonic()
        self._session_s = settings.session_timeout_ms / 1000
        access = _cluster_access(settings.bootstrap, settings.security)
        self._brokers: Brokers = access.brokers(client_id=settings.application_id)

    def join(self, own: Candidate) -> ElectionResult:
        """Join, elect if this member is the leader, and return the result."""
        self._brokers.timeout_s = self._session_s + _JOIN_MARGIN_S
        joined = self._join(own)
        self._member_id, self._generation_id = joined.member_id, joined.generation_id
        assignments: list[SyncGroupRequestAssignment] = []
        if joined.leader == joined.member_id:
            candidates = {member.member_id: member.metadata for member in joined.members}
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
        self.confirmed_at = time.monotonic()
        return ElectionResult.decode(bytes(synced.assignment))

    def _join(self, own: Candidate) -> JoinGroupResponse:
        request = JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=self._settings.session_timeout_ms,
            rebalance_timeout_ms=self._settings.session_timeout_ms,
            member_id=self._member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequestProtocol(name=_PROTOCOL, metadata=own.encode())],
        )
        result = self._brokers.ask_coordinator(self._group_id, request, JoinGroupResponse)
        if result.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = result.member_id
            return self._join(own)
        check(result.error_code, subject=f"Group {self._group_id!r}")
        return result

    def beat(self) -> bool:
        """Send a heartbeat; return False if the group rebalances."""
        request = HeartbeatRequest(
            group_id=self._group_id,
            generation_id=self._generation_id,
            member_id=self._member_id,
        )
        # A missing response must not hide that the session has expired.
        self._brokers.timeout_s = self._session_s / 3
        response = self._brokers.ask_coordinator(self._group_id, request, HeartbeatResponse)
        is_moving = response.error_code == ErrorCode.REBALANCE_IN_PROGRESS
        if not is_moving:
            check(response.error_code, subject=f"Group {self._group_id!r}")
        self.confirmed_at = time.monotonic()
        return not is_moving

    def is_expired(self) -> bool:
        """Return True if the session timeout has passed, so that the others may have elected
        another one.
        """
        is_old = time.monotonic() - self.confirmed_at > self._session_s
        return is_old or not self._member_id

    def find_coordinator_again(self, *, is_lost: bool) -> None:
        """Find the coordinator again; if the membership is lost, rejoin as a new member."""
        if is_lost:
            self._member_id, self._generation_id = "", -1
        self._brokers.forget()

    def leave(self) -> None:
        """Leave the group if the coordinator can be reached; otherwise the session timeout ends it."""
        try:
            if self._member_id:
                identity = MemberIdentity(member_id=self._member_id)
                # LeaveGroup with members needs brokers since 2.4; older ones wait for the session
                # timeout.
                request = LeaveGroupRequest(group_id=self._group_id, members=[identity])
                response = self._brokers.ask_coordinator(
                    self._group_id, request, LeaveGroupResponse
                )
                check(response.error_code, subject=f"Group {self._group_id!r}")
        except (OttlaError, OSError) as error:
            _log.info("The group %s could not be left: %s", self._group_id, error)
        finally:
            self._brokers.close()


def _assign(metadata: Mapping[str, bytes]) -> list[SyncGroupRequestAssignment]:
    candidates = [Candidate.read(json.loads(bytes(encoded))) for encoded in metadata.values()]
    result = elect(candidates).encode()
    return [
        SyncGroupRequestAssignment(member_id=member_id, assignment=result) for member_id in metadata
    ]
