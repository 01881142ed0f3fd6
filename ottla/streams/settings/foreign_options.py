"""Options of Kafka Streams that do not apply to an engine, and their alternatives."""

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ottla.base.loading import deferred_module

if TYPE_CHECKING:
    from ottla.client.security import options as secured
else:
    secured = deferred_module("ottla.client.security.options")

SPARK, LOCAL = "spark", "local"
"""The engines of KafkaStreams."""

_METRICS = "set metrics_listener for /metrics, or read progress() and metrics()"
_CACHE = "set statestore.cache.max.bytes"
_WINDOWED = "give the serde to WindowedSerdes.time_windowed_serde_from(…)"
_STATE = (
    "Spark keeps state in the checkpoint below state.dir; start a second instance, which takes over"
)
_BATCHES = "Spark reads in micro-batches; set max_records and commit.interval.ms"
_ASSIGNED = "Spark assigns partitions to its cores; set num.stream.threads or master"
_ROCKSDB = "Spark has RocksDB's options in spark_settings, spark.sql.streaming.stateStore.rocksdb.…"
_BUFFERS = "each partition has at most 6000 records that wait"
_GROUP = "the group has the classic protocol, with an assignor of its own"
_CLIENTS = {
    SPARK: "set options of the source and the sink with source_options and sink_options",
    LOCAL: "the clients have the defaults of librdkafka",
}
_OF_METRICS = (
    "metrics.recording.level",
    "metrics.num.samples",
    "metrics.sample.window.ms",
    "metric.reporters",
    "built.in.metrics.version",
    "enable.metrics.push",
    "log.summary.interval.ms",
)
_OF_CLIENTS = (
    "client.id",
    "request.timeout.ms",
    "retry.backoff.ms",
    "connections.max.idle.ms",
    "metadata.max.age.ms",
    "default.client.supplier",
)
_OF_WINDOWS = ("window.size.ms", "windowed.inner.class.serde")
_KAFKA: dict[str, dict[str, tuple[str, ...]]] = {
    SPARK: {
        _STATE: (
            "num.standby.replicas",
            "acceptable.recovery.lag",
            "max.warmup.replicas",
            "probing.rebalance.interval.ms",
            "state.cleanup.delay.ms",
            "allow.os.group.write.access",
        ),
        _BATCHES: (
            "poll.ms",
            "buffered.records.per.partition",
            "input.buffer.max.bytes",
            "max.poll.interval.ms",
            "task.timeout.ms",
            "repartition.purge.interval.ms",
        ),
        _METRICS: _OF_METRICS,
        _CLIENTS[SPARK]: _OF_CLIENTS,
        _ASSIGNED: (
            "group.protocol",
            "partition.grouper",
            "task.assignor.class",
            "rack.aware.assignment.strategy",
            "rack.aware.assignment.tags",
            "upgrade.from",
        ),
        _ROCKSDB: ("rocksdb.config.setter", "default.dsl.store", "dsl.store.suppliers.class"),
        _CACHE: ("cache.max.bytes.buffering",),
        _WINDOWED: _OF_WINDOWS,
    },
    LOCAL: {
        "only the user of the process can read its state": ("allow.os.group.write.access",),
        _BUFFERS: ("poll.ms", "buffered.records.per.partition", "input.buffer.max.bytes"),
        "a worker waits until the brokers respond": ("task.timeout.ms",),
        "processed records are deleted every 30 s": ("repartition.purge.interval.ms",),
        _METRICS: _OF_METRICS,
        _CLIENTS[LOCAL]: _OF_CLIENTS,
        _GROUP: ("group.protocol", "partition.grouper", "task.assignor.class", "upgrade.from"),
        "set rack.aware.assignment.tags": ("rack.aware.assignment.strategy",),
        "state is in SQLite, not in RocksDB": ("rocksdb.config.setter",),
        "set default.dsl.store": ("dsl.store.suppliers.class",),
        _CACHE: ("cache.max.bytes.buffering",),
        _WINDOWED: _OF_WINDOWS,
    },
}
_INSTEAD = {
    engine: {name: instead for instead, names in rows.items() for name in names}
    for engine, rows in _KAFKA.items()
}
_PREFIXES = (
    "main.consumer.",
    "restore.consumer.",
    "global.consumer.",
    "consumer.",
    "producer.",
    "admin.",
)
# An application's own option may look a little like one of ours; a typo looks very much like it.
_ALIKE = 0.88


def alternative_to(name: str, engine: str) -> str | None:
    """Return the alternative to an option of Kafka Streams that an engine does not have; None for
    other names.
    """
    dotted = name.replace("_", ".")
    if dotted.startswith(_PREFIXES):
        return _CLIENTS.get(engine)
    return _INSTEAD.get(engine, {}).get(dotted)


def no_effect(name: str, engine: str, instead: str) -> str:
    """Return the sentence of an error about an option that an engine does not have."""
    place = "on Spark" if engine == SPARK else f"with engine={engine!r}"
    return f"The option {name!r} of Kafka Streams has no effect {place}: {instead}."


def closest_option(name: str, known: Iterable[str]) -> str | None:
    """Return the known option that `name` is probably a misspelling of; None if none is similar."""
    options = (*known, *_INSTEAD[SPARK], *secured.SECURITY_OPTIONS)
    plain = {option.replace(".", "_"): option for option in options}
    near = difflib.get_close_matches(name.replace(".", "_"), plain, n=1, cutoff=_ALIKE)
    return plain[near[0]] if near else None


def similar_name(name: str) -> str:
    """Return the advice for an own option whose name is similar to a known one."""
    return (
        "Set an option of the application's own with a similar name in "
        f"app_configs={{{name!r}: …}}."
    )
