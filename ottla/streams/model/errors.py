"""What goes wrong in a pipeline, as Kafka Streams names it; the last line says what to do."""

from ottla.base.errors import OttlaError


class StreamsError(OttlaError):
    """A pipeline cannot go on (Kafka's StreamsException)."""


class TopologyError(StreamsError):
    """A topology is not well formed; raised while it is built (Kafka's TopologyException)."""


class SerializationError(StreamsError, ValueError):
    """A value is not what a serde writes, or a schema registry refuses it; at a sink the topic is named."""


class DeserializationError(StreamsError):
    """A record of a source topic is not what its serde reads; names topic, partition and offset."""
