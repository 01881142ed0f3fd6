"""What an application is told besides its topology: Kafka Streams' options in snake_case, and those of Spark."""

import dataclasses
import difflib
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ottla.base.errors import ConfigError
from ottla.streams.processor.api import TimestampExtractor
from ottla.streams.serdes import Serde, Serdes, check_serdes
from ottla.streams.settings.foreign_options import instead_of
from ottla.streams.stores.builders import DefaultSerdes

AT_LEAST_ONCE = "at_least_once"
EXACTLY_ONCE = "exactly_once_v2"
# The least that numbers may be.
_LEAST = {
    "commit_interval_ms": 0,
    "max_records": 1,
    "replication_factor": -1,
    "session_timeout_ms": 1,
    "heartbeat_interval_ms": 1,
    "emit_interval_ms": 0,
    "tick_interval_ms": 1,
    "num_stream_threads": 1,
    "statestore_cache_max_bytes": 0,
}


def _default_state_dir() -> str:
    return os.path.join(tempfile.gettempdir(), "ottla-streams")


@dataclass(frozen=True, kw_only=True)
class AppSettings:
    """The options of KafkaStreams; `read` makes one of keyword arguments. Times are in ms."""

    processing_guarantee: str = AT_LEAST_ONCE
    state_dir: str = field(default_factory=_default_state_dir)
    """Where checkpoints are: a folder, or a URL of Hadoop's that all instances reach. As with Kafka Streams the default
    is below the folder for temporary files: name another one for what must last."""
    commit_interval_ms: int = 100
    """The least time from micro-batch to micro-batch."""
    max_records: int = 100_000
    """How many records a micro-batch takes at most."""
    default_key_serde: Serde[Any] = field(default_factory=Serdes.json)
    default_value_serde: Serde[Any] = field(default_factory=Serdes.json)
    default_timestamp_extractor: TimestampExtractor | None = None
    """Gives the time of records of sources that have no extractor of their own."""
    statestore_cache_max_bytes: int = 0
    """How much the caches of a task's tables hold, so that of a key only its last update in a micro-batch is emitted; 0: all are."""
    replication_factor: int = -1
    """Of internal topics; -1: as the brokers say."""
    session_timeout_ms: int = 10_000
    """After how long an instance that is not heard of is replaced."""
    heartbeat_interval_ms: int = 1_000
    application_server: str = ""
    """Where this instance answers others (host:port), for its metadata."""
    emit_interval_ms: int = 0
    """How often closed windows are looked for; 0: at every record."""
    tick_interval_ms: int = 1_000
    """The resolution of punctuators on the wall clock."""
    num_stream_threads: int | None = None
    """How many cores a local master has; None: all."""
    exception_handlers: Any = None
    """What becomes of records that cannot be read, processed or written (handlers.py)."""
    shows_progress: bool | None = None
    """Whether a line on standard error shows how it gets on; None: on a terminal."""
    metrics_listener: str = ""
    """Where this instance serves /metrics in Prometheus' text format, as host:port; empty: nowhere."""
    spark: Any = None
    """A Spark session to use; without one it is made, and stopped with the application."""
    master: str | None = None
    """A cluster's master URL, or local[N]."""
    spark_settings: Mapping[str, str] = field(default_factory=dict)
    py_files: Sequence[str] = ()
    """Files (.py, .zip) with the topology's modules, for executors that do not have them."""
    source_options: Mapping[str, str] = field(default_factory=dict)
    sink_options: Mapping[str, str] = field(default_factory=dict)
    app_configs: Mapping[str, Any] = field(default_factory=dict)
    """Options of the application's own, which processors read with `context.app_configs()`."""

    @property
    def defaults(self) -> DefaultSerdes:
        """The serdes of what was given none."""
        return DefaultSerdes(self.default_key_serde, self.default_value_serde)

    @property
    def is_exactly_once(self) -> bool:
        """Whether outputs are written in transactions."""
        return self.processing_guarantee == EXACTLY_ONCE

    def checkpoint(self, application_id: str) -> str:
        """Return where the checkpoint of an application is."""
        return checkpoint_of(self.state_dir, application_id)


def checkpoint_of(state_dir: str | None, application_id: str) -> str:
    """Return where the checkpoint of an application is; None is the default folder."""
    return f"{(state_dir or _default_state_dir()).rstrip('/')}/{application_id}"


def known_options() -> tuple[str, ...]:
    """Return the names of all keyword arguments of KafkaStreams."""
    fields = dataclasses.fields(AppSettings)
    return ("application_id", "bootstrap_servers", *(each.name for each in fields))


def check_names(words: Iterable[str]) -> None:
    """ConfigError for a keyword argument that KafkaStreams does not have, with the one that is meant."""
    known = known_options()
    for name in words:
        if name in known:
            continue
        instead = instead_of(name)
        if instead is not None:
            raise ConfigError(
                f"The option {name!r} of Kafka Streams has no effect on Spark: {instead}."
            )
        near = difflib.get_close_matches(name.replace(".", "_"), known, n=1)
        hint = f"is {near[0]} meant?" if near else f"there are: {', '.join(known[2:])}."
        raise ConfigError(f"There is no option {name} of KafkaStreams; {hint}")


def read_settings(words: Mapping[str, Any]) -> AppSettings:
    """Return settings of keyword arguments; ConfigError for what is unknown or cannot be."""
    check_names(words)
    _check_numbers(words)
    settings = AppSettings(**words)
    check_serdes(settings.default_key_serde, settings.default_value_serde)
    _check_server(settings.application_server)
    if settings.processing_guarantee not in (AT_LEAST_ONCE, EXACTLY_ONCE):
        raise ConfigError(
            f"processing_guarantee cannot be {settings.processing_guarantee!r}: choose "
            f"{AT_LEAST_ONCE} or {EXACTLY_ONCE}."
        )
    return settings


def _check_numbers(words: Mapping[str, Any]) -> None:
    for name, least in _LEAST.items():
        value = words.get(name, least)
        if name == "num_stream_threads" and value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ConfigError(f"{name} cannot be {value!r}: give a whole number from {least} on.")


def _check_server(server: str) -> None:
    host, _, port = server.rpartition(":")
    if server and not (host and port.isascii() and port.isdigit()):
        raise ConfigError(f"application_server cannot be {server!r}: give host:port.")


def check_state_dir(state_dir: str) -> None:
    """Make the folder where checkpoints are, unless it is a URL; ConfigError where it cannot be written."""
    if "://" in state_dir:
        return
    try:
        os.makedirs(state_dir, exist_ok=True)
        is_open = os.access(state_dir, os.W_OK | os.X_OK)
        reason = "it is not ours to write"
    except OSError as error:
        is_open, reason = False, error.strerror or str(error)
    if not is_open:
        raise ConfigError(
            f"state_dir cannot be {state_dir!r} ({reason}): name a folder that can be written."
        )


def check_application_id(application_id: str) -> str:
    """Return it; ConfigError where internal topics and folders could not be named after it."""
    allowed = application_id.replace("-", "").replace("_", "").replace(".", "")
    if not allowed.isascii() or not allowed.isalnum():
        raise ConfigError(
            f"application_id cannot be {application_id!r}: it names topics, so that it is of letters, "
            "digits, dots, dashes and underscores."
        )
    return application_id
