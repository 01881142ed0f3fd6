"""Classic groups with random clients, and a log that stalls and loses records.

The invariants are:

* in one generation no partition is assigned to two owners
* the generation of a member's assignment never decreases
* every join and sync gets its response eventually
* an offset whose commit was acknowledged is never replaced by an older one, even after restarts
* memory equals the log: a coordinator that loads the log has the same state
"""

import asyncio
from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from ottla.base.errors import ErrorCode
from ottla.cluster.image import ClusterImage, PartitionImage, TopicImage
from ottla.cluster.names import GROUP_OFFSETS_TOPIC
from ottla.coordinators.classic.state import GroupState
from ottla.coordinators.classic.stored import group_from
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequestGroup
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.models.group_world import SETTINGS, GroupWorld

PARTITIONS = 4
IMAGE = ClusterImage().with_topics(
    [TopicImage(GROUP_OFFSETS_TOPIC, bytes(15) + b"\x07", (PartitionImage(0, 0, 0, (0,), (0,)),))]
)
# Longer than every timeout: sessions, rebalances, joins of new members, commits.
FOREVER_SECONDS = 1000


@dataclass(eq=False)
class Client:
    """A simple consumer, which acts on the last response."""

    instance: str | None
    version: int
    protocols: list[str]
    member_id: str = ""
    generation: int = -1
    # The response to a join or sync that it waits for.
    waiting: "asyncio.Future | None" = None
    is_gone: bool = False
    assigned: tuple[int, ...] | None = None
    generations: list[int] = field(default_factory=list)

    @property
    def owner(self):
        """The id of the member, or of static members the instance id."""
        return self.instance or self.member_id


