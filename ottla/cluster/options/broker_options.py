"""The broker options that Ottla knows: what it honours, and what Kafka's files and tools name.

Names, types and limits are those of Apache Kafka 4.3 (3.9 where 4.3 has none); a default that
differs says so in its text. Broker-wide defaults of topic options come from the topic rows.
Follows org.apache.kafka.server.config.AbstractKafkaConfig.
"""

from dataclasses import replace
from sys import float_info

from ottla.base.options import Option, OptionType, Scope
from ottla.cluster.options import coordinator_options, metrics_options, quota_options, topic_options
from ottla.cluster.options.option_rows import INERT, INT_MAX, LONG_MAX, Rows, inert, not_empty

BOOLEAN, STRING, INT, SHORT = (
    OptionType.BOOLEAN,
    OptionType.STRING,
    OptionType.INT,
    OptionType.SHORT,
)
LONG, DOUBLE, LIST = OptionType.LONG, OptionType.DOUBLE, OptionType.LIST

DEFAULT_PROTOCOL_MAP = "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"
_ONE_LOOP = inert("one event loop does this work")
_ALONE = inert("there are no other brokers to talk to yet")
_broker = Rows(Scope.BROKER, dynamic=False).row

_IDENTITY = (
    _broker("node.id", INT, 1, "The broker's id in the cluster.", minimum=0),
    _broker("broker.id", INT, -1, "Older name of node.id; -1 where only node.id is set."),
    _broker("broker.rack", STRING, None, "The rack that replicas are spread over."),
    _broker(
        "log.dirs",
        LIST,
        None,
        "Folders that hold the logs; new partitions go where there are fewest. Where it is not "
        "set, log.dir counts.",
    ),
    _broker(
        "log.dir",
        LIST,
        ["ottla-data"],
        "The folder that holds the logs where log.dirs is not set. Kafka: /tmp/kafka-logs.",
        check=not_empty,
    ),
    _broker(
        "coordination.dir",
        STRING,
        None,
        "Ottla's own: the folder of the cluster's metadata (what Apache Kafka keeps in ZooKeeper); "
        "the first of log.dirs where it is not set. A broker that cannot write there any more "
        "stops, so with several disks a folder apart from all log directories is the safest.",
    ),
    _broker("process.roles", LIST, [], inert("every broker can be the controller")),
    _broker("controller.listener.names", LIST, [], inert("every listener serves clients")),
    _broker("controller.quorum.voters", LIST, [], inert("the controller is not a Raft quorum")),
    _broker(
        "controller.quorum.bootstrap.servers",
        LIST,
        [],
        inert("the controller is not a Raft quorum"),
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
        "Addresses that clients are told, as name://host:port. Where it is not set, a client is "
        "told the address it came in on.",
    ),
    _broker(
        "listener.security.protocol.map",
        STRING,
        DEFAULT_PROTOCOL_MAP,
        "The security protocol of each listener, as name:protocol. Only PLAINTEXT is served.",
    ),
    _broker("inter.broker.listener.name", STRING, None, _ALONE),
    _broker(
        "security.inter.broker.protocol",
        STRING,
        "PLAINTEXT",
        inert("only PLAINTEXT is served"),
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
    _broker(
        "max.connections",
        INT,
        10_000,
        "Most connections at a time; one more is closed at once. Fewer if the limit of open files "
        "(ulimit -n) is low: idle connections then make room. Kafka: no limit.",
        minimum=0,
        dynamic=True,
    ),
    _broker(
        "max.connections.per.ip",
        INT,
        INT_MAX,
        "Most connections from one address at a time.",
        minimum=0,
        dynamic=True,
    ),
    _broker(
        "connections.max.idle.ms",
        LONG,
        600_000,
        "Milliseconds without a request after which a connection is closed; -1 for never.",
    ),
    _broker(
        "socket.request.max.bytes",
        INT,
        100 * 1024**2,
        "Most bytes of one request; a longer one closes its connection.",
        minimum=1,
    ),
    _broker(
        "queued.max.request.bytes",
        LONG,
        256 * 1024**2,
        "Bytes of requests in memory at a time, counted as they arrive; above it, requests that need "
        "more wait, and silent unfinished ones are closed. One address leaves a quarter to others. "
        "Kafka: no limit.",
    ),
    _broker(
        "queued.max.requests",
        INT,
        500,
        inert("queued.max.request.bytes bounds what is held"),
        minimum=1,
    ),
    _broker(
        "socket.listen.backlog.size", INT, 50, inert("the system's own length is taken"), minimum=1
    ),
    _broker(
        "socket.send.buffer.bytes",
        INT,
        100 * 1024,
        inert("the system chooses the size of socket buffers"),
    ),
    _broker(
        "socket.receive.buffer.bytes",
        INT,
        100 * 1024,
        inert("the system chooses the size of socket buffers"),
    ),
    _broker("num.network.threads", INT, 3, _ONE_LOOP, minimum=1, dynamic=True),
    _broker("num.io.threads", INT, 8, _ONE_LOOP, minimum=1, dynamic=True),
    _broker("background.threads", INT, 10, _ONE_LOOP, minimum=1, dynamic=True),
    _broker(
        "max.incremental.fetch.session.cache.slots",
        INT,
        1000,
        "Most incremental fetch sessions at a time (KIP-227).",
        minimum=0,
    ),
    _broker(
        "max.request.partition.size.limit",
        INT,
        2000,
        "Most partitions that one answer to DescribeTopicPartitions holds.",
        minimum=1,
    ),
    _broker(
        "fetch.max.bytes",
        INT,
        55 * 1024**2,
        "Most bytes of one fetch response, whatever the client asks for.",
        minimum=1024,
    ),
    _broker("request.timeout.ms", INT, 30_000, _ALONE),
    _broker(
        "metric.reporters",
        LIST,
        [],
        inert("metrics are read where they are served"),
    ),
)

_TOPICS = (
    _broker(
        "auto.create.topics.enable",
        BOOLEAN,
        True,
        "Create a topic when a client that allows it first asks for its metadata.",
    ),
    _broker("delete.topic.enable", BOOLEAN, True, "Allow topics to be deleted."),
    _broker(
        "num.partitions",
        INT,
        1,
        "Partitions of a topic whose creation names no number.",
        minimum=1,
    ),
    _broker(
        "default.replication.factor",
        INT,
        1,
        "Replicas of a topic whose creation names no number.",
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
        "Default of the topic option retention.ms; where it is not set, log.retention.minutes or "
        "log.retention.hours count.",
        minimum=-1,
        dynamic=True,
    ),
    _broker(
        "log.retention.minutes",
        INT,
        None,
        "log.retention.ms in minutes, where that is not set.",
        minimum=-1,
    ),
    _broker(
        "log.retention.hours",
        INT,
        168,
        "log.retention.ms in hours, where neither that nor log.retention.minutes is set.",
        minimum=-1,
    ),
    _broker(
        "log.roll.ms",
        LONG,
        None,
        "Default of the topic option segment.ms; where it is not set, log.roll.hours counts.",
        minimum=1,
        dynamic=True,
    ),
    _broker("log.roll.hours", INT, 168, "log.roll.ms in hours, where that is not set.", minimum=1),
    _broker(
        "log.roll.jitter.ms",
        LONG,
        None,
        "Default of the topic option segment.jitter.ms; where it is not set, "
        "log.roll.jitter.hours counts.",
        minimum=0,
        dynamic=True,
    ),
    _broker(
        "log.roll.jitter.hours",
        INT,
        0,
        "log.roll.jitter.ms in hours, where that is not set.",
        minimum=0,
    ),
    _broker(
        "log.flush.interval.ms",
        LONG,
        None,
        "Default of the topic option flush.ms; where it is not set, "
        "log.flush.scheduler.interval.ms counts.",
        minimum=0,
        dynamic=True,
    ),
    _broker(
        "log.flush.scheduler.interval.ms",
        LONG,
        LONG_MAX,
        "Milliseconds between looking for logs that are due to be forced to the disk.",
    ),
    _broker(
        "log.retention.check.interval.ms",
        LONG,
        300_000,
        "Milliseconds between looking for segments that have outlived their topic's retention.",
        minimum=1,
    ),
    _broker(
        "log.initial.task.delay.ms",
        LONG,
        30_000,
        "Milliseconds from the start to the first look for segments that have outlived their "
        "topic's retention.",
        minimum=0,
    ),
    _broker(
        "log.flush.offset.checkpoint.interval.ms",
        INT,
        60_000,
        "Milliseconds between writing down how far each log is durable: after a crash, what lies "
        "before is not read again.",
        minimum=0,
    ),
    _broker(
        "log.flush.start.offset.checkpoint.interval.ms",
        INT,
        60_000,
        "Milliseconds between writing down where each log begins: what DeleteRecords has deleted "
        "since then may be there again after a crash.",
        minimum=0,
    ),
    _broker(
        "replica.high.watermark.checkpoint.interval.ms",
        LONG,
        5000,
        "Milliseconds between writing the high watermarks to their checkpoint file.",
        minimum=1,
    ),
    _broker("num.recovery.threads.per.data.dir", INT, 2, _ONE_LOOP, minimum=1, dynamic=True),
    _broker("log.cleaner.enable", BOOLEAN, True, "Compact logs whose cleanup.policy asks for it."),
    _broker(
        "log.cleaner.threads", INT, 1, inert("logs are compacted in turn"), minimum=0, dynamic=True
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
        "Bytes of memory for the keys of one round; a log with more keys takes several rounds.",
        dynamic=True,
    ),
    _broker(
        "log.cleaner.io.max.bytes.per.second",
        DOUBLE,
        float_info.max,
        "Most bytes that compaction reads and writes in a second.",
        minimum=1,
        dynamic=True,
    ),
    _broker(
        "producer.id.expiration.ms",
        INT,
        24 * 3600 * 1000,
        "Milliseconds of silence after which a partition forgets a producer; a batch that it "
        "repeats later is not known as a duplicate.",
        minimum=1,
        dynamic=True,
    ),
    _broker(
        "producer.id.expiration.check.interval.ms",
        INT,
        600_000,
        "Milliseconds between looking for producers that have been silent for too long.",
        minimum=1,
    ),
)

_REPLICATION = (
    _broker(
        "replica.lag.time.max.ms",
        LONG,
        30_000,
        _ALONE,
    ),
    _broker(
        "replica.fetch.max.bytes",
        INT,
        1024**2,
        _ALONE,
        minimum=0,
    ),
    _broker(
        "replica.fetch.wait.max.ms",
        INT,
        500,
        _ALONE,
    ),
    _broker(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        LONG,
        LONG_MAX,
        "Most bytes of a partition that are copied in a second when it moves to another log "
        "directory of this broker.",
        minimum=0,
        dynamic=True,
    ),
    _broker("num.replica.fetchers", INT, 1, _ALONE, minimum=1, dynamic=True),
    _broker(
        "auto.leader.rebalance.enable",
        BOOLEAN,
        True,
        _ALONE,
    ),
    _broker(
        "leader.imbalance.check.interval.seconds",
        LONG,
        300,
        _ALONE,
        minimum=1,
    ),
    _broker(
        "leader.imbalance.per.broker.percentage",
        INT,
        10,
        _ALONE,
    ),
    _broker(
        "controlled.shutdown.enable",
        BOOLEAN,
        True,
        _ALONE,
    ),
    _broker(
        "zookeeper.connect",
        STRING,
        None,
        "Addresses of a ZooKeeper ensemble. Ottla keeps its own tree and cannot join one yet.",
    ),
    _broker(
        "zookeeper.session.timeout.ms",
        INT,
        18_000,
        _ALONE,
    ),
)

# Kafka lets these be changed at runtime only through log.* rows that are listed above.
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
    *_NETWORK,
    *_TOPICS,
    *_LOG,
    *_TOPIC_DEFAULTS,
    *_REPLICATION,
    *metrics_options.ROWS,
    *coordinator_options.GROUPS,
    *coordinator_options.TRANSACTIONS,
    *quota_options.ROWS,
)

# Set in a configuration, these would be trusted to protect something that is not protected.
REFUSED = {
    "authorizer.class.name": "Ottla has no authorizer yet; leave it out and keep to loopback",
    "zookeeper.connect": "Ottla cannot join a ZooKeeper ensemble yet; leave it out",
    "security.inter.broker.protocol": "only PLAINTEXT is served",
}
