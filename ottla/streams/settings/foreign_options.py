"""Options of Kafka Streams that do not apply to an application on Spark, and their alternatives."""

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ottla.base.loading import deferred_module

if TYPE_CHECKING:
    from ottla.client.security import options as secured
else:
    secured = deferred_module("ottla.client.security.options")

_STATE = (
    "Spark keeps state in the checkpoint below state.dir; start a second instance, which takes over"
)
_BATCHES = "Spark reads in micro-batches; set max_records and commit.interval.ms"
_METRICS = "set metrics_listener for /metrics, or read progress() and metrics()"
_CLIENTS = "set options of the source and the sink with source_options and sink_options"
_ASSIGNED = "Spark assigns partitions to its cores; set num.stream.threads or master"
_ROCKSDB = "Spark has RocksDB's options in spark_settings, spark.sql.streaming.stateStore.rocksdb.…"
_KAFKA: dict[str, tuple[str, ...]] = {
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
        "task.timeout.ms",
        "repartition.purge.interval.ms",
    ),
    _METRICS: (
        "metrics.recording.level",
        "metrics.num.samples",
        "metrics.sample.window.ms",
        "metric.reporters",
        "built.in.metrics.version",
        "enable.metrics.push",
        "log.summary.interval.ms",
    ),
    _CLIENTS: (
        "client.id",
        "request.timeout.ms",
        "retry.backoff.ms",
        "connections.max.idle.ms",
        "metadata.max.age.ms",
        "default.client.supplier",
    ),
    _ASSIGNED: (
        "group.protocol",
        "partition.grouper",
        "task.assignor.class",
        "rack.aware.assignment.strategy",
        "rack.aware.assignment.tags",
        "upgrade.from",
    ),
    _ROCKSDB: ("rocksdb.config.setter", "default.dsl.store", "dsl.store.suppliers.class"),
    "set statestore.cache.max.bytes": ("cache.max.bytes.buffering",),
    "give the serde to WindowedSerdes.time_windowed_serde_from(…)": (
        "window.size.ms",
        "windowed.inner.class.serde",
    ),
}
_INSTEAD = {name: instead for instead, names in _KAFKA.items() for name in names}
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


def alternative_to(name: str) -> str | None:
    """Return the alternative to an option of Kafka Streams; None for other names."""
    dotted = name.replace("_", ".")
    if dotted.startswith(_PREFIXES):
        return _CLIENTS
    return _INSTEAD.get(dotted)


def closest_option(name: str, known: Iterable[str]) -> str | None:
    """Return the known option that `name` is probably a misspelling of; None if none is similar."""
    options = (*known, *_INSTEAD, *secured.SECURITY_OPTIONS)
    plain = {option.replace(".", "_"): option for option in options}
    near = difflib.get_close_matches(name.replace(".", "_"), plain, n=1, cutoff=_ALIKE)
    return plain[near[0]] if near else None


def similar_name(name: str) -> str:
    """Return the advice for an own option whose name is similar to a known one."""
    return (
        "Set an option of the application's own with a similar name in "
        f"app_configs={{{name!r}: …}}."
    )
