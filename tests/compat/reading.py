"""The contents of a topic for a consumer of either isolation level."""

from typing import Protocol

from confluent_kafka import Consumer, KafkaError, TopicPartition

PATIENCE_S = 30.0


class Reachable(Protocol):
    """A broker with an address."""

    @property
    def bootstrap(self) -> str:
        """Host and port."""
        ...


def everything(
    cluster: Reachable, topic: str, isolation_level: str = "read_committed"
) -> list[str]:
    """Return the values of a topic up to the end that such a consumer can read."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "reader",
            "isolation.level": isolation_level,
            "enable.partition.eof": True,
        }
    )
    count = len(consumer.list_topics(topic, PATIENCE_S).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, number, 0) for number in range(count)])
    values: list[str] = []
    ended: set[int | None] = set()
    while len(ended) < count:
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        error = message.error()
        if error is None:
            values.append((message.value() or b"").decode())
        else:
            assert error.code() == KafkaError._PARTITION_EOF
            ended.add(message.partition())
    consumer.close()
    return values
