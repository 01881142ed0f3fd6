"""The broker as a whole: state, controller, connections, waiting requests, request memory, disks."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ottla.cluster.image import NO_LEADER, BrokerImage, TopicImage
from ottla.cluster.names import GROUP_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from ottla.metrics.beans import NONE, Bean, Beans, Measurement, Properties, distribution
from ottla.metrics.exposition import Family, Sample, counter, gauge, labels
from ottla.net.endpoint import Endpoint
from ottla.net.receive_budget import ReceiveBudget
from ottla.server.audit.record import AuditEvent
from ottla.server.authentication.identity import LoginCounts
from ottla.server.context import Broker
from ottla.server.monitoring.sources import Pace, Sources, Stage
from ottla.storage.cleaner.cleaning import Cleaner

_server = Beans("kafka.server", "KafkaServer")
_sockets = Beans("kafka.server", "socket-server-metrics")
_socket_server = Beans("kafka.network", "SocketServer")
_controller = Beans("kafka.controller", "KafkaController")
_statistics = Beans("kafka.controller", "ControllerStats")
_purgatory = Beans("kafka.server", "DelayedOperationPurgatory")
_sessions = Beans("kafka.server", "FetchSessionCache")
_log_manager = Beans("kafka.log", "LogManager")
_flush_statistics = Beans("kafka.log", "LogFlushStats")
_cleaner_manager = Beans("kafka.log", "LogCleanerManager")
_cleaner = Beans("kafka.log", "LogCleaner")

_STATE = _server.gauge("BrokerState", "1 starting, 3 running, 7 stopping.")
_CLUSTER_ID = _server.gauge("ClusterId", "The id of the cluster.")
# kafka.server.BrokerState
_BROKER_STATES = {Stage.STARTING: 1, Stage.RUNNING: 3, Stage.STOPPING: 7}


def broker(node: Sources) -> Iterator[Measurement]:
    """Yield the beans that are available from the beginning of the start on."""
    yield _STATE.of(_BROKER_STATES[node.stage])
    yield from _connections(node.endpoints)
    yield from _logins(node.logins, node.clock.monotonic())
    yield from _request_memory(node.budget)


def own(node: Sources) -> list[Family]:
    """Return Ottla's own families that are available from the beginning of the start on."""
    return [
        counter(
            "ottla_background_task_failures_total",
            "Unexpected exceptions of background tasks, which are restarted.",
            [(labels(task=kind), count) for kind, count in node.task_failures().items()],
        ),
        *_descriptors(node),
        *_certificates(node),
        *_strangers(node.endpoints),
        *_slow_logins(node.logins),
    ]


_CONNECTIONS = _sockets.attribute("connection-count", "Open connections.")
_CREATED = _sockets.total("connection-creation-total", "Connections that were opened.")
_CLOSED = _sockets.total("connection-close-total", "Connections that were closed.")


def _connections(endpoints: Sequence[Endpoint]) -> Iterator[Measurement]:
    # The event loop is the only network processor.
    rows = [
        (Properties(listener=endpoint.name, networkProcessor=0), endpoint) for endpoint in endpoints
    ]
    yield _CONNECTIONS.of([(listener, endpoint.connections_count) for listener, endpoint in rows])
    yield _CREATED.of([(listener, endpoint.accepted_count) for listener, endpoint in rows])
    yield _CLOSED.of(
        [
            (listener, endpoint.accepted_count - endpoint.connections_count)
            for listener, endpoint in rows
        ]
    )


# By attribute of the counts.
_LOGINS: dict[str, Bean] = {
    "succeeded": _sockets.total(
        "successful-authentication-total",
        "Clients that have authenticated with SASL, or with TLS if there is no SASL.",
    ),
    "failed": _sockets.total(
        "failed-authentication-total",
        "Clients that have failed to authenticate, and failed TLS handshakes.",
    ),
    "renewed": _sockets.total("successful-reauthentication-total", "Sessions that were renewed."),
    "failed_renewals": _sockets.total(
        "failed-reauthentication-total", "Clients that have failed to renew their session."
    ),
}
_EXPIRED = _sockets.attribute(
    "expired-connections-killed-count", "Connections that were closed after their session."
)
_EXPIRED_ALL = _socket_server.gauge(
    "ExpiredConnectionsKilledCount", "Connections that were closed after their session."
)
_LATENCY_AVG = _sockets.attribute(
    "reauthentication-latency-avg", "Milliseconds to renew a session, on average."
)
_LATENCY_MAX = _sockets.attribute(
    "reauthentication-latency-max", "Milliseconds to renew a session, at most."
)


