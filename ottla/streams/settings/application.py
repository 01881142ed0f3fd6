"""The options of an application: Kafka Streams' options in snake_case, and the engines'."""

import dataclasses
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ottla.base.errors import ConfigError
from ottla.base.loading import deferred_module
from ottla.base.options import is_port
from ottla.streams.model.durations import DAY_MS
from ottla.streams.processor.api import TimestampExtractor
from ottla.streams.serdes import DefaultSerdes, Serde, Serdes, check_serdes
from ottla.streams.settings.foreign_options import (
    LOCAL,
    SPARK,
    alternative_to,
    closest_option,
    no_effect,
    similar_name,
)
from ottla.streams.stores.builders import StoreType

if TYPE_CHECKING:
    from ottla.client.config import names
    from ottla.client.security import options as secured
else:
    names = deferred_module("ottla.client.config.names")
    secured = deferred_module("ottla.client.security.options")

AT_LEAST_ONCE = "at_least_once"
EXACTLY_ONCE = "exactly_once_v2"
# The minimum values of numeric options.
_LEAST = {
    "commit_interval_ms": 0,
    "max_records": 1,
    "replication_factor": -1,
    "max_task_idle_ms": -1,
    "num_standby_replicas": 0,
    "acceptable_recovery_lag": 0,
    "max_warmup_replicas": 1,
    "max_poll_interval_ms": 1,
    "probing_rebalance_interval_ms": 60_000,
    "state_cleanup_delay_ms": 0,
    "session_timeout_ms": 1,
    "heartbeat_interval_ms": 1,
    "emit_interval_ms": 0,
    "tick_interval_ms": 1,
    "num_stream_threads": 1,
    "statestore_cache_max_bytes": 0,
    "windowstore_changelog_additional_retention_ms": 0,
}


def _default_state_dir() -> str:
    return os.path.join(tempfile.gettempdir(), "ottla-streams")


@dataclass(frozen=True, kw_only=True)
class AppSettings:
    """The options of KafkaStreams; `read_settings` creates them from keyword arguments. Times are
    in ms.
    """

    engine: str = SPARK
    """spark, or local: tasks run in this process (streams/local)."""
    processing_guarantee: str = AT_LEAST_ONCE
    state_dir: str = field(default_factory=_default_state_dir)
    """Spark: the directory of checkpoints, or a Hadoop URL that all instances can access. As in
    Kafka Streams the default is in the directory for temporary files: set another one to keep the
    state. Local engine: the directory of stores on disk, with a folder for each instance.
    """
    commit_interval_ms: int = 100
    """The minimum time between the starts of two micro-batches."""
    max_records: int = 100_000
    """The maximum number of records in a micro-batch."""
    default_key_serde: Serde[Any] = field(default_factory=Serdes.json)
    default_value_serde: Serde[Any] = field(default_factory=Serdes.json)
    default_timestamp_extractor: TimestampExtractor | None = None
    """Returns the timestamps of records of sources without an extractor of their own."""
    statestore_cache_max_bytes: int = 0
    """The size of a task's record caches: only the last update of a key in a micro-batch is
    emitted. 0: every update is.
    """
    replication_factor: int = -1
    """The replication factor of internal topics; -1: the brokers' default."""
    windowstore_changelog_additional_retention_ms: int = DAY_MS
    """The time added to a window store's retention in the configuration of its changelog. Brokers
    compare it with the wall clock: raise it to query windows of older records.
    """
    max_task_idle_ms: int = 0
    """Local engine: how long a task waits for an input partition that was read to its end while
    another has records (KIP-695); -1: tasks never wait.
    """
    num_standby_replicas: int = 0
    """Local engine: the number of other instances that follow the changelogs of each stateful task,
    and can continue it at once.
    """
    acceptable_recovery_lag: int = 10_000
    """Local engine: a stateful task moves to an instance that is at most this many changelog
    records behind.
    """
    max_warmup_replicas: int = 2
    """Local engine: the number of tasks whose next owners read the changelogs before they move."""
    probing_rebalance_interval_ms: int = 600_000
    """Local engine: the longest time until the group looks at such tasks again. An instance that
    has caught up causes a rebalance at once.
    """
    state_cleanup_delay_ms: int = 600_000
    """Local engine: how long an instance keeps the state of a task that has moved away."""
    default_dsl_store: str = StoreType.PERSISTENT.value
    """Local engine: rocksDB, if stores without a type are on disk (in SQLite), or in_memory."""
    rack_aware_assignment_tags: Sequence[str] = ()
    """Local engine: the tags, such as zone, in which a task's standbys differ from its owner."""
    client_tags: Mapping[str, str] = field(default_factory=dict)
    """Local engine: the tags of this instance."""
    group_instance_id: str = ""
    """Local engine: the name of this instance as a static member of the group (KIP-345). Its tasks
    stay with it if it starts again within the session time-out.
    """
    max_poll_interval_ms: int = 300_000
    """Local engine: an instance that processes one record for longer loses its tasks."""
    session_timeout_ms: int = 10_000
    """The time without heartbeats after which an instance is replaced."""
    heartbeat_interval_ms: int = 1_000
    application_server: str = ""
    """The address (host:port) of this instance in its metadata, as in Kafka Streams."""
    emit_interval_ms: int = 0
    """How often closed windows are emitted; 0: at every record."""
    tick_interval_ms: int = 1_000
    """The resolution of wall-clock punctuators."""
    num_stream_threads: int | None = None
    """Spark: the number of cores of a local master; None: all. Local engine: the number of workers,
    each a thread and a member of the group; None: one.
    """
    exception_handlers: Any = None
    """The handlers of records that cannot be read, processed or written (handlers.py)."""
    shows_progress: bool | None = None
    """If True, a line on standard error shows the progress; None: only on a terminal."""
    metrics_listener: str = ""
    """The address (host:port) that serves /metrics in Prometheus' text format; empty: none."""
    spark: Any = None
    """The Spark session to use. By default one is created, and stopped when the application ends."""
    master: str | None = None
    """A cluster's master URL, or local[N]."""
    spark_settings: Mapping[str, str] = field(default_factory=dict)
    py_files: Sequence[str] = ()
    """Files (.py, .zip) with the topology's modules, which are sent to the executors."""
    source_options: Mapping[str, str] = field(default_factory=dict)
    sink_options: Mapping[str, str] = field(default_factory=dict)
    app_configs: Mapping[str, Any] = field(default_factory=dict)
    """The application's own options, which processors read with `context.app_configs()`."""
    security: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The options of Kafka's clients for TLS and SASL under Kafka's names; each of them may also be
    a keyword argument, such as security_protocol. The executors of a cluster read the files that
    they name, too.
    """

    @property
    def defaults(self) -> DefaultSerdes:
        """The default serdes."""
        return DefaultSerdes(self.default_key_serde, self.default_value_serde)

    @property
    def is_exactly_once(self) -> bool:
        """True if outputs are written in transactions."""
        return self.processing_guarantee == EXACTLY_ONCE

    def checkpoint(self, application_id: str) -> str:
        """Return the path or URL of an application's checkpoint, or of its stores on disk."""
        return checkpoint_of(self.state_dir, application_id)


