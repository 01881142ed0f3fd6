"""The panels of Ottla's Grafana dashboard: what each shows, and where it stands.

Metrics have the names of the default dialects. Rates use Grafana's `$__rate_interval`. `$job`,
`$broker`, `$topic` and `$group` are variables of the dashboard.
"""

from collections.abc import Iterator
from typing import NamedTuple

_BROKERS = 'job=~"$job",instance=~"$broker"'
# Values of the cluster, which have the cluster's name as instance.
_CLUSTER = 'job=~"$job"'
_RATE = "[$__rate_interval]"


class Query(NamedTuple):
    """An expression and the name of its lines."""

    expression: str
    legend: str = ""


class Panel(NamedTuple):
    """One panel: a number (`stat`) or lines over time; `bad_from` colours a number."""

    title: str
    unit: str
    queries: tuple[Query, ...]
    is_stat: bool = False
    bad_from: float | None = None
    # The lowest good value; below it a number is coloured.
    good_from: float | None = None
    is_stacked: bool = False
    help: str = ""


class PanelRow(NamedTuple):
    """A row of the dashboard, which can be folded."""

    title: str
    panels: tuple[Panel, ...]


def _stat(title: str, expression: str, unit: str = "short", **limits: float) -> Panel:
    return Panel(title, unit, (Query(expression),), is_stat=True, **limits)  # type: ignore[arg-type]


def _topics(name: str) -> str:
    return f'kafka_server_brokertopicmetrics_{name}_total{{{_BROKERS},topic=~"$topic",topic!=""}}{_RATE}'


def rows() -> Iterator[PanelRow]:
    """Yield the rows, from the state of the cluster down to the process."""
    yield _health()
    yield _traffic()
    yield _latency()
    yield _groups()
    yield _replication()
    yield _storage()
    yield _process()


def _health() -> PanelRow:
    manager = "kafka_server_replicamanager_"
    controller = "kafka_controller_kafkacontroller_"
    return PanelRow(
        "Health",
        (
            _stat("Brokers", f"max(kafka_brokers{{{_CLUSTER}}})"),
            _stat(
                "Controllers",
                f"sum({controller}activecontrollercount{{{_CLUSTER}}})",
                good_from=1,
                bad_from=2,
            ),
            _stat(
                "Offline partitions",
                f"sum({controller}offlinepartitionscount{{{_CLUSTER}}})",
                bad_from=1,
            ),
            _stat(
                "Under min.insync.replicas",
                f"sum({manager}underminisrpartitioncount{{{_CLUSTER}}})",
                bad_from=1,
            ),
            _stat(
                "Under-replicated",
                f"sum({manager}underreplicatedpartitions{{{_CLUSTER}}})",
                bad_from=1,
            ),
            _stat(
                "Failed log directories",
                f"sum(kafka_log_logmanager_offlinelogdirectorycount{{{_CLUSTER}}})",
                bad_from=1,
            ),
            _stat(
                "Largest lag of a group",
                f"max(kafka_consumergroup_group_max_lag_seconds{{{_CLUSTER}}})",
                "s",
                bad_from=300,
            ),
            _stat(
                "Least free disk",
                f"min(ottla_log_directory_usable_bytes{{{_CLUSTER}}}"
                f" / ottla_log_directory_total_bytes{{{_CLUSTER}}})",
                "percentunit",
                good_from=0.15,
            ),
        ),
    )


def _traffic() -> PanelRow:
    requests = "kafka_network_requestmetrics_"
    return PanelRow(
        "Traffic",
        (
            Panel(
                "Bytes in and out",
                "Bps",
                (
                    Query(f"sum(rate({_topics('bytesin')}))", "in"),
                    Query(f"sum(rate({_topics('bytesout')}))", "out"),
                ),
            ),
            Panel(
                "Records in, by topic",
                "cps",
                (Query(f"topk(10, sum by (topic) (rate({_topics('messagesin')})))", "{{topic}}"),),
                is_stacked=True,
            ),
            Panel(
                "Requests",
                "reqps",
                (
                    Query(
                        f"topk(10, sum by (request) (rate({requests}requests_total{{{_BROKERS}}}{_RATE})))",
                        "{{request}}",
                    ),
                ),
            ),
            Panel(
                "Errors",
                "cps",
                (
                    Query(
                        f"sum by (request, error) (rate({requests}errors_total{{{_BROKERS}}}{_RATE})) > 0",
                        "{{request}} {{error}}",
                    ),
                    Query(f"sum(rate({_topics('bytesrejected')})) > 0", "bytes rejected"),
                ),
                help="Error codes in responses. Some are normal: a rebalance of a group, a moved leader.",
            ),
        ),
    )


def _latency() -> PanelRow:
    def quantile(request: str, share: str) -> Query:
        selected = f'{_BROKERS},request="{request}",quantile="{share}"'
        name = f"kafka_network_requestmetrics_totaltimems{{{selected}}}"
        return Query(f"max({name})", f"{request} {share}")

    idle = "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"
    lag = "ottla_event_loop_lag_seconds_bucket"
    return PanelRow(
        "Latency and load",
        (
            Panel(
                "Produce",
                "ms",
                (quantile("Produce", "0.5"), quantile("Produce", "0.99")),
                help="From a request to its response, the slowest broker. acks=all waits for replicas.",
            ),
            Panel(
                "Fetch",
                "ms",
                (quantile("Fetch", "0.5"), quantile("Fetch", "0.99")),
                help="Fetches wait for records, up to fetch.max.wait.ms.",
            ),
            Panel(
                "Idle share of the event loop",
                "percentunit",
                (Query(f"{idle}{{{_BROKERS}}}", "{{instance}}"),),
            ),
            Panel(
                "Lag of the event loop (99 %)",
                "s",
                (
                    Query(
                        f"histogram_quantile(0.99, sum by (instance, le) (rate({lag}{{{_BROKERS}}}{_RATE})))",
                        "{{instance}}",
                    ),
                ),
            ),
        ),
    )