def _logins(logins: Mapping[str, LoginCounts], now: float) -> Iterator[Measurement]:
    rows = [
        (Properties(listener=name, networkProcessor=0), counts) for name, counts in logins.items()
    ]
    for attribute, bean in _LOGINS.items():
        yield bean.of([(listener, getattr(counts, attribute)) for listener, counts in rows])
    yield _EXPIRED.of([(listener, counts.expired) for listener, counts in rows])
    yield _EXPIRED_ALL.of(sum(counts.expired for _, counts in rows))
    latencies = [(listener, counts.latency_ms.recent(now)) for listener, counts in rows]
    yield _LATENCY_AVG.of([(listener, average) for listener, (average, _) in latencies])
    yield _LATENCY_MAX.of([(listener, largest) for listener, (_, largest) in latencies])


_MEMORY_USED = _socket_server.gauge("MemoryPoolUsed", "Bytes of unfinished requests.")
_MEMORY_LEFT = _socket_server.gauge("MemoryPoolAvailable", "Bytes left.")


def _request_memory(budget: ReceiveBudget) -> Iterator[Measurement]:
    yield _MEMORY_USED.of(budget.held_bytes)
    yield _MEMORY_LEFT.of(budget.limit_bytes - budget.held_bytes)


def _certificates(node: Sources) -> Iterator[Family]:
    certificates = node.certificates
    if certificates is None:
        return
    for name, text, counts in (
        ("renewals", "Certificates that were read again after a change.", certificates.renewals),
        ("failures", "Changed certificates that cannot be used.", certificates.failures),
    ):
        rows = [
            (labels(listener=listener), counts[listener]) for listener in certificates.listeners
        ]
        yield counter(f"ottla_certificate_{name}_total", text, rows)
    yield gauge(
        "ottla_certificate_expiry_timestamp_seconds",
        "When a certificate of the listener's key store expires first, in seconds since the epoch.",
        [(labels(listener=name), time) for name, time in certificates.expiries().items()],
    )


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


def _strangers(endpoints: Sequence[Endpoint]) -> Iterator[Family]:
    if not endpoints:
        return
    # All listeners share them.
    rooms = endpoints[0].rooms
    yield gauge(
        "ottla_unauthenticated_connections",
        "Connections whose clients are not known yet.",
        rooms.connections.count(),
    )
    yield counter(
        "ottla_authentications_timed_out_total",
        "Connections that were closed because their client was not known in time.",
        rooms.timed_out_count,
    )
    yield counter(
        "ottla_unauthenticated_connections_refused_total",
        "Connections and TLS handshakes that were refused because there were too many strangers.",
        rooms.connections.refused_count + rooms.handshakes.refused_count,
    )
    yield counter(
        "ottla_unauthenticated_connections_displaced_total",
        "Connections and TLS handshakes that were closed for one from an address with fewer.",
        rooms.connections.displaced_count + rooms.handshakes.displaced_count,
    )
    orders = [
        (labels(listener=endpoint.name), endpoint.handshake_order)
        for endpoint in endpoints
        if endpoint.handshake_order is not None
    ]
    yield gauge(
        "ottla_tls_handshakes_waiting",
        "TLS handshakes that wait for their turn.",
        [(listener, order.waiting_count) for listener, order in orders],
    )
    yield counter(
        "ottla_tls_handshakes_total",
        "TLS handshakes that have begun.",
        [(listener, order.begun_count) for listener, order in orders],
    )
    yield counter(
        "ottla_tls_handshakes_given_up_total",
        "Connections that were closed because they sent no TLS hello, or blocked the handshakes of others.",
        [(listener, order.silent_count + order.abandoned_count) for listener, order in orders],
    )


def _slow_logins(logins: Mapping[str, LoginCounts]) -> Iterator[Family]:
    rows = [(labels(listener=name), counts) for name, counts in logins.items()]
    yield counter(
        "ottla_logins_delayed_total",
        "Passwords that were checked late because of failed logins.",
        [(listener, counts.delayed) for listener, counts in rows],
    )
    yield counter(
        "ottla_logins_refused_total",
        "Logins that were refused without a check because of failed logins.",
        [(listener, counts.refused) for listener, counts in rows],
    )


