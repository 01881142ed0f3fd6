"""Kafka's names of options: `StreamsConfig`, and a mapping of them where Kafka Streams takes its Properties.

    config = {StreamsConfig.APPLICATION_ID_CONFIG: "app", StreamsConfig.BOOTSTRAP_SERVERS_CONFIG: "127.0.0.1:9092"}
    KafkaStreams(builder.build(), config)

Keyword arguments say the same: `application_id="app"`. Where Kafka's value is the name of a class it is the class here,
or an object: a serde, a handler, an extractor.

Not done: options of Kafka's clients, threads, standby tasks and RocksDB (`num.standby.replicas`, `max.task.idle.ms`,
`poll.ms`, `rocksdb.config.setter`, `metrics.*`, prefixes like `consumer.`; `KafkaClientSupplier`, `GroupProtocol`, task assignors):
Spark reads, writes and keeps state in its own way; `max_records`, `spark_settings`, `source_options` and `sink_options` are for that.
`topology.optimization` is taken and changes nothing: topologies run as they are written, and `TopologyConfig` says nothing else.
`dsl.store.format` (`DslStoreFormat`): stores have no headers.
"""

from collections.abc import Mapping
from typing import Any

from ottla.base.errors import ConfigError
from ottla.streams.handlers import ExceptionHandlers
from ottla.streams.spelling import SnakeCase


class StreamsConfig(SnakeCase):
    """The options that have an effect here, under Kafka's names; an application may be told others of its own."""

    APPLICATION_ID_CONFIG = "application.id"
    APPLICATION_SERVER_CONFIG = "application.server"
    BOOTSTRAP_SERVERS_CONFIG = "bootstrap.servers"
    COMMIT_INTERVAL_MS_CONFIG = "commit.interval.ms"
    DEFAULT_KEY_SERDE_CLASS_CONFIG = "default.key.serde"
    DEFAULT_TIMESTAMP_EXTRACTOR_CLASS_CONFIG = "default.timestamp.extractor"
    DEFAULT_VALUE_SERDE_CLASS_CONFIG = "default.value.serde"
    DESERIALIZATION_EXCEPTION_HANDLER_CLASS_CONFIG = "deserialization.exception.handler"
    ERRORS_DEAD_LETTER_QUEUE_TOPIC_NAME_CONFIG = "errors.dead.letter.queue.topic.name"
    NUM_STREAM_THREADS_CONFIG = "num.stream.threads"
    PROCESSING_EXCEPTION_HANDLER_CLASS_CONFIG = "processing.exception.handler"
    PROCESSING_GUARANTEE_CONFIG = "processing.guarantee"
    PRODUCTION_EXCEPTION_HANDLER_CLASS_CONFIG = "production.exception.handler"
    REPLICATION_FACTOR_CONFIG = "replication.factor"
    STATESTORE_CACHE_MAX_BYTES_CONFIG = "statestore.cache.max.bytes"
    STATE_DIR_CONFIG = "state.dir"
    TOPOLOGY_OPTIMIZATION_CONFIG = "topology.optimization"

    AT_LEAST_ONCE = "at_least_once"
    EXACTLY_ONCE_V2 = "exactly_once_v2"
    NO_OPTIMIZATION = "none"
    OPTIMIZE = "all"


_HANDLERS = {
    "deserialization_exception_handler": "deserialization",
    "processing_exception_handler": "processing",
    "production_exception_handler": "production",
    "errors_dead_letter_queue_topic_name": "dead_letter_queue_topic_name",
}
# What may be given as what makes it.
_MADE = ("default_key_serde", "default_value_serde")


# A consumer's option that many programs set to what is so anyway.
_STARTS = ("auto_offset_reset", "consumer_auto_offset_reset")


def _check_start(name: str, value: Any) -> None:
    if value != "earliest":
        raise ConfigError(
            f"{name} cannot be {value!r}: a source says itself that it starts at the end, with "
            "builder.stream(topic, offset_reset='latest')."
        )


def keywords(config: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return options under their names in Python; ConfigError where handlers are told in two ways."""
    words: dict[str, Any] = {}
    handlers: dict[str, Any] = {}
    for name, value in (config or {}).items():
        known = name.replace(".", "_")
        if known == "topology_optimization":
            continue
        if known in _STARTS:
            _check_start(name, value)
        elif known in _HANDLERS:
            handlers[_HANDLERS[known]] = value() if isinstance(value, type) else value
        else:
            words[known] = value() if known in _MADE and callable(value) else value
    if handlers and "exception_handlers" in words:
        raise ConfigError("Tell handlers one by one or as exception_handlers, not both.")
    if handlers:
        words["exception_handlers"] = ExceptionHandlers(**handlers)
    return words
