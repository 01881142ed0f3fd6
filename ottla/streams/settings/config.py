"""Kafka's option names: `StreamsConfig`, and mappings in place of Kafka Streams' Properties.

    config = {
        StreamsConfig.APPLICATION_ID_CONFIG: "app",
        StreamsConfig.BOOTSTRAP_SERVERS_CONFIG: "127.0.0.1:9092",
    }
    KafkaStreams(builder.build(), config)

Keyword arguments are equivalent: `application_id="app"`. If Kafka's value is the name of a class,
the value here is the class itself or an instance of it: a serde, a handler, an extractor.

The mapping may have options of the application's own, under any name that is not similar to one of
ours. As in Kafka Streams, processors read them with `context.app_configs()`. Handlers and
extractors that are given as classes get the whole mapping in `configure(configs)`, if they have
that method.

The options of TLS and SASL are the same as in Kafka's clients: `security.protocol`, `sasl.…`,
`ssl.…`. They are for all connections of the application.

The options of the group's member are `group.instance.id`, `session.timeout.ms`,
`heartbeat.interval.ms` and `max.poll.interval.ms`, with or without the prefix `consumer.`. Tags of
an instance are `client.tag.…`.

Not done: other options of Kafka's clients and of RocksDB (foreign_options.py lists the alternatives
for each engine), `KafkaClientSupplier`, `GroupProtocol`, task assignors, `DslStoreSuppliers` of the
application's own (`StoreType` has two types): Spark reads, writes and stores state in its own way;
use `max_records`, `spark_settings`, `source_options` and `sink_options` instead. `configure` of
serdes: they are passed as instances. `topology.optimization` is accepted without effect: topologies
are not optimized, and `TopologyConfig` has no other options.
`dsl.store.format` (`DslStoreFormat`): stores do not keep headers.
"""

import logging
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from ottla.base.errors import ConfigError
from ottla.base.loading import deferred_module
from ottla.streams.model.spelling import SnakeCase
from ottla.streams.settings.foreign_options import (
    SPARK,
    alternative_to,
    closest_option,
    no_effect,
    similar_name,
)
from ottla.streams.settings.handlers import ExceptionHandlers

if TYPE_CHECKING:
    from ottla.client.config import names
    from ottla.client.security import options as secured
else:
    names = deferred_module("ottla.client.config.names")
    secured = deferred_module("ottla.client.security.options")


class StreamsConfig(SnakeCase):
    """The supported options under Kafka's names; an application may have others of its own."""

    ACCEPTABLE_RECOVERY_LAG_CONFIG = "acceptable.recovery.lag"
    APPLICATION_ID_CONFIG = "application.id"
    APPLICATION_SERVER_CONFIG = "application.server"
    BOOTSTRAP_SERVERS_CONFIG = "bootstrap.servers"
    CLIENT_TAG_PREFIX = "client.tag."
    COMMIT_INTERVAL_MS_CONFIG = "commit.interval.ms"
    DEFAULT_DSL_STORE_CONFIG = "default.dsl.store"
    DEFAULT_KEY_SERDE_CLASS_CONFIG = "default.key.serde"
    DEFAULT_TIMESTAMP_EXTRACTOR_CLASS_CONFIG = "default.timestamp.extractor"
    DEFAULT_VALUE_SERDE_CLASS_CONFIG = "default.value.serde"
    DESERIALIZATION_EXCEPTION_HANDLER_CLASS_CONFIG = "deserialization.exception.handler"
    ERRORS_DEAD_LETTER_QUEUE_TOPIC_NAME_CONFIG = "errors.dead.letter.queue.topic.name"
    MAX_TASK_IDLE_MS_CONFIG = "max.task.idle.ms"
    MAX_WARMUP_REPLICAS_CONFIG = "max.warmup.replicas"
    NUM_STANDBY_REPLICAS_CONFIG = "num.standby.replicas"
    NUM_STREAM_THREADS_CONFIG = "num.stream.threads"
    PROBING_REBALANCE_INTERVAL_MS_CONFIG = "probing.rebalance.interval.ms"
    PROCESSING_EXCEPTION_HANDLER_CLASS_CONFIG = "processing.exception.handler"
    PROCESSING_GUARANTEE_CONFIG = "processing.guarantee"
    PRODUCTION_EXCEPTION_HANDLER_CLASS_CONFIG = "production.exception.handler"
    RACK_AWARE_ASSIGNMENT_TAGS_CONFIG = "rack.aware.assignment.tags"
    REPLICATION_FACTOR_CONFIG = "replication.factor"
    SECURITY_PROTOCOL_CONFIG = "security.protocol"
    STATESTORE_CACHE_MAX_BYTES_CONFIG = "statestore.cache.max.bytes"
    STATE_CLEANUP_DELAY_MS_CONFIG = "state.cleanup.delay.ms"
    STATE_DIR_CONFIG = "state.dir"
    TOPOLOGY_OPTIMIZATION_CONFIG = "topology.optimization"
    WINDOW_STORE_CHANGE_LOG_ADDITIONAL_RETENTION_MS_CONFIG = (
        "windowstore.changelog.additional.retention.ms"
    )

    AT_LEAST_ONCE = "at_least_once"
    EXACTLY_ONCE_V2 = "exactly_once_v2"
    IN_MEMORY = "in_memory"
    ROCKS_DB = "rocksDB"
    NO_OPTIMIZATION = "none"
    OPTIMIZE = "all"

    @classmethod
    def client_tag(cls, name: str) -> str:
        """Return the option that sets a tag of this instance."""
        return cls.CLIENT_TAG_PREFIX + name

    @classmethod
    def consumer_prefix(cls, name: str) -> str:
        """Return the name of an option of the group's member, such as group.instance.id."""
        return f"consumer.{name}"


