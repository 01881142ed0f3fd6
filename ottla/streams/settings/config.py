"""Kafka's names of options: `StreamsConfig`, and a mapping of them where Kafka Streams takes its Properties.

    config = {StreamsConfig.APPLICATION_ID_CONFIG: "app", StreamsConfig.BOOTSTRAP_SERVERS_CONFIG: "127.0.0.1:9092"}
    KafkaStreams(builder.build(), config)

Keyword arguments say the same: `application_id="app"`. Where Kafka's value is the name of a class it is the class here,
or an object: a serde, a handler, an extractor.

An application may have options of its own in the mapping, under any name that is not nearly one of ours. As with Kafka
Streams, processors read them with `context.app_configs()`, and handlers and extractors that are given as classes
get the whole mapping in `configure(configs)`, if they have that method.

Not done: options of Kafka's clients, threads, standby tasks and RocksDB (foreign_options.py says what to do instead;
`KafkaClientSupplier`, `GroupProtocol`, task assignors): Spark reads, writes and keeps state in its own way; `max_records`,
`spark_settings`, `source_options` and `sink_options` are for that. `configure` of serdes: they are objects that are made already.
`topology.optimization` is taken and changes nothing: topologies run as they are written, and `TopologyConfig` says nothing else.
`dsl.store.format` (`DslStoreFormat`): stores have no headers.
"""

import logging
from collections.abc import Collection, Mapping
from typing import Any

from ottla.base.errors import ConfigError
from ottla.streams.model.spelling import SnakeCase
from ottla.streams.settings.foreign_options import instead_of, slip_of
from ottla.streams.settings.handlers import ExceptionHandlers


class StreamsConfig(SnakeCase):
    """The options that have an effect here, under Kafka's names; an application may have others of its own."""

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


_log = logging.getLogger(__name__)

# Values that every worker can have a copy of.
_PLAIN = (str, int, float, bool)

_HANDLERS = {
    "deserialization_exception_handler": "deserialization",
    "processing_exception_handler": "processing",
    "production_exception_handler": "production",
    "default_deserialization_exception_handler": "deserialization",
    "default_production_exception_handler": "production",
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


def keywords(config: Mapping[str, Any] | None, known: Collection[str] = ()) -> dict[str, Any]:
    """Return options under their names in Python, those of the application itself in `app_configs`.

    ConfigError for handlers that are set in two ways, for an option of Kafka's that has no effect here, and for a name
    that is nearly one of `known`, the names of keyword arguments. Without `known` every name is returned.
    """
    config = config or {}
    words: dict[str, Any] = {}
    handlers: dict[str, Any] = {}
    own: dict[str, Any] = dict(config.get("app_configs") or {})
    for name, value in config.items():
        word = name.replace(".", "_")
        if word in ("topology_optimization", "app_configs"):
            continue
        if word in _STARTS:
            _check_start(name, value)
        elif word in _HANDLERS:
            handlers[_HANDLERS[word]] = _configured(value, config)
        elif word == "default_timestamp_extractor" and hasattr(value, "configure"):
            words[word] = _configured(value, config)
        elif known and word not in known:
            _check_own(name, known)
            own[name] = value
        else:
            words[word] = value() if word in _MADE and callable(value) else value
    if handlers and "exception_handlers" in words:
        raise ConfigError("Tell handlers one by one or as exception_handlers, not both.")
    if handlers:
        words["exception_handlers"] = ExceptionHandlers(**handlers)
    if own:
        plain = {name: each for name, each in config.items() if isinstance(each, _PLAIN)}
        words["app_configs"] = {**plain, **own}
    return words


def _configured(value: Any, config: Mapping[str, Any]) -> Any:
    """Return an object as it is; an object of a class, which gets the application's options if it asks for them."""
    if not isinstance(value, type):
        return value
    made = value()
    configure = getattr(made, "configure", None)
    if callable(configure):
        configure(dict(config))
    return made


def _check_own(name: str, known: Collection[str]) -> None:
    """ConfigError for an option that the application cannot mean as one of its own."""
    instead = instead_of(name)
    if instead is not None:
        raise ConfigError(
            f"The option {name!r} of Kafka Streams has no effect on Spark: {instead}."
        )
    slip = slip_of(name, known)
    if slip is not None:
        raise ConfigError(
            f"There is no option {name!r}; did you mean {slip!r}? Set an option of the application's own with a "
            f"similar name in app_configs={{{name!r}: …}}."
        )
    _log.info("The option %r is none of KafkaStreams: the application reads it itself.", name)
