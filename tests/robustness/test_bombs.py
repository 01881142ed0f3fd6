"""Batches that decompress to gigabytes are rejected in bounded time and memory, in every codec
(scenario 24).
"""

import socket
import time

import pytest

from bench.observed import ObservedBroker, Reading
from bench.pauses import Line, Neighbour, produce_frame, topic_resource
from ottla.base.errors import ErrorCode
from ottla.base.uuids import ZERO_UUID
from ottla.client.admin import configs, topics
from ottla.client.brokers import Brokers
from ottla.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.wire.messages.produce import ProduceResponse
from ottla.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from tests.robustness import bombs
from tests.robustness.conftest import Start
from tests.robustness.test_slow_peers import until

pytestmark = [pytest.mark.slow, pytest.mark.alone]

RSS_MIB_MAX = 64.0
PAUSE_MS_MAX = 100.0
# Topics whose records must be opened when they come.
OPENED = {"compacted": {"cleanup.policy": "compact"}, "packed": {"compression.type": "gzip"}}


class Site:
    """A broker with a topic of each kind, and another client that must not be affected."""

    def __init__(self, broker: ObservedBroker) -> None:
        self.broker = broker
        self.admin = Brokers(f"127.0.0.1:{broker.port}")
        for name, config in {**OPENED, "plain": {}}.items():
            topics.create_topic(self.admin, name, partitions=1, config=config)
        self.line = Line(broker.port)
        self.produce("compacted", bombs.swarm(10))
        self.neighbour = Neighbour(broker.port)
        self.before = broker.take()
        self.rss_mib = self.before.rss_mib

    def produce(self, topic: str, batch: bytes) -> ErrorCode:
        """Produce one batch; return the code."""
        self.line.send_bytes(produce_frame(topic, 0, batch))
        response = self.line.receive(ProduceResponse, 9)
        return ErrorCode(response.responses[0].partition_responses[0].error_code)

    def judge(self) -> Reading:
        """Compare the events since the last call with the limits."""
        result = self.broker.take()
        assert result.rss_mib - self.before.rss_mib < RSS_MIB_MAX
        assert min(result.lag_ms, result.cpu_ms) < PAUSE_MS_MAX, result.stack
        return result

    def close(self) -> None:
        """Stop the clients; the neighbour is served until then."""
        until(lambda: len(self.neighbour.latencies) > 50)
        self.neighbour.stop()
        self.line.close()
        self.admin.close()


@pytest.fixture
def site(start: Start):  # type: ignore[no-untyped-def]
    created = Site(start({"log.cleaner.enable": "false"}))
    yield created
    created.close()


def test_bombs_are_rejected_if_records_are_validated(site: Site) -> None:
    """Batches that are too large or inconsistent get Kafka's error codes; other clients are served."""
    expected = {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE}
    for name in bombs.BOMBS:
        batch = bombs.bomb(name)
        for topic in OPENED:
            code = site.produce(topic, batch)
            assert code in expected, (name, topic, code)
            site.judge()
    # The memory of rejected batches is free again, and a valid batch is accepted.
    assert site.produce("compacted", bombs.swarm(10)) is ErrorCode.NONE
    assert site.judge().held_bytes == 0


def test_batch_of_very_many_records_does_not_block_other_clients(site: Site) -> None:
    """Valid batches with very many records are accepted, and never block the loop."""
    assert site.produce("compacted", bombs.swarm(300_000)) is ErrorCode.NONE
    site.judge()
    assert site.produce("packed", bombs.swarm(50_000)) is ErrorCode.NONE
    site.judge()


def test_small_batches_do_not_wait_for_large_ones(site: Site) -> None:
    """Four clients send batches that take a second or more; 2 500 small records do not wait for
    them.
    """
    large = produce_frame("compacted", 0, bombs.swarm(300_000))
    small = bombs.swarm(2500)
    lines = [Line(site.broker.port) for _ in range(4)]
    for line in lines:
        line.send_bytes(large)
    for _ in range(5):
        assert site.produce("compacted", small) is ErrorCode.NONE
    unanswered = [line for line in lines if not line.has_answer()]
    assert len(unanswered) >= 2
    for line in lines:
        response = line.receive(ProduceResponse, 9)
        assert response.responses[0].partition_responses[0].error_code == 0
        line.close()
    site.judge()


def test_stored_bombs_do_no_harm_later(site: Site) -> None:
    """Neither compaction of the topic nor lookups by timestamp use unbounded time or memory."""
    for name in bombs.BOMBS:
        assert site.produce("plain", bombs.bomb(name)) is ErrorCode.NONE
    for number in (1, 2):
        for _ in range(2):
            assert site.produce("plain", bombs.swarm(number)) is ErrorCode.NONE
    site.judge()
    list_offsets_partition = ListOffsetsPartition(partition_index=0, timestamp=1_789_999_999_999)
    site.line.send(
        ListOffsetsRequest(
            topics=[ListOffsetsTopic(name="plain", partitions=[list_offsets_partition])]
        ),
        7,
    )
    response = site.line.receive(ListOffsetsResponse, 7)
    partition = response.topics[0].partitions[0]
    assert (partition.error_code, partition.offset) == (0, 0)
    site.judge()
    changes = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0", "segment.ms": "1"}
    configs.alter_config(site.admin, topic_resource("plain"), assign=changes)
    time_to_roll = time.monotonic() + 0.05
    while time.monotonic() < time_to_roll:
        assert site.produce("plain", bombs.swarm(1)) is ErrorCode.NONE
    site.broker.do("maintain")
    site.broker.do("clean")
    site.judge()
    assert not [line for line in site.broker.lines() if "not compacted any more" in line]


def test_client_metrics_that_are_bombs_are_rejected(site: Site) -> None:
    """The client gets an error; a client's metrics are limited before they are decompressed."""
    subscription = configs.Resource(configs.ResourceType.CLIENT_METRICS, "all")
    changes = {"metrics": "*", "interval.ms": "1000"}
    configs.alter_config(site.admin, subscription, assign=changes)
    # A subscription advertises two more APIs, to connections that request the versions afterwards.
    line = Line(site.broker.port)
    for name, (codec, _) in bombs.BOMBS.items():
        line.send(GetTelemetrySubscriptionsRequest(client_instance_id=ZERO_UUID), 0)
        response = line.receive(GetTelemetrySubscriptionsResponse, 0)
        push = PushTelemetryRequest(
            client_instance_id=response.client_instance_id,
            subscription_id=response.subscription_id,
            compression_type=codec,
            metrics=bombs.payload(name),
        )
        line.send(push, 0)
        code = ErrorCode(line.receive(PushTelemetryResponse, 0).error_code)
        assert code in {ErrorCode.TELEMETRY_TOO_LARGE, ErrorCode.INVALID_RECORD}, (name, code)
        site.judge()
    line.close()


def test_disconnected_peer_leaks_nothing(site: Site) -> None:
    """If the sender disconnects while its bomb is validated, no memory or connection is left."""
    frame = produce_frame("compacted", 0, bombs.bomb("gzip"))
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", site.broker.port)) as peer:
            peer.sendall(frame)
    end = time.monotonic() + 20
    while site.broker.take().held_bytes or site.broker.take().connections > 4:
        assert time.monotonic() < end
    site.judge()
