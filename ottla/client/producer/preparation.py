"""From a caller's record to bytes and a partition: interceptors, serializers, partitioner, in this
order.
"""

from dataclasses import replace
from typing import Any, NamedTuple

from ottla.client.config.classes import interceptors_of, partitioner_of
from ottla.client.config.serialization import (
    UNFIT,
    SerdeFunction,
    close_function,
    function_from,
)
from ottla.client.config.settings import ClientSettings
from ottla.client.errors import ClientError, SerializationError
from ottla.client.producer.interceptors import ProducerInterceptors
from ottla.client.producer.partitioners import Topology, checked, partitioner_from
from ottla.client.records import Headers, ProducerRecord, as_bytes

MALFORMED = (TypeError, OverflowError, ValueError)
"""Exceptions of librdkafka's binding for arguments of a wrong type, or out of range."""


class PreparedRecord(NamedTuple):
    """The form that librdkafka takes: bytes, and a partition or None."""

    topic: str
    value: Any
    key: Any
    headers: Headers | None
    partition: int | None
    timestamp: int | None


class Preparation:
    """The steps in front of librdkafka, for one producer."""

    def __init__(self, settings: ClientSettings, topology: Topology) -> None:
        own, merged = settings.own, settings.merged
        self.topology = topology
        self.interceptors = ProducerInterceptors(
            interceptors_of(own.get("interceptor.classes") or []), merged
        )
        self._key = function_from("key.serializer", own.get("key.serializer"), merged)
        self._value = function_from("value.serializer", own.get("value.serializer"), merged)
        # The topics whose keys and values have been serialized.
        self._key_topics: set[str] = set()
        self._value_topics: set[str] = set()
        self._ignores_keys = settings.flag("partitioner.ignore.keys", False)
        self.partitioner = partitioner_from(partitioner_of(own.get("partitioner.class")), merged)

    @property
    def is_plain(self) -> bool:
        """True if records go to librdkafka as they are."""
        steps = self.interceptors, self._key, self._value, self.partitioner, self._ignores_keys
        return not any(steps)

    def intercepted(self, record: ProducerRecord) -> ProducerRecord:
        """Return what the interceptors make of a record; they may change its list of headers."""
        if isinstance(record.headers, list):
            record = replace(record, headers=list(record.headers))
        return self.interceptors.on_send(record)

    def is_ready(self, record: ProducerRecord) -> bool:
        """Return True if `prepared` need not wait for a schema registry or for the cluster."""
        topic = record.topic
        return (
            (self._key is None or record.key is None or topic in self._key_topics)
            and (self._value is None or record.value is None or topic in self._value_topics)
            and (self.partitioner is None or self.topology.is_known(topic))
        )

    def prepared_first(self, record: ProducerRecord) -> PreparedRecord:
        """Prepare a record in a thread that may wait; its topic is ready afterwards."""
        if self.partitioner is not None:
            self.topology.partitions(record.topic)
        result = self.prepared(record)
        # A serde sends its schema to the registry with the first value that is not None.
        if record.key is not None:
            self._key_topics.add(record.topic)
        if record.value is not None:
            self._value_topics.add(record.topic)
        return result

    def prepared(self, record: ProducerRecord) -> PreparedRecord:
        """Return the bytes and the partition of a record; SerializationError names the topic."""
        topic = record.topic
        key, value = record.key, record.value
        if self._key is not None:
            key = _serialize(self._key, topic, key, "key")
        if self._value is not None:
            value = _serialize(self._value, topic, value, "value")
        partition = record.partition
        if partition is None and self.partitioner is not None:
            chosen = self.partitioner.partition(
                topic, record.key, key, record.value, value, self.topology
            )
            partition = checked(chosen, topic, self.topology.partitions(topic))
        return PreparedRecord(topic, value, key, record.headers, partition, record.timestamp)

    def close(self) -> None:
        """Close the interceptors, the serializers and the partitioner."""
        self.interceptors.close()
        close_function("key.serializer", self._key)
        close_function("value.serializer", self._value)
        if hasattr(self.partitioner, "close"):
            self.partitioner.close()


def _serialize(serializer: SerdeFunction, topic: str, data: Any, part: str) -> Any:
    try:
        result = as_bytes(serializer(topic, data))
    except UNFIT as error:
        raise SerializationError(
            f"cannot serialize the {part} {_shown(data)} of a record for topic {topic!r}: {error}"
        ) from error
    if isinstance(result, bytes | str | None):
        return result
    raise SerializationError(
        f"the {part}.serializer returned {_shown(result)} for the {part} {_shown(data)} of a record "
        f"for topic {topic!r}: it must return bytes, text or None"
    )


def _shown(data: Any) -> str:
    text = repr(data)
    return text if len(text) <= 80 else text[:79] + "…"


def native_timestamp(timestamp: int | None) -> int:
    """Return a timestamp (ms) as librdkafka takes it: 0 is the time of the call.

    Raises ClientError for 0, which Kafka would store, and for negative ones, which it refuses.
    """
    if timestamp is None:
        return 0
    if timestamp <= 0:
        raise ClientError(
            f"timestamp={timestamp} cannot be sent: it must be at least 1 (ms since 1970), or None "
            "for the time of the call"
        )
    return timestamp


def plain_type_error(record: PreparedRecord, error: Exception) -> SerializationError:
    """Return the error for a record with arguments that librdkafka's binding refuses."""
    for part, data in (("key", record.key), ("value", record.value)):
        if data is not None and not isinstance(data, bytes | str):
            return SerializationError(
                f"cannot send the {part} {_shown(data)} of a record for topic {record.topic!r}: it "
                f"is neither bytes nor text; set {part}_serializer, for example to Serdes.json()"
            )
    if record.timestamp is not None and not hasattr(record.timestamp, "__index__"):
        return SerializationError(
            f"cannot send a record for topic {record.topic!r}: timestamp={record.timestamp!r} is no "
            "whole number of ms since 1970; of a datetime it is `int(moment.timestamp() * 1000)`"
        )
    reason = str(error)
    if isinstance(error, UnicodeEncodeError):
        reason = f"{error.object!r} is not text that UTF-8 can encode"
    return SerializationError(f"cannot send a record for topic {record.topic!r}: {reason}")
