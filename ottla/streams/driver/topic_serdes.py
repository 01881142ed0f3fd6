"""The serdes of a driver's topic; an error names the topic, key or value, and the serde."""

from typing import Any, Generic, NamedTuple, TypeVar

from ottla.streams.model.errors import DeserializationError, SerializationError
from ottla.streams.model.raw import ProducedRecord
from ottla.streams.serdes import DefaultSerdes, Serde
from ottla.streams.task.edges import UNFIT, default_serde_hint, shortened

K = TypeVar("K")
V = TypeVar("V")


class _Part(NamedTuple):
    """The key or the value of records: its name, its serde, and the serde that the test gave."""

    name: str
    serde: Serde[Any]
    own: Serde[Any] | None


class TopicSerdes(Generic[K, V]):
    """The serdes with which a test writes to a topic, or reads from it; None means the default."""

    def __init__(
        self, topic: str, key: Serde[K] | None, value: Serde[V] | None, defaults: DefaultSerdes
    ) -> None:
        self.topic = topic
        self._key = _Part("key", (key or defaults.key).of(topic, is_key=True), key)
        self._value = _Part("value", (value or defaults.value).of(topic, is_key=False), value)

    def write(self, key: K | None, value: V | None) -> tuple[bytes | None, bytes | None]:
        """Serialize a record. Raises SerializationError."""
        return self._write(self._key, key), self._write(self._value, value)

    def _write(self, part: _Part, data: Any) -> bytes | None:
        name, serde, own = part
        try:
            return serde.to_bytes(data)
        except UNFIT as error:
            raise SerializationError(
                f"the {name} of a record for topic {self.topic!r} cannot be written by {serde}: {error}; its "
                f"type is {type(data).__name__}"
                + default_serde_hint(own, serde, "input topic", name)
            ) from error

    def read(self, record: ProducedRecord) -> tuple[K | None, V | None]:
        """Deserialize a record. Raises DeserializationError."""
        return self._read(self._key, record.key), self._read(self._value, record.value)

    def _read(self, part: _Part, data: bytes | None) -> Any:
        name, serde, own = part
        try:
            return serde.from_bytes(data)
        except UNFIT as error:
            raise DeserializationError(
                f"the {name} of a record of topic {self.topic!r} cannot be read by {serde}: {error}; it is "
                f"{shortened(data)}" + default_serde_hint(own, serde, "output topic", name)
            ) from error
