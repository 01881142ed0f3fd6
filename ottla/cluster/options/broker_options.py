"""The broker options: those that Ottla supports, and others from Kafka's configuration files and
tools.

Names, types and limits are the same as in Apache Kafka 4.3 (3.9 for options that 4.3 has removed).
The text of an option says if its default differs. Broker-wide defaults of topic options come from
the topic rows. Follows org.apache.kafka.server.config.AbstractKafkaConfig.
"""

from dataclasses import replace
from sys import float_info

from ottla.base.options import Option, OptionType, Scope
from ottla.cluster.options import (
    admission_options,
    audit_options,
    authorization_options,
    coordination_options,
    coordinator_options,
    metrics_options,
    quota_options,
    security_options,
    topic_options,
)
from ottla.cluster.options.option_rows import (
    INERT,
    INT_MAX,
    LONG_MAX,
    Rows,
    host_limits,
    inert,
    not_empty,
)

BOOLEAN, STRING, INT, SHORT = (
    OptionType.BOOLEAN,
    OptionType.STRING,
    OptionType.INT,
    OptionType.SHORT,
)
LONG, DOUBLE, LIST = OptionType.LONG, OptionType.DOUBLE, OptionType.LIST

DEFAULT_PROTOCOL_MAP = "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"
LEADER_SELECTOR = "org.apache.kafka.common.replica.LeaderSelector"
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
_ONE_LOOP = inert("one event loop does this work")
_OWN_TIMES = inert("requests between brokers have time limits of their own")
_broker = Rows(Scope.BROKER, dynamic=False).row


def _no_lone_controller(roles: list[str]) -> str | None:
    if roles != ["controller"]:
        return None
    return (
        "the node would be no broker, and Ottla has no controllers besides its brokers, each of "
        "which can be the controller. Omit this node. Set zookeeper.connect on every broker of the "
        "cluster, or run several brokers on one machine with `ottla up --brokers 3`."
    )


_IDENTITY = (
    _broker("node.id", INT, 1, "The broker's id in the cluster.", minimum=0),
    _broker("broker.id", INT, -1, "Older name of node.id; -1 if only node.id is set.", minimum=-1),
    _broker(
        "broker.rack", STRING, None, "The rack of the broker; replicas are spread over the racks."
    ),
    _broker(
        "replica.selector.class",
        STRING,
        None,
        "The replica from which consumers read. RackAwareReplicaSelector: an in-sync one in the "
        "rack that the consumer names as client.rack. Otherwise the leader (KIP-392).",
        choices=(LEADER_SELECTOR, RACK_AWARE_SELECTOR),
    ),
    _broker(
        "log.dirs",
        LIST,
        None,
        "Folders for the logs; a new partition is created in the folder with the fewest "
        "partitions. Defaults to log.dir.",
    ),
    _broker(
        "log.dir",
        LIST,
        ["ottla-data"],
        "The folder for the logs if log.dirs is not set. Kafka: /tmp/kafka-logs.",
        check=not_empty,
    ),
    _broker(
        "process.roles",
        LIST,
        [],
        "The roles of a KRaft node. broker,controller is a cluster of one broker. controller alone is "
        "rejected; so is broker alone, unless the broker shares the metadata of other brokers "
        "(zookeeper.connect, coordination.listener).",
        choices=("broker", "controller"),
        check=_no_lone_controller,
    ),
    _broker("controller.listener.names", LIST, [], inert("every listener serves clients")),
    _broker(
        "controller.quorum.voters",
        LIST,
        [],
        "The controllers of a KRaft quorum, as id@host:port. The broker itself may be the only one, "
        "unless it shares the metadata of other brokers.",
    ),
    _broker(
        "controller.quorum.bootstrap.servers",
        LIST,
        [],
        "Controllers of a KRaft quorum, as host:port. The broker's own listener may be the only one, "
        "unless it shares the metadata of other brokers.",
    ),
)

