"""From librdkafka's messages to records with deserialized keys and values."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ottla.client.config.classes import serde_of
from ottla.client.config.settings import ClientSettings
from ottla.client.errors import DeserializationError
from ottla.client.producer.preparation import UNFIT
from ottla.client.records import ConsumerRecord, DeserializedRecord
from ottla.client.serdes.serde import Serde

Deserializer = Callable[[str, Any], Any]


class Deserialization:
    """The deserializers of one consumer."""

    def __init__(self, settings: ClientSettings) -> None:
        own, given = settings.own, settings.given
        self._key = _deserializer("key.deserializer", own.get("key.deserializer"), given)
        self._value = _deserializer("value.deserializer", own.get("value.deserializer"), given)
        self.is_plain = self._key is None and self._value is None

    def records(self, messages: Sequence[Any]) -> list[ConsumerRecord]:
        """Return the records up to the first that cannot be deserialized; raise if it is the first."""
        if self.is_plain:
            return [ConsumerRecord(message) for message in messages]
        found: list[ConsumerRecord] = []
        for message in messages:
            try:
                found.append(self._record(message))
            except UNFIT as error:
                if found:
                    return found
                topic, partition, offset = message.topic(), message.partition(), message.offset()
                raise DeserializationError(
                    f"the record of topic {topic!r}, partition {partition}, offset {offset} cannot "
                    f"be deserialized: {error}; to skip it, seek to offset {offset + 1}",
                    topic,
                    partition,
                    offset,
                ) from error
        return found

    def _record(self, message: Any) -> ConsumerRecord:
        topic = message.topic()
        key, value = message.key(), message.value()
        if self._key is not None:
            key = self._key(topic, key)
        if self._value is not None:
            value = self._value(topic, value)
        return DeserializedRecord(message, key, value)


def _deserializer(option: str, value: Any, configs: Mapping[str, Any]) -> Deserializer | None:
    if value is None:
        return None
    is_key = option.startswith("key")
    found = serde_of(option, value() if isinstance(value, type) else value)
    if isinstance(found, Serde):
        return _of_serde(found, is_key)
    if hasattr(found, "configure"):
        found.configure(configs, is_key)
    if hasattr(found, "deserialize"):
        deserialize: Deserializer = found.deserialize
        return deserialize
    if callable(found):
        function = found
        return lambda _, data: None if data is None else function(data)
    raise TypeError(f"{option} must be a serde or a function, not {value!r}")


def _of_serde(serde: Serde[Any], is_key: bool) -> Deserializer:
    if serde.bind is None:
        return lambda _, data: serde.from_bytes(data)
    bound: dict[str, Serde[Any]] = {}

    def deserialize(topic: str, data: Any) -> Any:
        if topic not in bound:
            bound[topic] = serde.of(topic, is_key=is_key)
        return bound[topic].from_bytes(data)

    return deserialize
