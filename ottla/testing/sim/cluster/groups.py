"""Members of consumer groups of a simulated cluster, with the classic protocol and the protocol of
KIP-848.

Members share the partitions of one topic. Each resumes at the group's committed offset after every
rebalance, and commits with its generation or member epoch, so that a member that was replaced
cannot commit.
"""

import contextlib

from ottla.base.errors import ErrorCode
from ottla.base.uuids import random_uuid, uuid_text
from ottla.testing.checkers.kafka import OffsetCommit, Polled
from ottla.testing.sim.cluster.clients import GROUP, Refused, Unavailable, check
from ottla.testing.sim.cluster.consumers import READ_COMMITTED, end_offset, fetch_records
from ottla.testing.sim.cluster.workers import STRICT, Work, Worker
from ottla.wire.messages import (
    consumer_group_heartbeat,
    heartbeat,
    join_group,
    offset_commit,
    offset_fetch,
    sync_group,
)

# Not "consumer": the broker need not understand the assignments.
_PROTOCOL_TYPE = "simulated"
_PROTOCOL = "round-robin"
_SESSION_MS = 6000
_REBALANCE_MS = 3000
_REJOIN = frozenset(
    {
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.MEMBER_ID_REQUIRED,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.OFFSET_OUT_OF_RANGE,
    }
)


class GroupMember(Worker):
    """One member; it joins again whenever the coordinator asks for it."""

    # Of OffsetCommit.
    commit_version = 8

    def __init__(self, work: Work, name: str, group: str) -> None:
        super().__init__(work, name)
        self._group = group
        self._member_id = ""
        self._generation = -1
        self._session = 0
        self._positions: dict[int, int] = {}
        self._heartbeat_at = 0.0

    async def run(self) -> None:
        """Consume until it is over and the assigned partitions are read to the end."""
        is_done = False
        while not is_done:
            try:
                await self._join()
                is_done = await self._consume()
            except Unavailable as error:
                self.state = str(error)
                await self.client.pause()
            except Refused as error:
                self.state = str(error)
                self._refused(error.error)
                await self.client.pause()
        self.client.close()

    def _refused(self, error: ErrorCode) -> None:
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id = ""
        elif error not in _REJOIN:
            self.complain(f"{error.name} in group {self._group}")

    # -- the rebalance ----------------------------------------------------------------------------

    async def _join(self) -> None:
        request = join_group.JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=_SESSION_MS,
            rebalance_timeout_ms=_REBALANCE_MS,
            member_id=self._member_id,
            protocol_type=_PROTOCOL_TYPE,
            protocols=[join_group.JoinGroupRequestProtocol(name=_PROTOCOL, metadata=b"")],
        )
        broker_id = await self.client.coordinator(GROUP, self._group)
        seconds = 2 * _REBALANCE_MS / 1000
        try:
            response = await self.client.ask(
                broker_id, request, 7, join_group.JoinGroupResponse, seconds
            )
        except Unavailable:
            self.client.forget_coordinator(GROUP, self._group)
            raise
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = response.member_id
        self._check(response.error_code)
        self._member_id = response.member_id
        # It may be smaller than before: a coordinator stores a generation when it is complete.
        self._generation = response.generation_id
        members = sorted(member.member_id for member in response.members)
        await self._sync(self._assign(members) if response.leader == self._member_id else [])

    def _assign(self, members: list[str]) -> list[sync_group.SyncGroupRequestAssignment]:
        return [
            sync_group.SyncGroupRequestAssignment(
                member_id=member,
                assignment=bytes(range(index, self.work.partitions, len(members))),
            )
            for index, member in enumerate(members)
        ]

    async def _sync(self, assignments: list[sync_group.SyncGroupRequestAssignment]) -> None:
        request = sync_group.SyncGroupRequest(
            group_id=self._group,
            generation_id=self._generation,
            member_id=self._member_id,
            protocol_type=_PROTOCOL_TYPE,
            protocol_name=_PROTOCOL,
            assignments=assignments,
        )
        response = await self.client.ask_coordinator(
            GROUP, self._group, request, 5, sync_group.SyncGroupResponse
        )
        self._check(response.error_code)
        self._session += 1
        self._positions = {number: -1 for number in response.assignment}
        self._heartbeat_at = self.client.clock.monotonic() + 1.0

    # -- records ----------------------------------------------------------------------------------

    async def _consume(self) -> bool:
        """Read until the group rebalances; return True when the work is over and all is read."""
        for partition in self._positions:
            self._positions[partition] = max(0, await self._committed(partition))
        while True:
            was_over = self.work.is_over
            is_at_end = True
            for partition in list(self._positions):
                is_at_end &= await self._read(partition)
            if was_over and is_at_end:
                return True
            await self._heartbeat()
            await self.client.clock.sleep((20 + self.rng.below(150)) / 1000)

    async def _read(self, partition: int) -> bool:
        """Read once, and commit; return True at the end of the partition."""
        position = self._positions[partition]
        fetched = await fetch_records(self.client, STRICT, partition, position, READ_COMMITTED)
        self.work.history.polls += [
            Polled(self.name, self._session, (STRICT, partition), offset, value, True)
            for offset, value in fetched.records
        ]
        self._positions[partition] = fetched.position
        if fetched.records:
            self.progress += 1
            if self.rng.below(3) == 0:
                await self._commit(partition)
            return False
        return not self.work.is_over or fetched.position >= await end_offset(
            self.client, STRICT, partition, READ_COMMITTED
        )

    async def _heartbeat(self) -> None:
        if self.client.clock.monotonic() < self._heartbeat_at:
            return
        request = heartbeat.HeartbeatRequest(
            group_id=self._group, generation_id=self._generation, member_id=self._member_id
        )
        response = await self.client.ask_coordinator(
            GROUP, self._group, request, 4, heartbeat.HeartbeatResponse
        )
        self._check(response.error_code)
        self._heartbeat_at = self.client.clock.monotonic() + 1.0

    async def _commit(self, partition: int) -> None:
        offset = self._positions[partition]
        requested = offset_commit.OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=""
        )
        request = offset_commit.OffsetCommitRequest(
            group_id=self._group,
            generation_id_or_member_epoch=self._generation,
            member_id=self._member_id,
            topics=[offset_commit.OffsetCommitRequestTopic(name=STRICT, partitions=[requested])],
        )
        response = await self.client.ask_coordinator(
            GROUP, self._group, request, self.commit_version, offset_commit.OffsetCommitResponse
        )
        self._check(response.topics[0].partitions[0].error_code)
        self.work.history.commits.append(
            OffsetCommit(self._group, (STRICT, partition), offset, is_fetched=False)
        )

    async def _committed(self, partition: int) -> int:
        requested = offset_fetch.OffsetFetchRequestTopic(name=STRICT, partition_indexes=[partition])
        request = offset_fetch.OffsetFetchRequest(
            group_id=self._group, topics=[requested], require_stable=True
        )
        response = await self.client.ask_coordinator(
            GROUP, self._group, request, 7, offset_fetch.OffsetFetchResponse
        )
        self._check(response.error_code)
        committed = response.topics[0].partitions[0]
        self._check(committed.error_code)
        self.work.history.commits.append(
            OffsetCommit(
                self._group, (STRICT, partition), committed.committed_offset, is_fetched=True
            )
        )
        return committed.committed_offset

    def _check(self, code: int) -> None:
        try:
            check(code)
        except Unavailable:
            self.client.forget_coordinator(GROUP, self._group)
            raise


