"""Errors of topologies and applications, with Kafka Streams' names; the last line is what to do."""

from ottla.base.errors import OttlaError
from ottla.client.errors import SerializationError

__all__ = ["DeserializationError", "SerializationError", "StreamsError", "TopologyError"]


class StreamsError(OttlaError):
    """An application cannot continue (Kafka's StreamsException)."""


class EngineBusyError(StreamsError):
    """An engine could not start its workers in time; a retry may succeed."""


class TopologyError(StreamsError):
    """A topology is invalid; raised while it is built (Kafka's TopologyException)."""


class DeserializationError(StreamsError):
    """A serde cannot deserialize a record; names the topic, partition and offset."""