def _lag_seconds() -> Panel:
    selected = f'{_CLUSTER},group=~"$group",topic=~"$topic"'
    lag = f"max by (group) (kafka_consumergroup_group_lag_seconds{{{selected}}})"
    return Panel(
        "Lag in seconds",
        "s",
        (Query(lag, "{{group}}"),),
        help="Age of the first record that the group has not consumed, from the log itself.",
    )


def _groups() -> PanelRow:
    selected = f'{_CLUSTER},consumergroup=~"$group",topic=~"$topic"'
    prefix = "kafka_consumergroup_"
    return PanelRow(
        "Groups",
        (
            _lag_seconds(),
            Panel(
                "Lag in records",
                "short",
                (
                    Query(
                        f"sum by (consumergroup, topic) ({prefix}lag_sum{{{selected}}})",
                        "{{consumergroup}} {{topic}}",
                    ),
                ),
            ),
            Panel(
                "Consumed records",
                "cps",
                (
                    Query(
                        f"sum by (consumergroup) (rate({prefix}current_offset_sum{{{selected}}}{_RATE}))",
                        "{{consumergroup}}",
                    ),
                ),
            ),
            Panel(
                "Members",
                "short",
                (
                    Query(
                        f'{prefix}members{{{_CLUSTER},consumergroup=~"$group"}}',
                        "{{consumergroup}}",
                    ),
                ),
            ),
        ),
    )


def _replication() -> PanelRow:
    topics = "kafka_server_brokertopicmetrics_"
    manager = "kafka_server_replicamanager_"
    return PanelRow(
        "Replication and coordination",
        (
            Panel(
                "Bytes between brokers",
                "Bps",
                (
                    Query(
                        f"sum(rate({topics}replicationbytesout_total{{{_BROKERS}}}{_RATE}))", "out"
                    ),
                    Query(
                        f"sum(rate({topics}replicationbytesin_total{{{_BROKERS}}}{_RATE}))", "in"
                    ),
                ),
            ),
            Panel(
                "Largest lag of a follower",
                "short",
                (
                    Query(
                        f"kafka_server_replicafetchermanager_maxlag{{{_BROKERS}}}", "{{instance}}"
                    ),
                ),
            ),
            Panel(
                "ISR changes",
                "short",
                (
                    Query(
                        f"sum(increase({manager}isrshrinks_total{{{_BROKERS}}}{_RATE}))", "shrinks"
                    ),
                    Query(
                        f"sum(increase({manager}isrexpands_total{{{_BROKERS}}}{_RATE}))", "expands"
                    ),
                ),
            ),
            Panel(
                "Latency of the coordination (99 %)",
                "ms",
                (
                    Query(
                        "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms"
                        f'{{{_BROKERS},quantile="0.99"}}',
                        "{{instance}}",
                    ),
                ),
            ),
        ),
    )


def _storage() -> PanelRow:
    return PanelRow(
        "Storage",
        (
            Panel(
                "Size by topic",
                "bytes",
                (
                    Query(
                        f'topk(10, sum by (topic) (kafka_log_log_size{{{_BROKERS},topic=~"$topic"}}))',
                        "{{topic}}",
                    ),
                ),
                is_stacked=True,
            ),
            Panel(
                "Free space",
                "bytes",
                (
                    Query(
                        f"ottla_log_directory_usable_bytes{{{_BROKERS}}}", "{{instance}} {{path}}"
                    ),
                ),
            ),
            Panel(
                "Flushes of logs (99 %)",
                "ms",
                (
                    Query(
                        f'kafka_log_logflushstats_logflushrateandtimems{{{_BROKERS},quantile="0.99"}}',
                        "{{instance}}",
                    ),
                ),
            ),
            Panel(
                "Leaders and replicas",
                "short",
                (
                    Query(
                        f"kafka_server_replicamanager_leadercount{{{_BROKERS}}}",
                        "{{instance}} leaders",
                    ),
                    Query(
                        f"kafka_server_replicamanager_partitioncount{{{_BROKERS}}}",
                        "{{instance}} replicas",
                    ),
                ),
            ),
        ),
    )


def _process() -> PanelRow:
    return PanelRow(
        "Process",
        (
            Panel(
                "Processor",
                "percentunit",
                (Query(f"rate(process_cpu_seconds_total{{{_BROKERS}}}{_RATE})", "{{instance}}"),),
            ),
            Panel(
                "Memory",
                "bytes",
                (Query(f"process_resident_memory_bytes{{{_BROKERS}}}", "{{instance}}"),),
            ),
            Panel(
                "Connections",
                "short",
                (
                    Query(
                        "sum by (instance) "
                        f"(kafka_server_socket_server_metrics_connection_count{{{_BROKERS}}})",
                        "{{instance}}",
                    ),
                ),
            ),
            Panel(
                "Open descriptors",
                "percentunit",
                (
                    Query(
                        f"process_open_fds{{{_BROKERS}}} / process_max_fds{{{_BROKERS}}}",
                        "{{instance}}",
                    ),
                ),
            ),
        ),
    )