_NETWORK = (
    _broker(
        "listeners",
        LIST,
        ["PLAINTEXT://127.0.0.1:9092"],
        "Addresses to listen on, as name://host:port; port 0 takes any free one. Kafka listens on "
        "every interface by default, Ottla on loopback only.",
        check=not_empty,
    ),
    _broker(
        "advertised.listeners",
        LIST,
        None,
        "Addresses that clients receive in metadata, as name://host:port. By default, a client "
        "receives the address that it connected to.",
    ),
    _broker(
        "listener.security.protocol.map",
        STRING,
        DEFAULT_PROTOCOL_MAP,
        "The security protocol of each listener, as name:protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or "
        "SASL_SSL.",
    ),
    _broker(
        "inter.broker.listener.name",
        STRING,
        None,
        "The listener on which brokers reach each other; the first listener if it is not set.",
    ),
    _broker(
        "security.inter.broker.protocol",
        STRING,
        "PLAINTEXT",
        "The listener of this name is the one on which brokers reach each other, if "
        "inter.broker.listener.name is not set.",
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
    _broker(
        "max.connections",
        INT,
        10_000,
        "Maximum number of connections; further ones are closed at once. The number is lower if "
        "the limit of open files (ulimit -n) is low: idle connections are then closed to make "
        "room. Kafka: no limit.",
        minimum=0,
        dynamic=True,
    ),
    _broker(
        "max.connections.per.ip",
        INT,
        INT_MAX,
        "Maximum number of connections from one address, to all listeners together. Can be 0 only "
        "if max.connections.per.ip.overrides names a host.",
        minimum=0,
        dynamic=True,
    ),
    _broker(
        "max.connections.per.ip.overrides",
        STRING,
        "",
        "Maximum numbers of connections from some addresses, as host:number, separated by commas. "
        "Names of hosts are resolved when the broker starts and when an option changes.",
        check=host_limits,
        dynamic=True,
    ),
    _broker(
        "connections.max.idle.ms",
        LONG,
        600_000,
        "Milliseconds without a request after which a connection is closed; -1 never closes it.",
    ),
    _broker(
        "socket.request.max.bytes",
        INT,
        100 * 1024**2,
        "Maximum size of a request in bytes; a larger one closes its connection.",
        minimum=1,
    ),
    _broker(
        "queued.max.request.bytes",
        LONG,
        256 * 1024**2,
        "Maximum bytes of requests in memory, counted as they arrive. At the limit, requests that "
        "need more memory wait. A connection that stops sending in the middle of its first request "
        "is closed after 2 s, and one with earlier requests after 30 s, if no other kind is left. "
        "One address can use at most three quarters. Kafka: no limit.",
    ),
    _broker(
        "queued.max.requests",
        INT,
        500,
        inert("queued.max.request.bytes limits the memory of requests"),
        minimum=1,
    ),
    _broker(
        "socket.listen.backlog.size", INT, 50, inert("the system's own length is used"), minimum=1
    ),
    _broker(
        "socket.send.buffer.bytes",
        INT,
        262144,
        "Size of the send buffer (SO_SNDBUF) of each connection; -1: the system's choice, which is "
        "better for fast links of long delay. Kafka: 102400.",
        minimum=-1,
    ),
    _broker(
        "socket.receive.buffer.bytes",
        INT,
        -1,
        "Size of the receive buffer (SO_RCVBUF) of each connection; -1: the system's choice. Kafka: "
        "102400.",
        minimum=-1,
    ),
    _broker("num.network.threads", INT, 3, _ONE_LOOP, minimum=1, dynamic=True),
    _broker("num.io.threads", INT, 8, _ONE_LOOP, minimum=1, dynamic=True),
    _broker("background.threads", INT, 10, _ONE_LOOP, minimum=1, dynamic=True),
    _broker(
        "max.incremental.fetch.session.cache.slots",
        INT,
        1000,
        "Maximum number of incremental fetch sessions (KIP-227).",
        minimum=0,
    ),
    _broker(
        "max.request.partition.size.limit",
        INT,
        2000,
        "Maximum number of partitions in one DescribeTopicPartitions response.",
        minimum=1,
    ),
    _broker(
        "fetch.max.bytes",
        INT,
        55 * 1024**2,
        "Maximum bytes of one fetch response, even if the client requests more.",
        minimum=1024,
    ),
    _broker("request.timeout.ms", INT, 30_000, _OWN_TIMES),
    _broker(
        "metric.reporters",
        LIST,
        [],
        inert("metrics are served over HTTP (metrics.listener)"),
    ),
)

_TOPICS = (
    _broker(
        "auto.create.topics.enable",
        BOOLEAN,
        True,
        "Create a missing topic when a client that allows it requests the topic's metadata.",
    ),
    _broker("delete.topic.enable", BOOLEAN, True, "Allow topics to be deleted."),
    _broker(
        "num.partitions",
        INT,
        1,
        "Number of partitions of a new topic if the request does not specify it.",
        minimum=1,
    ),
    _broker(
        "default.replication.factor",
        INT,
        1,
        "Number of replicas of a new topic if the request does not specify it.",
        minimum=1,
    ),
    _broker("create.topic.policy.class.name", STRING, None, inert("there are no policy plug-ins")),
    _broker("alter.config.policy.class.name", STRING, None, inert("there are no policy plug-ins")),
)

_LOG = (
    _broker(
        "log.retention.ms",
        LONG,
        None,
        "Default of the topic option retention.ms. If it is not set, log.retention.minutes or "
        "log.retention.hours applies.",
        minimum=-1,
        dynamic=True,
    ),
    _broker(
        "log.retention.minutes",
        INT,
        None,
        "log.retention.ms in minutes, if log.retention.ms is not set.",
        minimum=-1,
    ),
    _broker(
        "log.retention.hours",
        INT,
        168,
        "log.retention.ms in hours, if neither log.retention.ms nor log.retention.minutes is set.",
        minimum=-1,
    ),
    _broker(
        "log.roll.ms",
        LONG,
        None,
        "Default of the topic option segment.ms. If it is not set, log.roll.hours applies.",
        minimum=1,
        dynamic=True,
    ),
    _broker(
        "log.roll.hours", INT, 168, "log.roll.ms in hours, if log.roll.ms is not set.", minimum=1
    ),
    _broker(
        "log.roll.jitter.ms",
        LONG,
        None,
        "Default of the topic option segment.jitter.ms. If it is not set, log.roll.jitter.hours "
        "applies.",
        minimum=0,
        dynamic=True,
    ),
    _broker(
        "log.roll.jitter.hours",
        INT,
        0,
        "log.roll.jitter.ms in hours, if log.roll.jitter.ms is not set.",
        minimum=0,
    ),
    _broker(
        "log.flush.interval.ms",
        LONG,
        None,
        "Default of the topic option flush.ms. If it is not set, log.flush.scheduler.interval.ms "
        "applies.",
        minimum=0,
        dynamic=True,
    ),
    _broker(
        "log.flush.scheduler.interval.ms",
        LONG,
        LONG_MAX,
        "Milliseconds between checks for logs that are due to be flushed to the disk.",
    ),
    _broker(
        "log.retention.check.interval.ms",
        LONG,
        300_000,
        "Milliseconds between checks for segments that exceed their topic's retention.",
        minimum=1,
    ),
    _broker(
        "log.stray.retention.ms",
        LONG,
        86_400_000,
        "Milliseconds after which the log of a replica that was moved away while the broker was "
        "away is removed; 0 keeps such logs.",
        minimum=0,
    ),
    _broker(
        "log.initial.task.delay.ms",
        LONG,
        30_000,
        "Milliseconds from the start to the first check for segments that exceed their topic's "
        "retention.",
        minimum=0,
    ),
    _broker(
        "log.flush.offset.checkpoint.interval.ms",
        INT,
        60_000,
        "Milliseconds between writes of the recovery point of each log. After a crash, records "
        "before the recovery point are not read again.",
        minimum=0,
    ),
    _broker(
        "log.flush.start.offset.checkpoint.interval.ms",
        INT,
        60_000,
        "Milliseconds between writes of the start offset of each log. Records that DeleteRecords "
        "has deleted since the last write may reappear after a crash.",
        minimum=0,
    ),
    _broker(
        "replica.high.watermark.checkpoint.interval.ms",
        LONG,
        5000,
        "Milliseconds between writes of the high watermarks to their checkpoint file.",
        minimum=1,
    ),
    _broker("num.recovery.threads.per.data.dir", INT, 2, _ONE_LOOP, minimum=1, dynamic=True),
    _broker(
        "log.cleaner.enable",
        BOOLEAN,
        True,
        "Compact the logs whose cleanup.policy includes compact.",
    ),
    _broker(
        "log.cleaner.threads",
        INT,
        1,
        inert("logs are compacted one after the other"),
        minimum=0,
        dynamic=True,
    ),
    _broker(
        "log.cleaner.backoff.ms",
        LONG,
        15_000,
        "Milliseconds to wait when no log needs compaction.",
        minimum=0,
        dynamic=True,
    ),
    _broker(
        "log.cleaner.dedupe.buffer.size",
        LONG,
        128 * 1024**2,
        "Bytes of memory for the keys of one compaction round; a log with more keys takes several "
        "rounds.",
        dynamic=True,
    ),
    _broker(
        "log.cleaner.io.max.bytes.per.second",
        DOUBLE,
        float_info.max,
        "Maximum bytes that compaction reads and writes per second.",
        minimum=1,
        dynamic=True,
    ),
    _broker(
        "producer.id.expiration.ms",
        INT,
        24 * 3600 * 1000,
        "Milliseconds of inactivity after which a partition removes the state of a producer; a "
        "batch that the producer repeats later is not detected as a duplicate.",
        minimum=1,
        dynamic=True,
    ),
    _broker(
        "producer.id.expiration.check.interval.ms",
        INT,
        600_000,
        "Milliseconds between checks for producers whose state has expired.",
        minimum=1,
    ),
)

_REPLICATION = (
    _broker(
        "replica.lag.time.max.ms",
        LONG,
        30_000,
        "A follower that has not caught up with the leader for this long leaves the ISR.",
        minimum=1,
    ),
    _broker(
        "replica.fetch.max.bytes",
        INT,
        1024**2,
        "Maximum bytes of one partition in the response to a follower; a larger batch is sent whole.",
        minimum=0,
    ),
    _broker(
        "replica.fetch.response.max.bytes",
        INT,
        10 * 1024**2,
        "Maximum bytes of one response to a follower.",
        minimum=0,
    ),
    _broker(
        "replica.fetch.min.bytes",
        INT,
        1,
        "Bytes for which a fetch of a follower waits, at most replica.fetch.wait.max.ms.",
        minimum=0,
    ),
    _broker(
        "replica.fetch.wait.max.ms",
        INT,
        500,
        "How long a fetch of a follower waits for records, in ms.",
        minimum=0,
    ),
    _broker(
        "replica.fetch.backoff.ms",
        INT,
        1_000,
        "Pause of a follower after a fetch that failed, in ms.",
        minimum=0,
    ),
    _broker(
        "replica.socket.timeout.ms",
        INT,
        30_000,
        "How long a follower waits for a response, beyond replica.fetch.wait.max.ms, in ms.",
        minimum=1,
    ),
    _broker(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        LONG,
        LONG_MAX,
        "Maximum bytes per second that are copied when a partition moves to another log directory "
        "of this broker.",
        minimum=0,
        dynamic=True,
    ),
    _broker("num.replica.fetchers", INT, 1, _ONE_LOOP, minimum=1, dynamic=True),
    _broker(
        "auto.leader.rebalance.enable",
        BOOLEAN,
        True,
        "The controller elects preferred replicas again if too many of a broker's partitions are led "
        "by other brokers.",
    ),
    _broker(
        "leader.imbalance.check.interval.seconds",
        LONG,
        300,
        "Seconds between two checks of auto.leader.rebalance.enable.",
        minimum=1,
    ),
    _broker(
        "leader.imbalance.per.broker.percentage",
        INT,
        10,
        "Percentage of the partitions that prefer a broker above which the controller elects that "
        "broker again.",
    ),
    _broker(
        "controlled.shutdown.enable",
        BOOLEAN,
        True,
        "A broker that stops first has the controller move its leaders to other brokers.",
    ),
    _broker(
        "controlled.shutdown.max.retries",
        INT,
        3,
        "How often a broker that stops asks the controller again, if it still leads partitions.",
        minimum=0,
    ),
    _broker(
        "controlled.shutdown.retry.backoff.ms",
        LONG,
        5_000,
        "Pause before a broker that stops asks the controller again, in ms.",
        minimum=0,
    ),
)

# Kafka allows changing these at runtime only through log.* rows that are listed above.
_WRITTEN_OUT = frozenset(
    option.name for option in _LOG if option.name.startswith(("log.retention", "log.roll"))
) | {"log.flush.interval.ms"}


def _default_of(option: Option) -> Option:
    """Return the broker row that gives a topic option its default."""
    assert option.fallback is not None
    doc = f"Default of the topic option {option.name}. {option.doc}"
    if option.doc.startswith(INERT):
        doc = option.doc
    return replace(option, name=option.fallback, scope=Scope.BROKER, doc=doc, fallback=None)


_TOPIC_DEFAULTS = tuple(
    _default_of(option)
    for option in topic_options.ROWS
    if option.fallback is not None and option.fallback not in _WRITTEN_OUT
)

ROWS = (
    *_IDENTITY,
    *coordination_options.ROWS,
    *_NETWORK,
    *security_options.ROWS,
    *admission_options.ROWS,
    *authorization_options.ROWS,
    *audit_options.ROWS,
    *_TOPICS,
    *_LOG,
    *_TOPIC_DEFAULTS,
    *_REPLICATION,
    *metrics_options.ROWS,
    *coordinator_options.GROUPS,
    *coordinator_options.TRANSACTIONS,
    *quota_options.ROWS,
)