_ACTIVE = _controller.gauge("ActiveControllerCount", "This broker is the controller.")
_OFFLINE = _controller.gauge("OfflinePartitionsCount", "Partitions without leader.")
_IMBALANCE = _controller.gauge(
    "PreferredReplicaImbalanceCount", "Partitions whose leader is not the preferred replica."
)
_TOPICS = _controller.gauge("GlobalTopicCount", "Topics.")
_PARTITIONS = _controller.gauge("GlobalPartitionCount", "Partitions.")
_BROKERS = _controller.gauge("ActiveBrokerCount", "Registered brokers.")
_UNCLEAN = _statistics.meter(
    "UncleanLeaderElectionsPerSec", "Unclean leader elections by this broker."
)


async def controller(broker: Broker, pace: Pace) -> list[Measurement]:
    """Return KafkaController's figures; the cluster's only if this controller is active."""
    image, is_active = broker.image, broker.controller.is_active
    offline = not_preferred = count = 0
    for topic in image.topics.values():
        for partition in topic.partitions:
            await pace.rest()
            count += 1
            offline += partition.leader == NO_LEADER
            not_preferred += partition.leader != partition.replicas[0]
    scale = int(is_active)
    return [
        _CLUSTER_ID.of(broker.cluster_id),
        _ACTIVE.of(scale),
        _OFFLINE.of(offline * scale),
        _IMBALANCE.of(not_preferred * scale),
        _TOPICS.of(len(image.topics) * scale),
        _PARTITIONS.of(count * scale),
        _BROKERS.of(len(image.brokers) * scale),
        _UNCLEAN.of(broker.controller.unclean_elections_count),
    ]


async def exported(broker: Broker, pace: Pace) -> list[Family]:
    """Return the cluster under the names of kafka_exporter, each value from one broker only.

    The brokers come from the controller, a topic from the leader of its first partition that has
    one: so a sum over all brokers of the cluster is what one kafka_exporter reports.
    """
    image, is_active = broker.image, broker.controller.is_active
    rows: list[Sample] = []
    for topic in image.topics.values():
        await pace.rest()
        if _reporter(topic) == broker.node_id or (is_active and _reporter(topic) == NO_LEADER):
            rows.append((labels(topic=topic.name), len(topic.partitions)))
    brokers: list[BrokerImage] = list(image.brokers.values()) if is_active else []
    return [
        gauge("kafka_brokers", "Brokers of the cluster.", [("", len(brokers))] if brokers else []),
        gauge(
            "kafka_broker_info",
            "Brokers of the cluster, by id and address.",
            [
                (labels(id=member.id, address=f"{member.host}:{member.port}"), 1)
                for member in brokers
            ],
        ),
        gauge("kafka_topic_partitions", "Partitions of a topic.", rows),
    ]


def _reporter(topic: TopicImage) -> int:
    leaders = (partition.leader for partition in topic.partitions)
    return next((leader for leader in leaders if leader != NO_LEADER), NO_LEADER)


_WAITING = _purgatory.gauge("PurgatorySize", "Waiting requests, by kind.")
_SESSIONS = _sessions.gauge("NumIncrementalFetchSessions", "Fetch sessions.")
_SESSION_PARTITIONS = _sessions.gauge(
    "NumIncrementalFetchPartitionsCached", "Partitions in fetch sessions."
)
_EVICTIONS = _sessions.meter(
    "IncrementalFetchSessionEvictionsPerSec", "Fetch sessions that were evicted."
)


def waiting(broker: Broker) -> Iterator[Measurement]:
    """Yield the waiting work of this broker: requests and fetch sessions."""
    sessions = broker.fetch_sessions
    counts = broker.replicas.delayed.waiting_counts
    yield _WAITING.of([(Properties(delayedOperation=kind), n) for kind, n in counts.items()])
    yield _SESSIONS.of(len(sessions))
    yield _SESSION_PARTITIONS.of(sessions.partitions_count)
    yield _EVICTIONS.of(sessions.evictions_count)


def own_controller(broker: Broker) -> list[Family]:
    """Return Ottla's own figures of the controller, if this broker is it."""
    epoch: list[Sample] = (
        [("", broker.image.controller_epoch)] if broker.controller.is_active else []
    )
    return [gauge("ottla_controller_epoch", "Epoch of this controller.", epoch)]


