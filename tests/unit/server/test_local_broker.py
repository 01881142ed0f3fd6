"""The controller's access to the broker in its own process."""

from typing import Any, cast

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.image import BrokerImage, TopicImage
from ottla.controller.planning.notices import Fence, MetadataUpdate
from ottla.server.local_broker import LocalBroker
from tests.handlers.logs import NODE, LogsBroker

FENCE = Fence(controller_id=NODE, controller_epoch=2, broker_epoch=10)


class Configs:
    """A config store that records which topics were read."""

    def __init__(self) -> None:
        self.loaded: list[str] = []
        self.known: set[str] = set()

    async def load_topics(self, names: Any) -> None:
        self.loaded += names

    def unread(self, names: Any) -> list[str]:
        return [name for name in dict.fromkeys(names) if name not in self.known | {*self.loaded}]


@pytest.fixture
def port(broker: LogsBroker) -> LocalBroker:
    """Return access to a broker whose epoch is 10; its updates are in `broker.updates`."""
    updates = cast(Any, broker).updates = []
    broker.configs = cast(Any, Configs())
    return broker.receive_notices(on_update=updates.append)


def topic_of(broker: LogsBroker) -> TopicImage:
    created = broker.create("t")
    broker.replicas.stop_replicas(1, [("t", 0)], delete=True)
    broker.image = broker.image.with_topics(deleted=["t"])
    return created


async def test_leaders_metadata_and_deletion_are_applied(
    broker: LogsBroker, port: LocalBroker
) -> None:
    """The broker applies leaders, metadata and deletions as the controller sends them."""
    topic = topic_of(broker)
    codes = await port.apply_leader_and_isr(FENCE, topic.states(is_new=True))
    assert codes == {("t", 0): ErrorCode.NONE}
    assert cast(Any, broker.configs).loaded == ["t"]
    assert broker.replicas.get("t", 0).is_leader
    came = MetadataUpdate(None, [topic], [])
    await port.update_metadata(FENCE, came)
    assert broker.image.topics == {"t": topic}
    assert (broker.image.controller_id, broker.image.controller_epoch) == (NODE, 2)
    gone = MetadataUpdate(None, [], ["t"])
    await port.update_metadata(FENCE, gone)
    assert await port.stop_replicas(FENCE, [("t", 0)], delete=True) == {("t", 0): ErrorCode.NONE}
    assert not broker.image.topics
    assert cast(Any, broker).updates == [came, gone]


async def test_settings_of_existing_topics_are_not_read_again(
    broker: LogsBroker, port: LocalBroker
) -> None:
    """Changed settings are read after a notification."""
    topic = broker.create("t")
    cast(Any, broker.configs).known.add("t")
    await port.apply_leader_and_isr(FENCE, topic.states())
    await port.update_metadata(FENCE, MetadataUpdate(None, [topic], []))
    assert cast(Any, broker.configs).loaded == []


async def test_list_of_brokers_is_replaced(broker: LogsBroker, port: LocalBroker) -> None:
    """Each list of brokers replaces the previous one."""
    await port.update_metadata(FENCE, MetadataUpdate({5: BrokerImage(5, "b5", 9)}, [], []))
    assert list(broker.image.brokers) == [5]


@pytest.mark.parametrize(
    ("fence", "code"),
    [
        (FENCE._replace(controller_epoch=1), ErrorCode.STALE_CONTROLLER_EPOCH),
        (FENCE._replace(broker_epoch=9), ErrorCode.STALE_BROKER_EPOCH),
    ],
)
async def test_stale_requests_are_rejected(
    broker: LogsBroker, port: LocalBroker, fence: Fence, code: ErrorCode
) -> None:
    """Requests of a replaced controller or for an earlier broker epoch are rejected (KIP-380)."""
    await port.update_metadata(FENCE, MetadataUpdate(None, [], []))
    before = broker.image
    for action in (
        port.update_metadata(fence, MetadataUpdate({}, [], [])),
        port.apply_leader_and_isr(fence, []),
        port.stop_replicas(fence, [], delete=True),
    ):
        with pytest.raises(ApiError) as refused:
            await action
        assert refused.value.code is code
    assert broker.image is before