_HEARTBEAT_SECONDS = 0.5
_FENCED = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.OFFSET_OUT_OF_RANGE,
    }
)


class ConsumerProtocolMember(GroupMember):
    """One member with the consumer protocol: the coordinator assigns partitions in heartbeats.

    It reports a violation if it is assigned a partition that another member has not revoked.
    Sessions do not expire during a run, so only a fenced member loses its partitions without
    revoking them.
    """

    commit_version = 9

    def __init__(self, work: Work, name: str, group: str) -> None:
        super().__init__(work, name, group)
        self._member_id = uuid_text(random_uuid(self.rng))
        self._generation = 0
        self._topic_id = bytes(16)

    def _refused(self, error: ErrorCode) -> None:
        if error not in _FENCED:
            self.complain(f"{error.name} in group {self._group}")
            return
        # It joins again with epoch 0, as a member without partitions.
        self._give_up(list(self._positions))
        self._generation = 0

    async def _join(self) -> None:
        # It resumes at the committed offsets.
        self._session += 1
        await self._beat(is_complete=True)

    async def _heartbeat(self) -> None:
        if self.client.clock.monotonic() >= self._heartbeat_at:
            await self._beat(is_complete=False)

    async def _beat(self, *, is_complete: bool) -> None:
        owned = consumer_group_heartbeat.TopicPartitions(
            topic_id=self._topic_id, partitions=sorted(self._positions)
        )
        request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self._member_id,
            member_epoch=self._generation,
            rebalance_timeout_ms=10 * _REBALANCE_MS,
            subscribed_topic_names=[STRICT] if is_complete or not self._generation else None,
            topic_partitions=[owned] if self._positions else [],
        )
        response = await self.client.ask_coordinator(
            GROUP, self._group, request, 1,
            consumer_group_heartbeat.ConsumerGroupHeartbeatResponse,
        )  # fmt: skip
        self._check(response.error_code)
        self._generation = response.member_epoch
        self._heartbeat_at = self.client.clock.monotonic() + _HEARTBEAT_SECONDS
        if response.assignment is not None:
            await self._assigned(response.assignment)

    async def _assigned(self, assignment: consumer_group_heartbeat.Assignment) -> None:
        """Revoke the partitions that are no longer assigned, and begin to read the new ones."""
        assigned: set[int] = set()
        for topic in assignment.topic_partitions:
            self._topic_id = topic.topic_id
            assigned.update(topic.partitions)
        revoked = sorted(self._positions.keys() - assigned)
        for partition in revoked:
            with contextlib.suppress(Unavailable, Refused):
                await self._commit(partition)
        self._give_up(revoked)
        if revoked:
            # The next heartbeat, which reports the partitions as revoked, is sent at once.
            self._heartbeat_at = 0.0
        for partition in sorted(assigned - self._positions.keys()):
            owner = self.work.owners.setdefault((self._group, partition), self.name)
            if owner != self.name:
                self.complain(f"partition {partition} is assigned, but {owner} has it")
            self._positions[partition] = 0
            self._session += 1
            self._positions[partition] = max(0, await self._committed(partition))

    def _give_up(self, partitions: list[int]) -> None:
        for partition in partitions:
            del self._positions[partition]
            if self.work.owners.get((self._group, partition)) == self.name:
                del self.work.owners[self._group, partition]