class GroupModel(GroupWorld):
    """The rules are actions of clients, which act on every response immediately."""

    image = IMAGE

    def __init__(self):
        super().__init__()
        # Every acknowledged commit by partition, and every one that may have happened.
        self.committed = {}
        self.next_offset = 0
        self.owners = {}

    @initialize()
    def start(self):
        self._run(self._restart())

    async def _calm_down(self):
        """Check that all waiting clients get their responses when the log works and time has
        passed.
        """
        waiting = [client.waiting for client in self.clients if client.waiting is not None]
        await self.clock.sleep(FOREVER_SECONDS)
        assert all(item.done() for item in waiting)

    # -- clients

    @rule(
        instance=st.sampled_from([None, None, "i1", "i2"]),
        version=st.sampled_from([3, 5, 9]),
        protocols=st.sampled_from([["range"], ["range", "sticky"], ["sticky", "range"]]),
    )
    def client_comes(self, instance, version, protocols):
        if len(self.clients) < 6:
            client = Client(instance, version if instance is None else max(version, 5), protocols)
            self.clients.append(client)
            self._run(self._do(self._join, client))

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def client_beats(self, data):
        client = data.draw(st.sampled_from(self.clients))
        self._run(self._do(self._heartbeat, client))

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def client_joins_again(self, data):
        client = data.draw(st.sampled_from(self.clients))
        if client.waiting is None:
            self._run(self._do(self._join, client))

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), partition=st.integers(0, PARTITIONS - 1))
    def client_commits(self, data, partition):
        client = data.draw(st.sampled_from(self.clients))
        self._run(self._do(self._commit, client, partition))

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def client_leaves(self, data):
        client = data.draw(st.sampled_from(self.clients))
        self.clients.remove(client)
        members = [MemberIdentity(member_id=client.member_id, group_instance_id=client.instance)]
        request = LeaveGroupRequest(group_id="g", members=members)
        self._run(self._do(self.coordinator.membership.leave_group, request))

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def client_vanishes(self, data):
        client = data.draw(st.sampled_from(self.clients))
        self.clients.remove(client)
        if client.waiting is not None and data.draw(st.booleans()):
            client.waiting.cancel()

    async def _do(self, action, *arguments):
        action(*arguments)

    def _join(self, client):
        request = JoinGroupRequest(
            group_id="g",
            member_id=client.member_id,
            group_instance_id=client.instance,
            protocol_type="consumer",
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=b"\0\0\0\0\0\0\0\0")
                for name in client.protocols
            ],
            session_timeout_ms=10_000,
            rebalance_timeout_ms=30_000,
        )
        client.assigned = None
        reply = self.coordinator.membership.join_group(
            request, api_version=client.version, client_id="c", client_host="/127.0.0.1"
        )
        self._wait(client, reply, self._joined)

    def _wait(self, client, reply, then):
        client.then = then
        client.waiting = reply if isinstance(reply, asyncio.Future) else _done(reply)

    def _act(self):
        """Let the first client with a response act on it; return whether there was one."""
        for client in self.clients:
            if client.waiting is not None and client.waiting.done():
                response, client.waiting = client.waiting.result(), None
                client.then(client, response)
                return True
        return False

    def _joined(self, client, response):
        code = ErrorCode(response.error_code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id = response.member_id
            self._join(client)
        elif code is ErrorCode.NONE:
            client.member_id, client.generation = response.member_id, response.generation_id
            is_leader = response.leader == response.member_id and not response.skip_assignment
            assert bool(response.members) == (response.leader == response.member_id)
            self._sync(client, response.members if is_leader else [])
        else:
            self._stumble(client, code)

    def _sync(self, client, members):
        shares = {member.member_id: [] for member in members}
        for partition in range(PARTITIONS if members else 0):
            shares[members[partition % len(members)].member_id].append(partition)
        request = SyncGroupRequest(
            group_id="g",
            member_id=client.member_id,
            generation_id=client.generation,
            group_instance_id=client.instance,
            assignments=[
                SyncGroupRequestAssignment(member_id=name, assignment=bytes(share))
                for name, share in shares.items()
            ],
        )
        self._wait(client, self.coordinator.membership.sync_group(request), self._synced)

    def _synced(self, client, response):
        code = ErrorCode(response.error_code)
        if code is not ErrorCode.NONE:
            self._stumble(client, code)
            return
        client.assigned = tuple(response.assignment)
        assert client.generation >= max(client.generations, default=0)
        client.generations.append(client.generation)
        for partition in client.assigned:
            owner = self.owners.setdefault((client.generation, partition), client.owner)
            assert owner == client.owner, "a partition has two owners in one generation"

    def _stumble(self, client, code):
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            client.member_id, client.generation = "", -1
        elif code is ErrorCode.REBALANCE_IN_PROGRESS and client.waiting is None:
            self._join(client)

    def _heartbeat(self, client):
        request = HeartbeatRequest(
            group_id="g",
            member_id=client.member_id,
            generation_id=client.generation,
            group_instance_id=client.instance,
        )
        self._stumble(client, ErrorCode(self.coordinator.membership.heartbeat(request).error_code))

    def _commit(self, client, partition):
        self.next_offset += 1
        offset = self.next_offset
        request = OffsetCommitRequest(
            group_id="g",
            member_id=client.member_id,
            generation_id_or_member_epoch=client.generation,
            group_instance_id=client.instance,
            topics=[
                OffsetCommitRequestTopic(
                    name="t",
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=partition, committed_offset=offset
                        )
                    ],
                )
            ],
        )
        reply = self.coordinator.commit_offsets(request, api_version=9)
        if not isinstance(reply, asyncio.Future):
            reply = _done(reply)
        reply.add_done_callback(lambda done: self._committed(partition, offset, done.result()))

    def _committed(self, partition, offset, response):
        if response.topics[0].partitions[0].error_code == ErrorCode.NONE:
            self.committed[partition] = max(offset, self.committed.get(partition, 0))

    # -- invariants

    @invariant()
    def offsets_never_go_back(self):
        if self.epoch == 1:
            return
        reply = self.loop.run(self._fetch())
        if reply is None or reply.error_code:
            return
        committed_offsets = {
            item.partition_index: item.committed_offset
            for topic in reply.topics
            for item in topic.partitions
        }
        for partition, offset in self.committed.items():
            assert committed_offsets.get(partition, -1) >= offset, "a committed offset was lost"

    async def _fetch(self):
        """Return all offsets of the group, or None if the response has to wait."""
        request = OffsetFetchRequestGroup(group_id="g", topics=None)
        reply = self.coordinator.fetch_offsets(request, require_stable=False)
        return None if isinstance(reply, asyncio.Future) else reply

    @invariant()
    def memory_equals_the_log(self):
        shard = self._shard()
        if shard is None:
            return
        loaded = self._loaded()
        assert loaded.metadata == shard.metadata
        assert loaded.offsets == shard.offsets

    @invariant()
    def stable_group_is_stored(self):
        shard = self._shard()
        group = None if shard is None else shard.group("g")
        if group is None or group.state is not GroupState.STABLE or group.awaiting_join:
            return
        stored = group_from("g", shard.metadata["g"])
        assert stored.generation == group.generation
        assert stored.leader == group.leader
        members = {name: item.assignment for name, item in group.members.items()}
        assert {name: item.assignment for name, item in stored.members.items()} == members


def _done(response):
    future = asyncio.get_running_loop().create_future()
    future.set_result(response)
    return future


GroupModel.TestCase.settings = SETTINGS


class TestGroupModel(GroupModel.TestCase):
    """Run the model with random clients, faults of the log, and times."""
