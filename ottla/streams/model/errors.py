"""Errors of topologies and applications, with Kafka Streams' names; the last line is what to do."""

from ottla.base.errors import OttlaError
from ottla.client.errors import SerializationError

__all__ = [
    "DeserializationError",
    "InvalidStateStoreError",
    "SerializationError",
    "StateDamaged",
    "StreamsError",
    "TaskMigrated",
    "TopologyError",
]


class StreamsError(OttlaError):
    """An application cannot continue (Kafka's StreamsException)."""


class EngineBusyError(StreamsError):
    """An engine could not start its workers in time; a retry may succeed."""


class TopologyError(StreamsError):
    """A topology is invalid; raised while it is built (Kafka's TopologyException)."""


class DeserializationError(StreamsError):
    """A serde cannot deserialize a record; names the topic, partition and offset."""


class InvalidStateStoreError(StreamsError):
    """A store cannot be read now, because its task moves or is being restored: retry (Kafka's
    InvalidStateStoreException).
    """


class StateDamaged(StreamsError):
    """The state on disk cannot be read: discard it, and restore the task from its changelogs
    (Kafka's TaskCorruptedException).
    """


class TaskMigrated(StreamsError):
    """Another worker may run the tasks: close them without a commit, and join the group again
    (Kafka's TaskMigratedException).
    """


class RecordsRefused(StreamsError):
    """Brokers have refused records of a transaction, and the application may continue without them:
    close the tasks without a commit, and process their records again.
    """
