"""Three Python clients with one interface, so that one specification tests all of them.

Each adapter uses its client as the client's documentation does, with its defaults. The only
settings are those that a test is about (codec, group, start position).
"""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import aiokafka
import confluent_kafka
import kafka
from kafka.structs import OffsetAndMetadata as KafkaOffset

PATIENCE_S = 30.0


class Message(NamedTuple):
    """A record that a client has read."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class ToWrite(NamedTuple):
    """A record to write; timestamp in ms."""

    key: bytes | None
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()
    partition: int | None = None
    timestamp: int | None = None


class Client(Protocol):
    """The interface of all clients."""

    name: str

    def write(self, bootstrap: str, topic: str, records: Sequence[ToWrite], codec: str) -> None:
        """Write the records and wait for their acknowledgement."""
        ...

    def read(self, bootstrap: str, topic: str, group: str, count: int) -> list[Message]:
        """Read `count` records as a new member of a group, commit them, and leave."""
        ...

    def read_since(self, bootstrap: str, topic: str, timestamp: int, count: int) -> list[Message]:
        """Seek partition 0 to a time and read `count` records from there."""
        ...


class Confluent:
    """confluent-kafka: librdkafka."""

    name = "confluent-kafka"

    def write(self, bootstrap: str, topic: str, records: Sequence[ToWrite], codec: str) -> None:
        """Write with the default producer."""
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "compression.type": codec}
        )
        failures: list[Any] = []

        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                failures.append(error)

        for record in records:
            settings: dict[str, Any] = {"headers": list(record.headers)}
            if record.partition is not None:
                settings["partition"] = record.partition
            if record.timestamp is not None:
                settings["timestamp"] = record.timestamp
            producer.produce(topic, record.value, record.key, on_delivery=delivered, **settings)
            producer.poll(0)
        assert producer.flush(PATIENCE_S) == 0
        assert failures == []

    def read(self, bootstrap: str, topic: str, group: str, count: int) -> list[Message]:
        """Read as a member of a group."""
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe([topic])
        messages = self._collect(consumer, count)
        if messages:
            consumer.commit(offsets=_next_positions(messages), asynchronous=False)
        consumer.close()
        return messages

    def read_since(self, bootstrap: str, topic: str, timestamp: int, count: int) -> list[Message]:
        """Look up the offset of a timestamp, and read from there."""
        consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
        requested = [confluent_kafka.TopicPartition(topic, 0, timestamp)]
        consumer.assign(consumer.offsets_for_times(requested, timeout=PATIENCE_S))
        messages = self._collect(consumer, count)
        consumer.close()
        return messages

    def _collect(self, consumer: Any, count: int) -> list[Message]:
        messages: list[Message] = []
        while len(messages) < count:
            batch = consumer.consume(count - len(messages), timeout=PATIENCE_S)
            assert batch, f"only {len(messages)} of {count} records came"
            for message in batch:
                assert message.error() is None, message.error()
                messages.append(
                    Message(
                        message.topic(),
                        message.partition(),
                        message.offset(),
                        message.timestamp()[1],
                        message.key(),
                        message.value(),
                        tuple(message.headers() or ()),
                    )
                )
        return messages


def _next_positions(messages: Sequence[Message]) -> list[confluent_kafka.TopicPartition]:
    after = {(row.topic, row.partition): row.offset + 1 for row in messages}
    return [confluent_kafka.TopicPartition(*key, offset) for key, offset in after.items()]


class KafkaPython:
    """kafka-python 3."""

    name = "kafka-python"

    def write(self, bootstrap: str, topic: str, records: Sequence[ToWrite], codec: str) -> None:
        """Write with the default producer, which is idempotent."""
        producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap, compression_type=None if codec == "none" else codec
        )
        futures = [
            producer.send(
                topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                partition=record.partition,
                timestamp_ms=record.timestamp,
            )
            for record in records
        ]
        for future in futures:
            future.get(timeout=PATIENCE_S)
        producer.close()

    def read(self, bootstrap: str, topic: str, group: str, count: int) -> list[Message]:
        """Read as a member of a group."""
        consumer = kafka.KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        messages = self._collect(consumer, count)
        after = {
            kafka.TopicPartition(row.topic, row.partition): KafkaOffset(row.offset + 1, "", -1)
            for row in messages
        }
        if after:
            consumer.commit(after)
        consumer.close()
        return messages

    def read_since(self, bootstrap: str, topic: str, timestamp: int, count: int) -> list[Message]:
        """Look up the offset of a timestamp, and read from there."""
        consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap)
        topic_partition = kafka.TopicPartition(topic, 0)
        consumer.assign([topic_partition])
        consumer.seek(
            topic_partition,
            consumer.offsets_for_times({topic_partition: timestamp})[topic_partition].offset,
        )
        messages = self._collect(consumer, count)
        consumer.close()
        return messages

    def _collect(self, consumer: Any, count: int) -> list[Message]:
        messages: list[Message] = []
        while len(messages) < count:
            polled = consumer.poll(
                timeout_ms=int(PATIENCE_S * 1000), max_records=count - len(messages)
            )
            assert polled, f"only {len(messages)} of {count} records came"
            for rows in polled.values():
                messages += [_message(row) for row in rows]
        return messages


def _message(row: Any) -> Message:
    return Message(
        row.topic,
        row.partition,
        row.offset,
        row.timestamp,
        row.key,
        row.value,
        tuple((name, value) for name, value in row.headers),
    )


class Aiokafka:
    """aiokafka, each call on its own event loop."""

    name = "aiokafka"

    def write(self, bootstrap: str, topic: str, records: Sequence[ToWrite], codec: str) -> None:
        """Write with the default producer."""
        asyncio.run(self._write(bootstrap, topic, records, None if codec == "none" else codec))

    async def _write(
        self, bootstrap: str, topic: str, records: Sequence[ToWrite], codec: str | None
    ) -> None:
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, compression_type=codec
        ) as producer:
            waiting = [
                await producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=record.partition,
                    timestamp_ms=record.timestamp,
                )
                for record in records
            ]
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.gather(*waiting)

    def read(self, bootstrap: str, topic: str, group: str, count: int) -> list[Message]:
        """Read as a member of a group."""
        return asyncio.run(self._read(bootstrap, topic, group, count))

    async def _read(self, bootstrap: str, topic: str, group: str, count: int) -> list[Message]:
        async with aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as consumer:
            messages = await self._collect(consumer, count)
            after = {
                aiokafka.TopicPartition(row.topic, row.partition): row.offset + 1
                for row in messages
            }
            if after:
                await consumer.commit(after)
        return messages

    def read_since(self, bootstrap: str, topic: str, timestamp: int, count: int) -> list[Message]:
        """Look up the offset of a timestamp, and read from there."""
        return asyncio.run(self._read_since(bootstrap, topic, timestamp, count))

    async def _read_since(
        self, bootstrap: str, topic: str, timestamp: int, count: int
    ) -> list[Message]:
        async with aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
            topic_partition = aiokafka.TopicPartition(topic, 0)
            consumer.assign([topic_partition])
            offsets = await consumer.offsets_for_times({topic_partition: timestamp})
            consumer.seek(topic_partition, offsets[topic_partition].offset)
            return await self._collect(consumer, count)

    async def _collect(self, consumer: Any, count: int) -> list[Message]:
        messages: list[Message] = []
        async with asyncio.timeout(PATIENCE_S):
            while len(messages) < count:
                polled = await consumer.getmany(timeout_ms=1000, max_records=count - len(messages))
                for rows in polled.values():
                    messages += [_message(row) for row in rows]
        return messages


PYTHON_CLIENTS: tuple[Client, ...] = (Confluent(), KafkaPython(), Aiokafka())
