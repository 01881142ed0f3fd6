"""`ottla replica verify`: replicas are compared byte by byte."""

from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from ottla.testing import Cluster
from ottla.wire.records.batch import HEADER_SIZE
from tests.integration.tools.conftest import Run

TOPIC = "orders"
BATCHES = 5


@pytest.fixture
def ottla_cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster of three brokers with a topic of five batches on each."""
    with Cluster(brokers=3, data=tmp_path / "data") as cluster:
        cluster.create_topic(TOPIC, replication_factor=3)
        produce(cluster, BATCHES)
        yield cluster


def produce(cluster: Cluster, batches: int) -> None:
    """Write batches of one record with acks=all."""
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 0})
    for number in range(batches):
        producer.produce(TOPIC, b"value %d" % number, key=b"key %d" % number)
        assert producer.flush(10) == 0


def follower(cluster: Cluster) -> int:
    """Return a broker that follows."""
    return next(broker for broker in cluster.brokers if broker != cluster.leader(TOPIC))


def log_of(cluster: Cluster, broker: int) -> Path:
    """Return the first segment of a replica."""
    return cluster.data / f"broker{broker}" / f"{TOPIC}-0" / f"{0:020d}.log"


def change_last_byte(path: Path, *, of_batches: int) -> None:
    """Change the last byte of one of several batches of the same size."""
    data = bytearray(path.read_bytes())
    data[len(data) // BATCHES * of_batches - 1] ^= 0xFF
    with path.open("r+b") as file:
        file.write(data)


def test_identical_replicas_are_verified(run: Run) -> None:
    """The command succeeds, and shows which offsets it compared."""
    done = run("replica", "verify", "--topic", TOPIC, "--output", "json")
    (row,) = done.json
    assert (done.code, row["result"], row["findings"]) == (0, "identical", [])
    assert (row["start_offset"], row["end_offset"], len(row["replicas"])) == (0, BATCHES, 3)


def test_damaged_replica_is_reported_with_its_offset(ottla_cluster: Cluster, run: Run) -> None:
    """A changed byte of a follower is found, and the exit code is 1."""
    damaged = follower(ottla_cluster)
    change_last_byte(log_of(ottla_cluster, damaged), of_batches=4)
    done = run("replica", "verify", "--topic", TOPIC, "--output", "json")
    assert done.code == 1
    assert done.json[0]["findings"] == [
        {
            "broker": damaged,
            "offset": 3,
            "problem": "differs from the leader: its batch fails the checksum",
        }
    ]
    assert "1 of 1 partitions have replicas that are not identical." in done.errors


def test_damaged_leader_is_distinguished_from_its_followers(
    ottla_cluster: Cluster, run: Run
) -> None:
    """Both followers differ from it, and the checksum shows which side is damaged."""
    change_last_byte(log_of(ottla_cluster, ottla_cluster.leader(TOPIC)), of_batches=2)
    done = run("replica", "verify", "--topic", TOPIC, "--output", "json")
    problem = "differs from the leader: the leader's batch fails the checksum"
    assert done.code == 1
    assert {(item["offset"], item["problem"]) for item in done.json[0]["findings"]} == {
        (1, problem)
    }


def test_other_records_with_a_right_checksum_are_found(ottla_cluster: Cluster, run: Run) -> None:
    """The leader epoch of a batch is outside its checksum."""
    damaged = follower(ottla_cluster)
    path = log_of(ottla_cluster, damaged)
    data = bytearray(path.read_bytes())
    data[15] ^= 0x01
    assert len(data) > HEADER_SIZE
    with path.open("r+b") as file:
        file.write(data)
    done = run("replica", "verify", "--topic", TOPIC)
    assert done.code == 1
    assert (
        f"replica {damaged} differs from the leader: the batches have other bytes (offset 0)"
        in (done.out.decode())
    )


def test_replica_of_a_dead_broker_cannot_be_verified(ottla_cluster: Cluster, run: Run) -> None:
    """A replica that cannot be read is no success."""
    dead = follower(ottla_cluster)
    ottla_cluster.kill(dead)
    done = run("replica", "verify", "--topic", TOPIC, "--wait", "0")
    assert done.code == 1
    assert f"replica {dead} cannot be read" in done.out.decode()


def test_all_topics_are_verified_by_default(ottla_cluster: Cluster, run: Run) -> None:
    """Without --topic the command compares every partition."""
    ottla_cluster.create_topic("second", partitions=2, replication_factor=3)
    done = run("replica", "verify", "--output", "json")
    assert done.code == 0
    assert [(row["topic"], row["partition"]) for row in done.json] == [
        (TOPIC, 0),
        ("second", 0),
        ("second", 1),
    ]


def test_unknown_topic_is_an_error(run: Run) -> None:
    """Nothing is verified."""
    done = run("replica", "verify", "--topic", "unknown")
    assert done.code == 1
    assert "There is no topic 'unknown'" in done.errors
