"""A model of a group's coordinator (classic protocol), and the twin of a member's thread."""

import asyncio
import re
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.base.rng import SeededRng
from ottla.client.group.assignors import MemberSubscription, PartitionAssignor
from ottla.client.group.background import Cause, Event, Joined, Lost, Rejoin
from ottla.client.group.identities import Identity
from ottla.client.group.member import GroupSettings
from ottla.client.records import TopicPartition
from ottla.testing.sim.loop import SimLoop
from tests.sim.streams.clients import ProcessPorts
from tests.sim.streams.logs import ModelCluster, Offsets

_LOOK_S = 0.05


class Phase(Enum):
    """The phases of a rebalance."""

    STABLE = auto()
    JOINING = auto()
    SYNCING = auto()


@dataclass
class ModelMember:
    """A member, as the coordinator knows it."""

    thread: "SimMember"
    session_s: float
    seen: float
    subscription: MemberSubscription
    has_joined: bool = True


class ModelGroup:
    """The coordinator of one group."""

    def __init__(self, cluster: ModelCluster, name: str, rng: SeededRng) -> None:
        self._cluster, self._name, self._rng = cluster, name, rng
        self.loop: SimLoop = cluster.loop
        self.members: dict[str, ModelMember] = {}
        self.generation = 0
        self.phase = Phase.STABLE
        self._joins = 0
        cluster.accepts = lambda group, identity: self.verdict(identity) == ErrorCode.NONE

    def later(self, action: Callable[[], None]) -> None:
        """Do something after the time of a response."""
        self.loop.call_later(self._rng.below(20) / 1000, action)

    def join(self, thread: "SimMember", member_id: str, subscription: MemberSubscription) -> str:
        """Add a member, or let it join again; return its id."""
        if member_id not in self.members:
            self._joins += 1
            member_id = f"member-{self._joins:03}"
        now, session_s = self.loop.time(), thread.settings.session_s
        if self.phase is not Phase.JOINING:
            self._prepare()
        self.members[member_id] = ModelMember(thread, session_s, now, subscription)
        self._complete_later()
        return member_id

    def _prepare(self) -> None:
        was_syncing = self.phase is Phase.SYNCING
        self.phase = Phase.JOINING
        for member in list(self.members.values()):
            member.has_joined = False
            if was_syncing:
                # Its SyncGroup fails, and it joins again.
                self.later(member.thread.rejoin_after_sync)

    def _complete_later(self) -> None:
        # As group.initial.rebalance.delay.ms: members that start together join together.
        self.loop.call_later(0.05, self._complete_if_all_joined)

    def _complete_if_all_joined(self) -> None:
        if self.phase is not Phase.JOINING or not self.members:
            return
        if not all(member.has_joined for member in self.members.values()):
            return
        self.phase = Phase.SYNCING
        self.generation += 1
        now = self.loop.time()
        for member in self.members.values():
            member.seen = now
        leader = self.members[min(self.members)]
        leader.thread.spawn(leader.thread.lead(self, self.generation))

    def matching(self, subscription: Sequence[str]) -> tuple[str, ...]:
        """Return the topics of a subscription; patterns begin with ^."""
        patterns = [re.compile(name) for name in subscription if name.startswith("^")]
        names = {name for name in subscription if not name.startswith("^")}
        names |= {
            topic for topic in self._cluster.topics if any(row.match(topic) for row in patterns)
        }
        return tuple(sorted(names))

    def assign(self, generation: int, assignor: PartitionAssignor) -> None:
        """Take the assignment of the leader."""
        if generation != self.generation or self.phase is not Phase.SYNCING:
            return
        counts = {topic: len(logs) for topic, logs in self._cluster.topics.items()}
        rows = {name: member.subscription for name, member in self.members.items()}
        subscribed = {topic for row in rows.values() for topic in row.topics}
        result = assignor.assign({name: counts[name] for name in sorted(subscribed)}, rows)
        self.phase = Phase.STABLE
        for name, member in self.members.items():
            keys = [TopicPartition(*key) for key in result.get(name, ())]
            member.thread.spawn(
                member.thread.synced(name, generation, keys, assignor.assignment_data(name))
            )

    def heartbeat(self, member_id: str, generation: int) -> ErrorCode:
        """Note that a member is alive."""
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        member.seen = self.loop.time()
        is_joining = self.phase is Phase.JOINING
        return ErrorCode.REBALANCE_IN_PROGRESS if is_joining else ErrorCode.NONE

    def verdict(self, identity: Identity) -> ErrorCode:
        """Return the error of a commit of this member."""
        if identity == Identity():
            # A commit without a member is accepted, as by Kafka.
            return ErrorCode.NONE
        if identity.member_id not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if identity.generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return ErrorCode.NONE

    def commit(self, identity: Identity, offsets: Offsets) -> ErrorCode:
        """Commit offsets without a transaction."""
        code = self.verdict(identity)
        if code is ErrorCode.NONE and self.phase is Phase.SYNCING:
            code = ErrorCode.REBALANCE_IN_PROGRESS
        if code is ErrorCode.NONE:
            self._cluster.committed.setdefault(self._name, {}).update(offsets)
        return code

    def leave(self, member_id: str) -> None:
        """Remove a member."""
        if self.members.pop(member_id, None) is None:
            return
        if self.phase is not Phase.JOINING:
            self._prepare()
        self._complete_later()

    def expire(self) -> None:
        """Remove the members whose sessions are over."""
        now = self.loop.time()
        for name, member in list(self.members.items()):
            waits = self.phase is Phase.JOINING and member.has_joined
            if not waits and now - member.seen > member.session_s:
                was_syncing = self.phase is Phase.SYNCING
                self.leave(name)
                if was_syncing:
                    self.later(member.thread.rejoin_after_sync)


