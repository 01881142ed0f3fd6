"""The options of the coordinators: groups, their offsets, and transactions.

Names, types and limits are those of Apache Kafka 4.3; a default that differs says so in its text.
Follows org.apache.kafka.coordinator.group.GroupCoordinatorConfig and
org.apache.kafka.coordinator.transaction.TransactionLogConfig.
"""

from ottla.base.options import OptionType, Scope
from ottla.cluster.options import group_options
from ottla.cluster.options.option_rows import Rows

BOOLEAN = OptionType.BOOLEAN
INT = OptionType.INT
SHORT = OptionType.SHORT
LONG = OptionType.LONG
_broker = Rows(Scope.BROKER, dynamic=False).row

GROUPS = (
    _broker(
        "group.initial.rebalance.delay.ms",
        INT,
        0,
        "Milliseconds that the first member of an empty group waits for others. Kafka: 3000.",
        minimum=0,
    ),
    _broker(
        "group.min.session.timeout.ms",
        INT,
        6000,
        "Shortest session.timeout.ms that a member may ask for.",
        minimum=0,
    ),
    _broker(
        "group.max.session.timeout.ms",
        INT,
        1_800_000,
        "Longest session.timeout.ms that a member may ask for.",
        minimum=0,
    ),
    _broker(
        "group.max.size",
        INT,
        10_000,
        "Most members of one group. Kafka: no limit.",
        minimum=1,
    ),
    _broker(
        "offset.metadata.max.bytes",
        INT,
        4096,
        "Most bytes of the text that a client may store with an offset.",
        minimum=0,
    ),
    _broker(
        "offsets.commit.timeout.ms",
        INT,
        5000,
        "Milliseconds that an offset commit waits to be replicated.",
        minimum=1,
    ),
    _broker(
        "offsets.retention.minutes",
        INT,
        7 * 24 * 60,
        "Minutes for which the offsets of an empty group are kept.",
        minimum=1,
    ),
    _broker(
        "offsets.retention.check.interval.ms",
        LONG,
        600_000,
        "Milliseconds between looking for offsets that have expired.",
        minimum=1,
    ),
    _broker(
        "offsets.load.buffer.size",
        INT,
        5 * 1024**2,
        "Bytes that are read at a time when the groups of a partition are loaded.",
        minimum=1,
    ),
    _broker(
        "offsets.topic.num.partitions",
        INT,
        50,
        "Partitions of __consumer_offsets when it is created.",
        minimum=1,
    ),
    _broker(
        "offsets.topic.replication.factor",
        SHORT,
        3,
        "Replicas of __consumer_offsets when it is created. Where it is not set, as many as there "
        "are brokers, but no more than this; Kafka refuses to create it with fewer brokers.",
        minimum=1,
    ),
    _broker(
        "offsets.topic.segment.bytes",
        INT,
        100 * 1024**2,
        "The segment.bytes of __consumer_offsets when it is created.",
        minimum=1,
    ),
    _broker(
        "offsets.topic.compression.codec",
        INT,
        0,
        "Codec of the batches in __consumer_offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
        minimum=0,
        maximum=4,
    ),
    *group_options.BROKER_ROWS,
)

TRANSACTIONS = (
    _broker(
        "transaction.max.timeout.ms",
        INT,
        900_000,
        "Longest transaction.timeout.ms that a producer may ask for.",
        minimum=1,
    ),
    _broker(
        "transactional.id.expiration.ms",
        INT,
        7 * 24 * 3600 * 1000,
        "Milliseconds after which a transactional id that nobody has used is forgotten.",
        minimum=1,
    ),
    _broker(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        10_000,
        "Milliseconds between looking for transactions whose time is up.",
        minimum=1,
    ),
    _broker(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        3_600_000,
        "Milliseconds between looking for transactional ids that have expired.",
        minimum=1,
    ),
    _broker(
        "transaction.partition.verification.enable",
        BOOLEAN,
        True,
        "Whether a batch of a transaction is taken only for partitions that were added to it.",
    ),
    _broker(
        "add.partitions.to.txn.retry.backoff.max.ms",
        INT,
        100,
        "Milliseconds that a client of transaction.version 2 waits for the end of its last "
        "transaction when it writes to the next; then it is told to try again.",
        minimum=0,
    ),
    _broker(
        "transaction.state.log.load.buffer.size",
        INT,
        5 * 1024**2,
        "Bytes that are read at a time when the transactions of a partition are loaded.",
        minimum=1,
    ),
    _broker(
        "transaction.state.log.num.partitions",
        INT,
        50,
        "Partitions of __transaction_state when it is created.",
        minimum=1,
    ),
    _broker(
        "transaction.state.log.replication.factor",
        SHORT,
        3,
        "Replicas of __transaction_state when it is created. Where it is not set, as many as there "
        "are brokers, and no more than this.",
        minimum=1,
    ),
    _broker(
        "transaction.state.log.min.isr",
        INT,
        2,
        "min.insync.replicas of __transaction_state when it is created, at most its replicas.",
        minimum=1,
    ),
    _broker(
        "transaction.state.log.segment.bytes",
        INT,
        100 * 1024**2,
        "Segment size of __transaction_state when it is created.",
        minimum=1,
    ),
)