def checkpoint_of(state_dir: str | None, application_id: str) -> str:
    """Return the path or URL of an application's checkpoint. None is the default directory."""
    return f"{(state_dir or _default_state_dir()).rstrip('/')}/{application_id}"


def known_options() -> tuple[str, ...]:
    """Return the names of all keyword arguments of KafkaStreams."""
    fields = dataclasses.fields(AppSettings)
    return ("application_id", "bootstrap_servers", *(field_.name for field_ in fields))


def check_names(keyword_names: Iterable[str], engine: str) -> None:
    """Raise ConfigError for a keyword argument that KafkaStreams does not have, with a suggestion,
    or that has no effect on the engine.
    """
    options = known_options()
    for name in keyword_names:
        if name in options or names.dotted(name) in secured.SECURITY_OPTIONS:
            continue
        _check_effect([name], engine)
        near = closest_option(name, options)
        if near is not None:
            raise ConfigError(
                f"There is no option {name} of KafkaStreams; did you mean {near}? {similar_name(name)}"
            )
        raise ConfigError(
            f"There is no option {name} of KafkaStreams; set an option of the application's own in "
            f"app_configs={{{name!r}: …}}, or in the mapping with Kafka's names; known options: "
            f"{', '.join(options[2:])}."
        )


def _check_effect(keyword_names: Iterable[str], engine: str) -> None:
    for name in keyword_names:
        instead = alternative_to(name, engine)
        if instead is not None:
            raise ConfigError(no_effect(name, engine, instead))


def read_settings(options: Mapping[str, Any]) -> AppSettings:
    """Return the settings. Raises ConfigError for unknown options and invalid values."""
    engine = options.get("engine", SPARK)
    check_names(options, engine)
    _check_effect(options, engine)
    _check_numbers(options)
    others = {name: value for name, value in options.items() if not _is_security(name)}
    settings = AppSettings(**others, security=_security(options))
    check_serdes(settings.default_key_serde, settings.default_value_serde)
    _check_server(settings.application_server)
    if settings.processing_guarantee not in (AT_LEAST_ONCE, EXACTLY_ONCE):
        raise ConfigError(
            f"processing_guarantee cannot be {settings.processing_guarantee!r}: choose "
            f"{AT_LEAST_ONCE} or {EXACTLY_ONCE}."
        )
    if settings.engine not in (SPARK, LOCAL):
        raise ConfigError(f"engine cannot be {settings.engine!r}: choose {LOCAL} or {SPARK}.")
    return settings


