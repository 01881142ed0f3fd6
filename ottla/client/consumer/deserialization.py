"""From librdkafka's messages to records with deserialized keys and values."""

from collections.abc import Sequence
from typing import Any

from ottla.client import transport
from ottla.client.config.serialization import UNFIT, close_function, function_from
from ottla.client.config.settings import ClientSettings
from ottla.client.errors import DeserializationError
from ottla.client.records import ConsumerRecord, DeserializedRecord


class Deserialization:
    """The deserializers of one consumer."""

    def __init__(self, settings: ClientSettings) -> None:
        own, merged = settings.own, settings.merged
        self._key = function_from("key.deserializer", own.get("key.deserializer"), merged)
        self._value = function_from("value.deserializer", own.get("value.deserializer"), merged)
        self.is_plain = self._key is None and self._value is None

    def records(self, messages: Sequence[Any]) -> list[ConsumerRecord]:
        """Return the records up to the first that cannot be deserialized; raise if it is the first."""
        if self.is_plain:
            return plain_records(messages)
        records: list[ConsumerRecord] = []
        for message in messages:
            try:
                records.append(self._record(message))
            except UNFIT as error:
                if records:
                    return records
                topic, partition, offset = message.topic(), message.partition(), message.offset()
                raise DeserializationError(
                    f"the record of topic {topic!r}, partition {partition}, offset {offset} cannot "
                    f"be deserialized: {error}; to skip it, seek to offset {offset + 1}",
                    topic,
                    partition,
                    offset,
                ) from error
        return records

    def close(self) -> None:
        """Close the deserializers."""
        close_function("key.deserializer", self._key)
        close_function("value.deserializer", self._value)

    def _record(self, message: Any) -> ConsumerRecord:
        topic = message.topic()
        key, value = message.key(), message.value()
        if self._key is not None:
            key = self._key(topic, key)
        if self._value is not None:
            value = self._value(topic, value)
        return DeserializedRecord(message, value, key)


def plain_records(messages: Sequence[Any]) -> list[ConsumerRecord]:
    """Return the records with keys and values as bytes, without a Python call for each."""
    return list(map(ConsumerRecord, messages, map(transport.value_of, messages)))
