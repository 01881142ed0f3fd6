"""Stray replicas: which logs belong to a broker, and what happens to the others."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ottla.base.files import RealFileSystem
from ottla.base.uuids import ZERO_UUID
from ottla.cluster.image import ReplicaAssignment, TopicImage
from ottla.cluster.zk.embedded import EmbeddedTree
from ottla.cluster.zk.port import ConnectionSuspended, Coordination, SessionLost
from ottla.cluster.znodes import TopicContent, TopicNode, TopicsNode
from ottla.server.brokers.stray_replicas import StrayReplicas, is_assigned
from tests.handlers.logs import NODE, OTHER, LogsBroker

ID = bytes(15) + b"\x07"
OURS = ReplicaAssignment((OTHER, NODE))
THEIRS = ReplicaAssignment((OTHER,))


@pytest.mark.parametrize(
    ("content", "log_id", "expected"),
    [
        (TopicContent(ID, {0: OURS}), ID, True),
        (TopicContent(ID, {0: THEIRS}), ID, False),
        (TopicContent(ID, {1: OURS}), ID, False),
        (TopicContent(ID, {0: OURS}), bytes(15) + b"\x08", False),
        (TopicContent(ID, {0: OURS}), ZERO_UUID, True),
        (TopicContent(None, {0: OURS}), ID, True),
        (None, ID, False),
    ],
    ids=["own", "moved", "no partition", "other topic", "no id in log", "no id in tree", "deleted"],
)
def test_logs_that_belong_to_a_broker(
    content: TopicContent | None, log_id: bytes, expected: bool
) -> None:
    """A log is the broker's if the tree assigns the partition of this very topic to it."""
    assert is_assigned(content, NODE, 0, log_id) is expected


class Setting:
    """A broker with the log of a topic that its image no longer has, and a tree."""

    def __init__(self, broker: LogsBroker, session: Coordination, topic: TopicImage) -> None:
        self.broker = broker
        self.session = session
        self.topic = topic
        self.registration = SimpleNamespace(session=session, broker_epoch=10)
        self.strays = StrayReplicas(
            NODE,
            broker.current,
            broker.replicas,
            cast(Any, self.registration),
            broker.clock,
            broker.tasks,
        )

    async def store(self, assignment: ReplicaAssignment) -> None:
        """Store the topic in the tree."""
        await self.session.ensure(TopicsNode.PATH)
        content = TopicNode.encode(self.topic.topic_id, {0: assignment})
        await self.session.create(TopicNode.path("t"), content)

    @property
    def has_log(self) -> bool:
        """True while the log has its name."""
        return self.broker.directories.get("t", 0) is not None


@pytest.fixture
async def setting(broker: LogsBroker) -> AsyncIterator[Setting]:
    """Return a broker that has a record in partition 0 of `t`, which its image lacks."""
    topic = broker.create("t")
    broker.write("t", b"a")
    broker.image = broker.image.with_topics(deleted=["t"])
    tree = EmbeddedTree(RealFileSystem(), broker.clock)
    yield Setting(broker, tree.session(), topic)
    await tree.close()


async def test_log_that_was_moved_away(setting: Setting) -> None:
    """The replica is stopped, and the directory of its log renamed; a new log can be created."""
    await setting.store(THEIRS)
    leader = setting.broker.partition("t")
    await setting.strays.look()
    assert leader.is_deleted and not setting.has_log
    (stray,) = [name for name in setting.broker.files.list("/data") if name.endswith("-stray")]
    assert stray.startswith("t-0.") and len(stray) == len("t-0.") + 32 + len("-stray")
    assert setting.broker.files.list(f"/data/{stray}")
    again = setting.broker.create("t")
    assert again.topic_id != setting.topic.topic_id
    assert setting.broker.partition("t").log.log_end_offset == 0


async def test_log_of_a_topic_that_the_tree_lacks(setting: Setting) -> None:
    """The log of a deleted topic is stray, too."""
    await setting.strays.look()
    assert not setting.has_log


async def test_log_that_only_the_image_lacks(setting: Setting) -> None:
    """The broker's image may be older than the tree, which decides."""
    await setting.store(OURS)
    await setting.strays.look()
    assert setting.has_log
    assert setting.broker.partition("t").is_leader


async def test_log_that_is_assigned_while_the_tree_is_read(setting: Setting) -> None:
    """A later decision of the controller counts, although the tree has been read before it."""
    await setting.store(THEIRS)
    get, broker = setting.session.get, setting.broker

    async def slow_get(path: str) -> Any:
        response = await get(path)
        state = setting.topic.states()[0]
        later = replace(state, leader_epoch=state.leader_epoch + 1)
        assert broker.replicas.apply_leader_and_isr(1, [later])
        return response

    setting.registration.session = SimpleNamespace(get=slow_get)
    await setting.strays.look()
    assert setting.has_log


async def test_broker_that_registers_again_while_the_tree_is_read(setting: Setting) -> None:
    """Values that a former session has read do not count."""
    await setting.store(THEIRS)
    get = setting.session.get

    async def slow_get(path: str) -> Any:
        setting.registration.broker_epoch = 11
        return await get(path)

    setting.registration.session = SimpleNamespace(get=slow_get)
    await setting.strays.look()
    assert setting.has_log


async def test_tree_that_cannot_be_read_at_first(setting: Setting) -> None:
    """The broker tries again until the tree responds."""
    await setting.store(THEIRS)
    get, is_read = setting.session.get, asyncio.Event()
    failures: list[Exception] = [ConnectionSuspended("/"), SessionLost("/")]

    async def failing_get(path: str) -> Any:
        if failures:
            raise failures.pop()
        is_read.set()
        return await get(path)

    setting.registration.session = SimpleNamespace(get=failing_get)
    setting.broker.clock.sleep = lambda seconds: asyncio.sleep(0)  # type: ignore[method-assign]
    setting.strays.look_for_them()
    setting.strays.look_for_them()
    await is_read.wait()
    while setting.has_log:
        await asyncio.sleep(0)
    assert failures == []