class SimMember:
    """The twin of GroupThread: heartbeats are tasks of the process."""

    def __init__(
        self,
        group: ModelGroup,
        ports: ProcessPorts,
        settings: GroupSettings,
        assignors: Sequence[PartitionAssignor],
    ) -> None:
        self.settings = settings
        self.events: deque[Event] = deque()
        self.stay = 0
        self._group, self._ports = group, ports
        (self._assignor,) = assignors
        self.member_id = ""
        self._generation = -1
        self._is_stable = self._has_reported = self._is_closed = False
        # True if it keeps tasks while it joins.
        self._is_owner = False
        self._topics: tuple[str, ...] = ()
        self.spawn(self._heartbeats())

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a task in the process of the member."""
        self._ports.cluster.loop.spawn(self._ports.process, work)

    def polled(self) -> None:
        """Note that the worker polls."""
        self._ports.enter()

    def join(self, subscription: Sequence[str], *, is_owner: bool = False) -> None:
        """Join, or join again: an earlier join has no result."""
        self._ports.enter()
        self.stay += 1
        self._is_stable, self._is_owner = False, is_owner
        self._topics = tuple(subscription)
        self.spawn(self._join(self.stay))

    async def _join(self, stay: int) -> None:
        await asyncio.sleep(self._ports.rng.below(20) / 1000)
        if stay != self.stay:
            return
        if self.member_id and self.member_id not in self._group.members:
            # JoinGroup fails. Others may own the tasks.
            self.member_id = ""
            if self._is_owner:
                self.events.append(Lost(Cause.REMOVED))
                return
        topics = self._group.matching(self._topics)
        subscription = MemberSubscription(topics, self._assignor.user_data(topics))
        self.member_id = self._group.join(self, self.member_id, subscription)

    def rejoin_after_sync(self) -> None:
        """Join again because another rebalance has begun before the assignment arrived."""
        if not self._is_stable and not self._is_closed:
            self.spawn(self._join(self.stay))

    async def lead(self, group: ModelGroup, generation: int) -> None:
        """Compute the assignment."""
        await asyncio.sleep(self._ports.rng.below(50) / 1000)
        group.assign(generation, self._assignor)

    async def synced(
        self, member_id: str, generation: int, keys: list[TopicPartition], data: bytes | None
    ) -> None:
        """Receive the assignment."""
        stay = self.stay
        await asyncio.sleep(self._ports.rng.below(30) / 1000)
        if stay != self.stay or member_id != self.member_id:
            return
        if self._group.generation != generation or self._group.phase is not Phase.STABLE:
            # Another rebalance was faster: SyncGroup fails.
            self.rejoin_after_sync()
            return
        self._assignor.received(data)
        self._assignor.assigned(keys, generation)
        self._generation, self._is_stable, self._has_reported = generation, True, False
        self.events.append(Joined(keys, stay, member_id, generation))

    async def _heartbeats(self) -> None:
        while not self._is_closed:
            await asyncio.sleep(self.settings.heartbeat_s)
            if not self._is_stable:
                continue
            code = self._group.heartbeat(self.member_id, self._generation)
            if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
                self._is_stable, self.member_id = False, ""
                self.events.append(Lost(Cause.REMOVED))
            elif code is ErrorCode.REBALANCE_IN_PROGRESS and not self._has_reported:
                self._has_reported = True
                self.events.append(Rejoin())

    def commit(self, offsets: Offsets) -> "Future[int]":
        """Commit offsets; the result is an error code."""
        self._ports.request()
        done: Future[int] = Future()
        identity = Identity(self.member_id, self._generation)
        code = ErrorCode.REBALANCE_IN_PROGRESS
        if self._is_stable:
            code = self._group.commit(identity, offsets)
        done.set_result(int(code))
        return done

    def leave(self, reason: str) -> None:
        """Leave the group."""
        self._ports.request()
        self.stay += 1
        self._is_stable = False
        member_id, self.member_id = self.member_id, ""
        self._group.leave(member_id)

    def close(self) -> None:
        """End the member."""
        self._ports.enter()
        self.stay += 1
        self._is_closed = True