_log = logging.getLogger(__name__)

# Types of values that can be copied to every worker.
_PLAIN = (str, int, float, bool)

_HANDLERS = {
    "deserialization_exception_handler": "deserialization",
    "processing_exception_handler": "processing",
    "production_exception_handler": "production",
    "default_deserialization_exception_handler": "deserialization",
    "default_production_exception_handler": "production",
    "errors_dead_letter_queue_topic_name": "dead_letter_queue_topic_name",
}
# Options whose value may also be a factory of it.
_MADE = ("default_key_serde", "default_value_serde")


# Options of the consumer that the member of the group has, with or without a prefix.
_OF_MEMBER = {
    f"{prefix}_{name}": name
    for prefix in ("consumer", "main_consumer")
    for name in (
        "group_instance_id",
        "heartbeat_interval_ms",
        "max_poll_interval_ms",
        "session_timeout_ms",
    )
}
_TAG, _TAGS = "client_tag_", "rack_aware_assignment_tags"
# A consumer option that many programs set to the value that is used anyway.
_STARTS = ("auto_offset_reset", "consumer_auto_offset_reset")


def _check_start(name: str, value: Any) -> None:
    if value != "earliest":
        raise ConfigError(
            f"{name} cannot be {value!r}: set the offset reset policy of each source, with "
            "builder.stream(topic, offset_reset='latest')."
        )


def keywords(config: Mapping[str, Any] | None, known: Collection[str] = ()) -> dict[str, Any]:
    """Return options by their Python names; the application's own options are in `app_configs`.

    Raises ConfigError if handlers are set in two ways, if an option of Kafka has no effect here,
    and if a name is similar to one of `known`, the names of keyword arguments. If `known` is empty,
    every name is accepted.
    """
    config = _of_group(config or {})
    keyword_arguments: dict[str, Any] = {}
    handlers: dict[str, Any] = {}
    security: dict[str, Any] = {}
    own: dict[str, Any] = dict(config.get("app_configs") or {})
    engine = config.get("engine", SPARK)
    for name, value in config.items():
        keyword = name.replace(".", "_")
        if keyword in ("topology_optimization", "app_configs"):
            continue
        if keyword in _STARTS:
            _check_start(name, value)
        elif names.dotted(name) in secured.SECURITY_OPTIONS:
            security[names.dotted(name)] = value
        elif keyword in _HANDLERS:
            handlers[_HANDLERS[keyword]] = _configured(value, config)
        elif keyword == "default_timestamp_extractor" and hasattr(value, "configure"):
            keyword_arguments[keyword] = _configured(value, config)
        elif known and (keyword not in known or alternative_to(keyword, engine)):
            _check_own(name, known, engine)
            own[name] = value
        else:
            keyword_arguments[keyword] = value() if keyword in _MADE and callable(value) else value
    if handlers and "exception_handlers" in keyword_arguments:
        raise ConfigError("Set handlers one by one or as exception_handlers, not both.")
    if handlers:
        keyword_arguments["exception_handlers"] = ExceptionHandlers(**handlers)
    if security:
        given = keyword_arguments.get("security") or {}
        keyword_arguments["security"] = {**given, **security}
    if own:
        plain = {
            name: setting
            for name, setting in config.items()
            # Processors do not need the secrets of the connections.
            if isinstance(setting, _PLAIN) and names.dotted(name) not in secured.SECURITY_OPTIONS
        }
        keyword_arguments["app_configs"] = {**plain, **own}
    return keyword_arguments


def _of_group(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options, with keyword arguments in place of those of the group's member and of
    tags.
    """
    results: dict[str, Any] = {}
    tags: dict[str, Any] = {}
    for name, value in config.items():
        keyword = name.replace(".", "_")
        if keyword.startswith(_TAG):
            tags[name[len(_TAG) :]] = value
        elif keyword == _TAGS and isinstance(value, str):
            results[_TAGS] = [tag.strip() for tag in value.split(",") if tag.strip()]
        else:
            results[_OF_MEMBER.get(keyword, name)] = value
    if tags:
        results["client_tags"] = {**results.get("client_tags", {}), **tags}
    return results


def _configured(value: Any, config: Mapping[str, Any]) -> Any:
    """Return the value, or an instance if it is a class; `configure`, if it exists, gets the
    options.
    """
    if not isinstance(value, type):
        return value
    instance = value()
    configure = getattr(instance, "configure", None)
    if callable(configure):
        configure(dict(config))
    return instance


def _check_own(name: str, known: Collection[str], engine: str) -> None:
    """Raise ConfigError for a name that is unlikely to be an option of the application's own."""
    instead = alternative_to(name, engine)
    if instead is not None:
        raise ConfigError(no_effect(name, engine, instead))
    slip = closest_option(name, known)
    if slip is not None:
        raise ConfigError(
            f"There is no option {name!r}; did you mean {slip!r}? {similar_name(name)}"
        )
    _log.info(
        "%r is not an option of KafkaStreams: it is kept as an option of the application.", name
    )
