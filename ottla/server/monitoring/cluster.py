"""The broker as a whole: state, controller, connections, waiting requests, request memory, disks."""

from collections import Counter
from collections.abc import Iterator

from ottla.cluster.image import NO_LEADER
from ottla.cluster.names import GROUP_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from ottla.metrics.exposition import Family, Sample, counter, gauge, labels
from ottla.server.context import Broker
from ottla.server.monitoring.sources import Pace, Sources, Stage
from ottla.storage.cleaner.cleaning import Cleaner

_SESSIONS = "kafka_server_fetchsessioncache_"
# kafka.server.BrokerState
_BROKER_STATES = {Stage.STARTING: 1, Stage.RUNNING: 3, Stage.STOPPING: 7}


def broker(node: Sources) -> list[Family]:
    """Return the families that are available from the beginning of the start on."""
    return [
        gauge(
            "kafka_server_kafkaserver_brokerstate",
            "1 starting, 3 running, 7 stopping.",
            _BROKER_STATES[node.stage],
        ),
        counter(
            "ottla_background_task_failures_total",
            "Unexpected exceptions of background tasks, which are restarted.",
            [(labels(task=kind), count) for kind, count in node.task_failures().items()],
        ),
        *_connections(node),
    ]


def _connections(node: Sources) -> Iterator[Family]:
    prefix = "kafka_server_socket_server_metrics_"
    rows = [(labels(listener=endpoint.name), endpoint) for endpoint in node.endpoints]
    yield gauge(
        f"{prefix}connection_count",
        "Open connections.",
        [(written, endpoint.connections_count) for written, endpoint in rows],
    )
    yield counter(
        f"{prefix}connection_creation_total",
        "Connections that were opened.",
        [(written, endpoint.accepted_count) for written, endpoint in rows],
    )
    yield counter(
        f"{prefix}connection_close_total",
        "Connections that were closed.",
        [
            (written, endpoint.accepted_count - endpoint.connections_count)
            for written, endpoint in rows
        ],
    )
    yield from _descriptors(node)
    prefix = "kafka_network_socketserver_memorypool"
    budget = node.budget
    yield gauge(f"{prefix}used", "Bytes of unfinished requests.", budget.held_bytes)
    yield gauge(f"{prefix}available", "Bytes left.", budget.limit_bytes - budget.held_bytes)


def _descriptors(node: Sources) -> Iterator[Family]:
    limit = node.descriptors
    if limit is None:
        return
    yield gauge(
        "ottla_connections_max",
        "Limit of connections that leaves enough descriptors for files.",
        limit.connections_max,
    )
    yield counter(
        "ottla_connections_closed_for_descriptors_total",
        "Idle connections that were closed for new ones.",
        limit.closed_count,
    )
    yield counter(
        "ottla_connections_refused_for_descriptors_total",
        "New connections that were closed because no other was idle.",
        limit.refused_count,
    )


async def controller(broker: Broker, pace: Pace) -> list[Family]:
    """Return KafkaController's figures; those of the cluster only if this controller is active."""
    image, is_active = broker.image, broker.controller.is_active
    offline = not_preferred = count = 0
    rows: list[Sample] = []
    for topic in image.topics.values():
        rows.append((labels(topic=topic.name), len(topic.partitions)))
        for partition in topic.partitions:
            await pace.rest()
            count += 1
            offline += partition.leader == NO_LEADER
            not_preferred += partition.leader != partition.replicas[0]
    prefix = "kafka_controller_kafkacontroller_"
    scale = int(is_active)
    return [
        gauge(f"{prefix}activecontrollercount", "This broker is the controller.", scale),
        gauge(f"{prefix}offlinepartitionscount", "Partitions without leader.", offline * scale),
        gauge(
            f"{prefix}preferredreplicaimbalancecount",
            "Partitions whose leader is not the preferred replica.",
            not_preferred * scale,
        ),
        gauge(f"{prefix}globaltopiccount", "Topics.", len(image.topics) * scale),
        gauge(f"{prefix}globalpartitioncount", "Partitions.", count * scale),
        counter(
            "kafka_controller_controllerstats_uncleanleaderelections_total",
            "Unclean leader elections by this broker.",
            broker.controller.unclean_elections_count,
        ),
        gauge("kafka_brokers", "Brokers of the cluster.", len(image.brokers)),
        gauge(
            "kafka_broker_info",
            "Brokers of the cluster, by id and address.",
            [
                (labels(id=member.id, address=f"{member.host}:{member.port}"), 1)
                for member in image.brokers.values()
            ],
        ),
        gauge("kafka_topic_partitions", "Partitions of a topic.", rows),
    ]


