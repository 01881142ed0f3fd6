"""Records with acks=1 and acks=0 when the leader is killed: the documented losses, and no others."""

import itertools
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import confluent_kafka
import pytest

from tests.process.broker_cluster import BrokerCluster, campaign, wait
from tests.process.load import Load, read_all

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
TOPIC = "orders"
_OPTIONS = {"min.insync.replicas": "1"}
_CONFIG: Mapping[str, object] = {"enable.idempotence": False, "message.send.max.retries": 0}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[BrokerCluster]:
    """Three brokers and a topic of one partition, which one replica is enough to write."""
    with BrokerCluster(tmp_path, options=_OPTIONS) as running:
        running.create_topic(TOPIC, partitions=1)
        yield running


class CommittedReader:
    """A consumer that reads up to the high watermark all the time: `seen` is what it has read."""

    def __init__(self, bootstrap: str) -> None:
        self.seen: dict[int, int] = {}
        self._is_stopped = threading.Event()
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        self._consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._is_stopped.is_set():
            for message in self._consumer.consume(500, timeout=0.1):
                if message.error() is None:
                    number = int(message.value())
                    before = self.seen.setdefault(message.offset(), number)
                    # A committed record never changes.
                    assert before == number, (message.offset(), before, number)

    def __enter__(self) -> "CommittedReader":
        """Begin to read."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop reading."""
        self._is_stopped.set()
        self._thread.join()
        self._consumer.close()


def check_order(content: Mapping[int, int]) -> list[int]:
    """Fail if a record is in the log twice or out of order; return the numbers in the log."""
    numbers = list(content.values())
    assert all(before < after for before, after in itertools.pairwise(numbers))
    return numbers


def gaps(numbers: list[int]) -> list[tuple[int, int]]:
    """Return the first and the last number of each run that is missing between two others."""
    return [
        (before + 1, after - 1)
        for before, after in itertools.pairwise([-1, *numbers])
        if after > before + 1
    ]


@campaign
@pytest.mark.parametrize("acks", ["1", "0"])
def test_only_records_that_were_not_replicated_are_lost(cluster: BrokerCluster, acks: str) -> None:
    """Records that a consumer has read survive; nothing is doubled or reordered, and each kill
    loses one run of records.
    """
    kills = 3
    with (
        CommittedReader(cluster.bootstrap) as reader,
        Load(
            cluster.bootstrap, TOPIC, partitions=1, rate=1000, config={**_CONFIG, "acks": acks}
        ) as load,
    ):
        for _ in range(kills):
            load.wait_for(2000)
            victim = cluster.leader(TOPIC)
            cluster.kill(victim)
            load.wait_for(2000)
            cluster.start(victim)
            cluster.wait_in_sync(TOPIC)
        load.wait_for(1000)
    (content,) = read_all(cluster.bootstrap, TOPIC, 1)
    wait(lambda: len(reader.seen) >= len(content), "the reader has read everything")
    assert reader.seen.items() <= content.items(), "a record that was read is lost"
    missing = gaps(check_order(content))
    assert len(missing) <= kills, missing
    lost = [
        number for offset, number in load.acknowledged[0].items() if content.get(offset) != number
    ]
    if acks == "1":
        # A record without a response may be lost, too; an acknowledged one at its offset is there,
        # or it is in a run that was lost with a leader.
        assert all(any(first <= item <= last for first, last in missing) for item in lost)
    cluster.verify(TOPIC)
    print(
        f"acks={acks}: sent {load.sent[0]}, lost runs {missing}, acknowledged of them {len(lost)}"
    )


@campaign
def test_record_of_a_leader_whose_followers_have_stopped_is_lost(cluster: BrokerCluster) -> None:
    """Records that only the leader has are lost with it, and those before are there (acks=1)."""
    config = {**_CONFIG, "acks": "1"}
    leader = cluster.leader(TOPIC)
    others = [number for number in cluster.ids if number != leader]
    with Load(cluster.bootstrap, TOPIC, partitions=1, rate=500, config=config) as load:
        load.wait_for(500)
        with CommittedReader(cluster.bootstrap) as reader:
            goal = len(load.acknowledged[0])
            wait(lambda: len(reader.seen) >= goal, "the first records are replicated")
        for number in others:
            cluster.pause(number)
        # Fewer than replica.lag.time.max.ms: the followers are in the ISR.
        load.wait_for(500)
        acknowledged = dict(load.acknowledged[0])
        cluster.kill(leader)
        for number in others:
            cluster.resume(number)
        load.wait_for(500)
        cluster.start(leader)
        cluster.wait_in_sync(TOPIC)
    (content,) = read_all(cluster.bootstrap, TOPIC, 1)
    check_order(content)
    assert reader.seen.items() <= content.items()
    lost = [number for offset, number in acknowledged.items() if content.get(offset) != number]
    assert lost, "the records of the leader alone were lost"
    assert lost == list(range(lost[0], lost[-1] + 1))
    assert lost[0] > max(reader.seen.values())
    cluster.verify(TOPIC)


@campaign
def test_record_that_every_follower_has_fetched_survives(tmp_path: Path) -> None:
    """With two replicas, a record with acks=1 survives if the follower has fetched it."""
    with BrokerCluster(tmp_path, options=_OPTIONS, count=2) as cluster:
        cluster.create_topic(TOPIC, partitions=1)
        config = {**_CONFIG, "acks": "1"}
        with Load(cluster.bootstrap, TOPIC, partitions=1, rate=500, config=config) as load:
            load.wait_for(1000)
        # The follower fetches at once: its log ends where the leader's does.
        cluster.wait_in_sync(TOPIC)
        with CommittedReader(cluster.bootstrap) as reader:
            wait(lambda: len(reader.seen) == load.sent[0], "every record is replicated")
        leader = cluster.leader(TOPIC)
        cluster.kill(leader)
        wait(lambda: cluster.leader(TOPIC) != leader, "the follower leads")
        (content,) = read_all(cluster.bootstrap, TOPIC, 1)
        assert content == load.acknowledged[0]