def audit(broker: Broker) -> list[Family]:
    """Return Ottla's own figures of the audit log."""
    log = broker.audit
    return [
        counter(
            "ottla_audit_records_total",
            "Records of the audit log.",
            [(labels(event=event.value), log.counts[event]) for event in AuditEvent],
        ),
        counter(
            "ottla_audit_suppressed_records_total",
            "Records that were counted instead of written, because clients provoke too many.",
            log.suppressed_count,
        ),
        counter(
            "ottla_audit_lost_records_total",
            "Records that could not be written to audit.log.file.",
            log.lost_count,
        ),
    ]


def coordinators(broker: Broker) -> list[Family]:
    """Return Ottla's own figures of the coordinators."""
    states = Counter(
        transaction.state.display_name for transaction in broker.transactions.transactions()
    )
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
            "ottla_transactions",
            "Transactional ids, by state.",
            [(labels(state=state), count) for state, count in sorted(states.items())],
        ),
    ]


_LAST_RUN = _cleaner_manager.gauge(
    "time-since-last-run-ms", "Time since the last search for dirty logs."
)
_UNCLEANABLE = _cleaner_manager.gauge("uncleanable-partitions-count", "Logs that are damaged.")
_RECOPY = _cleaner.gauge("cleaner-recopy-percent", "Bytes that stayed.")


def log_cleaner(cleaner: Cleaner, now: float) -> Iterator[Measurement]:
    """Yield the figures of compaction; `now` is a time of the monotonic clock (s)."""
    share = 100 * cleaner.kept_bytes / cleaner.read_bytes if cleaner.read_bytes else 0.0
    yield _LAST_RUN.of(int((now - cleaner.looked_at) * 1000))
    yield _UNCLEANABLE.of(cleaner.uncleanable_count)
    yield _RECOPY.of(share)


def own_log_cleaner(cleaner: Cleaner) -> list[Family]:
    """Return Ottla's own figures of compaction."""
    return [
        counter("ottla_log_cleaner_rounds_total", "Logs compacted.", cleaner.passes_count),
        counter("ottla_log_cleaner_read_bytes_total", "Bytes before.", cleaner.read_bytes),
        counter("ottla_log_cleaner_kept_bytes_total", "Bytes after.", cleaner.kept_bytes),
    ]


_FLUSHES = _flush_statistics.timer("LogFlushRateAndTimeMs", "Milliseconds of flushes of logs.")
_OFFLINE_DIRECTORIES = _log_manager.gauge(
    "OfflineLogDirectoryCount", "Log directories that have failed."
)
_DIRECTORY_OFFLINE = _log_manager.gauge("LogDirectoryOffline", "The directory has failed.")


def directories(broker: Broker, now: float) -> Iterator[Measurement]:
    """Yield the state of the log directories, and the durations of flushes."""
    yield _FLUSHES.of([(NONE, distribution(broker.replicas.directories.flush_times, now))])
    log_directories = broker.replicas.directories.directories()
    states = [
        (Properties(logDirectory=directory.path), int(directory.failure is not None))
        for directory in log_directories
    ]
    yield _OFFLINE_DIRECTORIES.of(sum(state for _, state in states))
    yield _DIRECTORY_OFFLINE.of([(directory, state) for directory, state in states])


def own_directories(broker: Broker) -> list[Family]:
    """Return Ottla's own figures of the log directories: their free space, and damaged logs."""
    total: list[Sample] = []
    usable: list[Sample] = []
    for directory in broker.replicas.directories.directories():
        if directory.failure is not None:
            continue
        try:
            space = directory.space()
        except OSError:
            # The directory has disappeared; the next write to it takes it offline.
            continue
        total.append((labels(path=directory.path), space.total_bytes))
        usable.append((labels(path=directory.path), space.usable_bytes))
    return [
        gauge(
            "ottla_damaged_partitions",
            "Logs with damaged records, or whose maintenance or an operation failed midway.",
            len(broker.replicas.directories.damaged()),
        ),
        gauge("ottla_log_directory_total_bytes", "Size of the device.", total),
        gauge("ottla_log_directory_usable_bytes", "Free bytes of the device.", usable),
    ]
