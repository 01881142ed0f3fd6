"""A consumer that speaks the consumer protocol, as simple as can be, and honest about what it has."""

import asyncio
from dataclasses import dataclass, field

from ottla.base.errors import ErrorCode
from ottla.coordinators.consumer_group.turn import Client
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)

REBALANCE_TIMEOUT_MS = 300_000
_START_OVER = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)


@dataclass(eq=False)
class ConsumerClient:
    """One member. `heard_at` is when it sent the last request that was answered well (seconds).

    It gives partitions back when `revoke` is called, not before, and takes what it is told to have.
    """

    member_id: str
    group: str = "g"
    instance: str | None = None
    topics: list[str] | None = field(default_factory=lambda: ["t"])
    regex: str | None = None
    assignor: str | None = None
    epoch: int = 0
    owned: set[tuple[bytes, int]] = field(default_factory=set)
    target: set[tuple[bytes, int]] = field(default_factory=set)
    heard_at: float = -1.0
    waiting: "asyncio.Future | None" = None
    last_error: int = 0
    is_unsure: bool = True

    def beat(self, coordinator, now):
        """Send a heartbeat unless the last one still waits for its answer."""
        if self.waiting is not None and not self.waiting.done():
            return
        # In full where it joins, or does not know whether the last one was heard.
        reply = coordinator.consumer_heartbeat(
            self.request(is_full=self.epoch == 0 or self.is_unsure),
            api_version=1,
            client=Client("client", "/127.0.0.1"),
        )
        if isinstance(reply, asyncio.Future):
            self.waiting = reply
            reply.add_done_callback(lambda done: self._hear(done.result(), now))
        else:
            self._hear(reply, now)

    def request(self, *, is_full):
        """Return its next heartbeat."""
        made = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.instance,
            topic_partitions=_by_topic(self.owned if self.epoch else ()),
        )
        if is_full:
            made.rebalance_timeout_ms = REBALANCE_TIMEOUT_MS
            made.subscribed_topic_names = self.topics
            made.subscribed_topic_regex = self.regex
            made.server_assignor = self.assignor
        return made

    def _hear(self, answer, now):
        self.last_error = answer.error_code
        self.is_unsure = bool(answer.error_code)
        if answer.error_code in _START_OVER:
            self.start_over()
        if answer.error_code:
            return
        assert answer.member_id == self.member_id
        self.epoch = answer.member_epoch
        self.heard_at = max(self.heard_at, now)
        if answer.assignment is not None:
            self.target = {
                (topic.topic_id, partition)
                for topic in answer.assignment.topic_partitions
                for partition in topic.partitions
            }
            if self.owned <= self.target:
                self.owned = set(self.target)

    def revoke(self):
        """Give back what it shall not have, and take the rest."""
        self.owned &= self.target

    def start_over(self):
        """Give everything up and join again."""
        self.epoch, self.owned, self.target = 0, set(), set()

    def leave(self, coordinator, epoch=-1):
        """Leave, or with -2 go away for a while; what comes of it is not waited for."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.instance,
        )
        self.start_over()
        client = Client("client", "/127.0.0.1")
        return coordinator.consumer_heartbeat(request, api_version=1, client=client)


def _by_topic(places):
    found = {}
    for topic_id, partition in sorted(places):
        found.setdefault(topic_id, []).append(partition)
    return [
        TopicPartitions(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in found.items()
    ]
