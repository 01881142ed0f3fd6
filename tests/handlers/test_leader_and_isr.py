"""LeaderAndIsr: the controller's decisions about the partitions of this broker."""

from typing import Any, cast

import pytest

from ottla.base.errors import ErrorCode
from ottla.cluster.image import TopicImage
from ottla.server import local_broker
from ottla.server.brokers import states
from ottla.server.handlers import leader_and_isr
from ottla.wire.messages.leader_and_isr import LeaderAndIsrRequest
from tests.handlers.logs import NODE, OTHER, LogsBroker
from tests.handlers.peers import accept_peer

VERSIONS = range(leader_and_isr.MIN_VERSION, leader_and_isr.MAX_VERSION + 1)
BROKER_EPOCH = 10


class NoConfigs:
    """A config store without settings."""

    async def load_topics(self, names: Any) -> None:
        """Do nothing."""

    def unread(self, names: Any) -> list[str]:
        """Return nothing: no settings are unread."""
        return []


@pytest.fixture
def broker(broker: LogsBroker) -> LogsBroker:
    """Broker 1 in epoch 10, which receives notices."""
    broker.configs = cast(Any, NoConfigs())
    broker.receive_notices(BROKER_EPOCH)
    accept_peer(broker, OTHER)
    return broker


def request(topic: TopicImage, *, is_new: bool = False, **fields: int) -> LeaderAndIsrRequest:
    """Return a request of broker 2, the controller in epoch 2."""
    return LeaderAndIsrRequest(
        topic_states=states.leader_states(topic.states(is_new=is_new), 2),
        **{"controller_id": OTHER, "controller_epoch": 2, "broker_epoch": BROKER_EPOCH, **fields},
    )


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_new_partition_is_created_and_led(broker: LogsBroker, version: int) -> None:
    """The response names each partition."""
    topic = broker.create("t", partitions=2)
    broker.replicas.stop_replicas(1, [("t", 0), ("t", 1)], delete=True)
    response = await broker.ask(leader_and_isr, request(topic, is_new=True), version)
    assert response.error_code == 0
    (named,) = response.topics
    assert named.topic_id == topic.topic_id
    assert [(item.partition_index, item.error_code) for item in named.partition_errors] == [
        (0, 0),
        (1, 0),
    ]
    assert broker.replicas.get("t", 1).is_leader


async def test_unknown_recovery_state_is_refused(broker: LogsBroker) -> None:
    """Nothing of the request is applied."""
    topic = broker.create("t")
    wrong = request(topic, is_new=True)
    wrong.topic_states[0].partition_states[0].leader_recovery_state = 2
    response = await broker.ask(leader_and_isr, wrong, 7)
    assert (response.error_code, response.topics) == (ErrorCode.INVALID_REQUEST, [])


async def test_leadership_moves_to_another_broker(broker: LogsBroker) -> None:
    """A later leader epoch makes this broker a follower; an earlier one is refused."""
    topic = broker.create("t", replicas=(NODE, OTHER))
    moved = broker.create("u", replicas=(NODE, OTHER), leader=OTHER, leader_epoch=4)
    later = TopicImage("t", topic.topic_id, moved.partitions)
    assert (await broker.ask(leader_and_isr, request(later), 7)).error_code == 0
    assert not broker.replicas.get("t", 0).is_leader
    response = await broker.ask(leader_and_isr, request(topic), 7)
    (error,) = response.topics[0].partition_errors
    assert error.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    assert broker.replicas.get("t", 0).leader_epoch == 4


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"controller_epoch": 1}, ErrorCode.STALE_CONTROLLER_EPOCH),
        ({"broker_epoch": 9}, ErrorCode.STALE_BROKER_EPOCH),
    ],
)
async def test_stale_epochs_are_fenced(
    broker: LogsBroker, fields: dict[str, int], code: ErrorCode
) -> None:
    """A request of a former controller, or for a former life of this broker, changes nothing."""
    topic = broker.create("t", leader=NODE)
    assert (await broker.ask(leader_and_isr, request(topic), 7)).error_code == 0
    moved = broker.create("u", leader=OTHER, leader_epoch=9)
    later = TopicImage("t", topic.topic_id, moved.partitions)
    assert (await broker.ask(leader_and_isr, request(later, **fields), 7)).error_code == code
    assert broker.replicas.get("t", 0).is_leader


async def test_a_broker_without_registration_accepts_nothing(
    broker: LogsBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restarted process must not take the place of the process that registered."""
    monkeypatch.setattr(local_broker, "KNOWN_SECONDS", 0)
    broker.receive_notices(-1)
    topic = broker.create("t")
    later = broker.create("u", leader_epoch=9)
    moved = TopicImage("t", topic.topic_id, later.partitions)
    response = await broker.ask(leader_and_isr, request(moved), 7)
    assert response.error_code == ErrorCode.BROKER_NOT_AVAILABLE
    assert broker.replicas.get("t", 0).leader_epoch == 3


@pytest.mark.parametrize("peer", [-1, 3])
async def test_only_the_proven_controller_is_served(broker: LogsBroker, peer: int) -> None:
    """A client, or another broker than the request claims, changes nothing."""
    accept_peer(broker, peer)
    response = await broker.ask(leader_and_isr, request(broker.create("t")), 7)
    assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