_OF_TASKS = {
    "max_task_idle_ms": "Spark reads in micro-batches",
    "num_standby_replicas": "start a second instance, which takes over",
    "rack_aware_assignment_tags": "Spark assigns the work to its executors",
    "client_tags": "Spark assigns the work to its executors",
    "group_instance_id": "its instances elect an active one",
}


def check_spark(settings: AppSettings) -> None:
    """Raise ConfigError for an option that has no effect on Spark."""
    for name, reason in _OF_TASKS.items():
        if getattr(settings, name):
            raise ConfigError(
                f"The option '{name}' of Kafka Streams has no effect on Spark: {reason}. "
                "Remove it, or run the application with engine='local'."
            )


def check_local(settings: AppSettings) -> None:
    """Raise ConfigError for an option of Spark, which has no effect in this process."""
    for name in ("spark", "master", "spark_settings", "py_files", "source_options", "sink_options"):
        if getattr(settings, name):
            raise ConfigError(
                f"{name} is an option of Spark and has no effect with engine='local': remove it, "
                "or run the application with engine='spark'."
            )
    if "://" in settings.state_dir:
        raise ConfigError(
            f"state_dir cannot be {settings.state_dir!r} with engine='local': set a directory of "
            "this machine."
        )
    types = [row.value for row in StoreType]
    if settings.default_dsl_store not in types:
        raise ConfigError(
            f"default_dsl_store cannot be {settings.default_dsl_store!r}: choose {' or '.join(types)}."
        )
    if settings.heartbeat_interval_ms >= settings.session_timeout_ms:
        raise ConfigError(
            f"heartbeat_interval_ms cannot be {settings.heartbeat_interval_ms}: it must be less than "
            f"session_timeout_ms ({settings.session_timeout_ms})."
        )
    _check_tags(settings)
    if settings.group_instance_id:
        check_id("group_instance_id", settings.group_instance_id, "a directory's name")


def _check_tags(settings: AppSettings) -> None:
    for name, value in settings.client_tags.items():
        if not isinstance(value, str):
            raise ConfigError(f"client_tags cannot have {name!r}: {value!r}: set a text.")
    missing = [
        tag for tag in settings.rack_aware_assignment_tags if tag not in settings.client_tags
    ]
    if missing:
        raise ConfigError(
            f"rack_aware_assignment_tags cannot have {missing[0]!r}: client_tags of this instance "
            "does not have that tag."
        )


def _is_security(name: str) -> bool:
    return name == "security" or names.dotted(name) in secured.SECURITY_OPTIONS


def _security(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the options of TLS and SASL; raise ConfigError if a connection cannot use them."""
    combined = options.get("security") or {}
    for name in combined:
        if name not in secured.SECURITY_OPTIONS:
            raise ConfigError(
                f"security cannot have {name!r}: it has options of TLS and SASL only."
            )
    single = {names.dotted(name): value for name, value in options.items()}
    results = secured.security_options({**combined, **single})
    secured.security_of(results)
    return results


def _check_numbers(options: Mapping[str, Any]) -> None:
    for name, least in _LEAST.items():
        value = options.get(name, least)
        if name == "num_stream_threads" and value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ConfigError(
                f"{name} cannot be {value!r}: set a whole number of at least {least}."
            )


def _check_server(server: str) -> None:
    host, _, port = server.rpartition(":")
    if server and not (host and is_port(port)):
        raise ConfigError(f"application_server cannot be {server!r}: give host:port.")


def check_state_dir(state_dir: str) -> None:
    """Create the state directory unless it is a URL. Raises ConfigError if it is not writable."""
    if "://" in state_dir:
        return
    try:
        # The state has the values of records.
        os.makedirs(state_dir, mode=0o700, exist_ok=True)
        is_open = os.access(state_dir, os.W_OK | os.X_OK)
        reason = "no permission to write"
    except OSError as error:
        is_open, reason = False, error.strerror or str(error)
    if not is_open:
        raise ConfigError(
            f"state_dir cannot be {state_dir!r} ({reason}): set a directory that is writable."
        )


def check_application_id(application_id: str) -> str:
    """Return the id. Raises ConfigError if it cannot be part of topic and directory names."""
    return check_id("application_id", application_id, "topic names")


def check_id(option: str, value: str, owner: str) -> str:
    """Return the value. Raises ConfigError if it cannot be part of a name in Kafka or of a file."""
    allowed = value.replace("-", "").replace("_", "").replace(".", "")
    if not allowed.isascii() or not allowed.isalnum():
        raise ConfigError(
            f"{option} cannot be {value!r}: it is part of {owner}, so it may only contain letters, "
            "digits, dots, dashes and underscores."
        )
    return value
