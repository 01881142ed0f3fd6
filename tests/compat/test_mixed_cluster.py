"""Apache Kafka 3.9.2 and Ottla as brokers of one cluster, on a real ZooKeeper.

Each replicates from the other, and each is the controller of both for a while. Kafka's brokers
do not know the secret of the cluster: either brokers prove nothing, or all log in with SCRAM.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.base.clock import RealClock
from ottla.cluster.image import PartitionImage
from ottla.cluster.znodes import BrokerIdsNode
from ottla.server.node import Node
from tests.compat import java, zookeeper
from tests.compat.test_one_directory import settle

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,
    pytest.mark.needs("java"),
]

KAFKA, OTTLA = 1, 2
TOPIC = "t"
PARTITIONS = 4
# Shorter than the default, so that ZooKeeper forgets a killed broker before it restarts.
SESSION_MS = 6000
CLOCK = RealClock()
# Of brokers that log in with SCRAM, for both kinds.
SCRAM = {
    "inter.broker.listener.name": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="broker" password="secret";'
    ),
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS;User:broker",
}


def create_user(address: str) -> None:
    """Create the user of the brokers before one of them has started, with Kafka's own tool."""
    java.run(
        java.kafka_class_path(java.KAFKA),
        "kafka.admin.ConfigCommand",
        *("--zookeeper", address, "--alter", "--entity-type", "users", "--entity-name", "broker"),
        *("--add-config", "SCRAM-SHA-512=[password=secret]"),
    )


@asynccontextmanager
async def cluster(
    folder: Path, *, has_logins: bool
) -> AsyncIterator[tuple[zookeeper.Broker, Node]]:
    """Run a broker of each kind; Apache Kafka's is the first one, and so the controller."""
    with zookeeper.running(folder / "zookeeper") as address:
        options = {"zookeeper.session.timeout.ms": str(SESSION_MS)}
        own = {"inter.broker.authentication": "none", "listeners": "PLAINTEXT://127.0.0.1:0"}
        if has_logins:
            await asyncio.to_thread(create_user, address)
            options |= SCRAM
            own = {"listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"}
        rows = [f"{name}={value}" for name, value in options.items()]
        kafka = zookeeper.Broker(folder / "kafka", address, options=rows)
        if has_logins:
            (inner,) = java.free_ports(1)
            with (kafka.folder / "server.properties").open("a") as file:
                # The last value counts.
                file.write(f"listeners=PLAINTEXT://{kafka.bootstrap},")
                file.write(f"SASL_PLAINTEXT://127.0.0.1:{inner}\n")
        ottla = Node(
            {
                "broker.id": str(OTTLA),
                "log.dirs": str(folder / "ottla"),
                "zookeeper.connect": address,
                **own,
                **options,
                "offsets.topic.replication.factor": "1",
            }
        )
        try:
            await asyncio.to_thread(kafka.start)
            # Its port responds before it is the controller.
            await asyncio.to_thread(settle, kafka.bootstrap)
            await ottla.start()
            yield kafka, ottla
        finally:
            await ottla.stop()
            await asyncio.to_thread(kafka.kill)


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    async with asyncio.timeout(60):
        while not condition():
            await CLOCK.sleep(0.05)


async def until_forgotten(node: Node, broker_id: int) -> None:
    """Wait until a broker's registration has ended with its session."""
    session = node.broker.controller.session
    async with asyncio.timeout(60):
        while str(broker_id) in await session.children(BrokerIdsNode.PATH):
            await CLOCK.sleep(0.05)


def partitions(node: Node) -> list[PartitionImage]:
    """Return the partitions of the topic as our broker knows them."""
    topic = node.broker.image.topic(TOPIC)
    return [] if topic is None else list(topic.partitions)


def are_in_sync(node: Node, *members: int) -> bool:
    """Return True if every partition has exactly these members in its ISR."""
    result = partitions(node)
    return len(result) == PARTITIONS and all(set(item.isr) == set(members) for item in result)


def create(bootstrap: str) -> None:
    """Create the topic with two replicas."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for done in admin.create_topics([NewTopic(TOPIC, PARTITIONS, 2)]).values():
        done.result(30)


def produce(bootstrap: str, count: int) -> int:
    """Produce records with acks=all and idempotence; return how many were acknowledged."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "message.timeout.ms": 40_000}
    )
    errors: list[object] = []
    for number in range(count):
        producer.produce(
            TOPIC,
            b"v%d" % number,
            partition=number % PARTITIONS,
            on_delivery=lambda error, _: errors.append(error),
        )
    producer.flush(60)
    return errors.count(None)


@pytest.mark.parametrize("has_logins", [False, True])
async def test_both_brokers_lead_follow_and_control(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, has_logins: bool
) -> None:
    """Nothing that was acknowledged is lost, and both logs are equal byte for byte in the end."""
    caplog.set_level(logging.INFO, logger="ottla.controller.brokers")
    async with cluster(tmp_path, has_logins=has_logins) as (kafka, ottla):
        both = f"{kafka.bootstrap},127.0.0.1:{ottla.port}"
        # Apache Kafka is the controller, and each broker leads half of the partitions.
        await until(lambda: ottla.broker.image.controller_id == KAFKA)
        await asyncio.to_thread(create, kafka.bootstrap)
        await until(lambda: are_in_sync(ottla, KAFKA, OTTLA))
        assert sorted(item.leader for item in partitions(ottla)) == [1, 1, 2, 2]
        assert await asyncio.to_thread(produce, both, 400) == 400
        # Its process ends: ours takes the role and leads everything.
        await asyncio.to_thread(kafka.kill)
        await until(lambda: ottla.broker.controller.is_active)
        await until(lambda: all(item.leader == OTTLA for item in partitions(ottla)))
        assert await asyncio.to_thread(produce, f"127.0.0.1:{ottla.port}", 400) == 400
        # It returns, follows our broker, and joins the ISR with our controller's consent; its
        # registration has to wait for the end of its former session.
        await until_forgotten(ottla, KAFKA)
        await asyncio.to_thread(kafka.start)
        await until(lambda: are_in_sync(ottla, KAFKA, OTTLA))
        assert await asyncio.to_thread(produce, both, 400) == 400
        ends = [
            ottla.broker.replicas.get(TOPIC, number).high_watermark for number in range(PARTITIONS)
        ]
        assert ends == [300] * PARTITIONS
        # A controlled shutdown: it asks our controller, and leaves every ISR.
        await asyncio.to_thread(kafka.stop)
        await until(lambda: are_in_sync(ottla, OTTLA))
        assert "broker shuts down broker=1 remaining=0" in caplog.messages
    for number in range(PARTITIONS):
        name = f"{TOPIC}-{number}/{0:020}.log"
        assert (kafka.data / name).read_bytes() == (tmp_path / "ottla" / name).read_bytes()
