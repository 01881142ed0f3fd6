"""The broker options of the HTTP port for metrics and health."""

from collections.abc import Sequence

from ottla.base.options import OptionType, Scope, is_port
from ottla.cluster.options.option_rows import Rows
from ottla.metrics.dialects import CONFLUENT, JMX_EXPORTER, STRIMZI_REPORTER


def parse_address(text: str) -> tuple[str, int] | None:
    """Return host and port of `host:port`; None if the text is not of this form."""
    host, colon, port = text.rpartition(":")
    if not (host and colon and is_port(port)):
        return None
    return host.strip("[]"), int(port)


def check_address(value: str) -> str | None:
    """Return what is wrong with an address; None if it is `host:port`."""
    return None if parse_address(value) else "it must look like host:port"


# Two exporters that are clients of Kafka; the other dialects are renderings of Kafka's own metrics.
KAFKA_EXPORTER = "kafka-exporter"
KAFKA_LAG_EXPORTER = "kafka-lag-exporter"
DIALECTS = (JMX_EXPORTER, STRIMZI_REPORTER, CONFLUENT, KAFKA_EXPORTER, KAFKA_LAG_EXPORTER)
DIALECTS_DEFAULT = (JMX_EXPORTER, KAFKA_EXPORTER)


def check_dialects(names: Sequence[str]) -> str | None:
    """Return what is wrong with a list of dialects; None if all are known."""
    unknown = [name for name in names if name not in DIALECTS]
    dialects = ", ".join(DIALECTS)
    return f"{unknown[0]!r} is not a dialect: choose from {dialects}" if unknown else None


_row = Rows(Scope.BROKER, dynamic=False).row

ROWS = (
    _row(
        "metrics.listener",
        OptionType.STRING,
        None,
        "Ottla's own: host:port that serves /metrics for Prometheus, /jmx, /healthz and /lag over "
        "HTTP (docs/monitoring.md). Off by default. Every client that can reach it can read the names "
        "of topics and groups.",
        check=check_address,
    ),
    _row(
        "metrics.allowed.hosts",
        OptionType.LIST,
        [],
        "Ottla's own: further names in the Host header of requests to metrics.listener, such as "
        "broker1.example.org or *.example.org; * accepts every name. Addresses, names without a dot, "
        "and the hosts of metrics.listener and advertised.listeners are accepted without it.",
    ),
    _row(
        "metrics.dialects",
        OptionType.LIST,
        list(DIALECTS_DEFAULT),
        "Ottla's own: the programs whose metric names /metrics uses: jmx-exporter, "
        "strimzi-reporter, confluent, kafka-exporter, kafka-lag-exporter.",
        check=check_dialects,
    ),
    _row(
        "metrics.jvm.names",
        OptionType.BOOLEAN,
        False,
        "Ottla's own: serve memory, threads and garbage collections of the process also as "
        "jvm_memory_used_bytes, jvm_threads_current and jvm_gc_collection_seconds, for dashboards "
        "made for a JVM.",
    ),
    _row(
        "search.enable",
        OptionType.BOOLEAN,
        False,
        "Ottla's own: serve /search at metrics.listener (docs/http.md). Every client that can reach "
        "the port can then read the records of every topic: it has no authentication.",
    ),
)