def waiting(broker: Broker) -> list[Family]:
    """Return the waiting work of this broker: requests, fetch sessions, transactions."""
    states = Counter(transaction.state.shown for transaction in broker.transactions.transactions())
    sessions = broker.fetch_sessions
    return [
        counter(
            "ottla_coordinator_skipped_records_total",
            "Records of internal topics that a coordinator could not read.",
            [
                (labels(topic=GROUP_OFFSETS_TOPIC), broker.groups.skipped_count),
                (labels(topic=TRANSACTION_STATE_TOPIC), broker.transactions.skipped_count),
            ],
        ),
        gauge(
            "kafka_server_delayedoperationpurgatory_purgatorysize",
            "Waiting requests, by kind.",
            [
                (labels(delayedoperation=kind), count)
                for kind, count in broker.replicas.delayed.waiting_counts.items()
            ],
        ),
        gauge(f"{_SESSIONS}numincrementalfetchsessions", "Fetch sessions.", len(sessions)),
        gauge(
            f"{_SESSIONS}numincrementalfetchpartitionscached",
            "Partitions in fetch sessions.",
            sessions.partitions_count,
        ),
        counter(
            f"{_SESSIONS}incrementalfetchsessionevictions_total",
            "Fetch sessions that were evicted.",
            sessions.evictions_count,
        ),
        gauge(
            "ottla_transactions",
            "Transactional ids, by state.",
            [(labels(state=state), count) for state, count in sorted(states.items())],
        ),
    ]


def log_cleaner(cleaner: Cleaner, now: float) -> list[Family]:
    """Return the figures of compaction; `now` is a time of the monotonic clock (s)."""
    share = 100 * cleaner.kept_bytes / cleaner.read_bytes if cleaner.read_bytes else 0.0
    return [
        gauge(
            "kafka_log_logcleanermanager_time_since_last_run_ms",
            "Time since the last search for dirty logs.",
            int((now - cleaner.looked_at) * 1000),
        ),
        gauge(
            "kafka_log_logcleanermanager_uncleanable_partitions_count",
            "Logs that are damaged.",
            cleaner.uncleanable_count,
        ),
        gauge("kafka_log_logcleaner_cleaner_recopy_percent", "Bytes that stayed.", share),
        counter("ottla_log_cleaner_rounds_total", "Logs compacted.", cleaner.passes_count),
        counter("ottla_log_cleaner_read_bytes_total", "Bytes before.", cleaner.read_bytes),
        counter("ottla_log_cleaner_kept_bytes_total", "Bytes after.", cleaner.kept_bytes),
    ]


def directories(broker: Broker) -> list[Family]:
    """Return the log directories: their state and free space."""
    log_dirs = broker.replicas.directories.directories()
    total: list[Sample] = []
    usable: list[Sample] = []
    for directory in log_dirs:
        if directory.failure is not None:
            continue
        try:
            space = directory.space()
        except OSError:
            # The directory has disappeared; the next write to it takes it offline.
            continue
        total.append((labels(path=directory.path), space.total_bytes))
        usable.append((labels(path=directory.path), space.usable_bytes))
    states = [
        (labels(logdirectory=log_dir.path), int(log_dir.failure is not None))
        for log_dir in log_dirs
    ]
    return [
        gauge(
            "kafka_log_logmanager_offlinelogdirectorycount",
            "Log directories that have failed.",
            sum(state for _, state in states),
        ),
        gauge("kafka_log_logmanager_logdirectoryoffline", "The directory has failed.", states),
        gauge(
            "ottla_damaged_partitions",
            "Logs with damaged records, or whose maintenance failed; they are online.",
            len(broker.replicas.directories.damaged()),
        ),
        gauge("ottla_log_directory_total_bytes", "Size of the device.", total),
        gauge("ottla_log_directory_usable_bytes", "Free bytes of the device.", usable),
    ]
