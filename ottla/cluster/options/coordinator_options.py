"""The options of the coordinators: groups, their offsets, and transactions.

Names, types and limits are the same as in Apache Kafka 4.3; a default that differs says so in its
text. Follows org.apache.kafka.coordinator.group.GroupCoordinatorConfig and
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
        "Milliseconds that the first rebalance of an empty group waits for more members. Kafka: "
        "3000.",
        minimum=0,
    ),
    _broker(
        "group.min.session.timeout.ms",
        INT,
        6000,
        "Minimum session.timeout.ms of a member.",
        minimum=0,
    ),
    _broker(
        "group.max.session.timeout.ms",
        INT,
        1_800_000,
        "Maximum session.timeout.ms of a member.",
        minimum=0,
    ),
    _broker(
        "group.max.size",
        INT,
        10_000,
        "Maximum number of members in a group. Kafka: no limit.",
        minimum=1,
    ),
    _broker(
        "offset.metadata.max.bytes",
        INT,
        4096,
        "Maximum bytes of the metadata that a client can store with an offset.",
        minimum=0,
    ),
    _broker(
        "offsets.commit.timeout.ms",
        INT,
        5000,
        "Milliseconds that an offset commit waits for its replication.",
        minimum=1,
    ),
    _broker(
        "offsets.retention.minutes",
        INT,
        7 * 24 * 60,
        "Minutes after which the offsets of an empty group expire.",
        minimum=1,
    ),
    _broker(
        "offsets.retention.check.interval.ms",
        LONG,
        600_000,
        "Milliseconds between checks for expired offsets.",
        minimum=1,
    ),
    _broker(
        "offsets.load.buffer.size",
        INT,
        5 * 1024**2,
        "Bytes per read when the groups of a partition are loaded.",
        minimum=1,
    ),
    _broker(
        "offsets.topic.num.partitions",
        INT,
        50,
        "Number of partitions of __consumer_offsets when it is created.",
        minimum=1,
    ),
    _broker(
        "offsets.topic.replication.factor",
        SHORT,
        3,
        "Number of replicas of __consumer_offsets when it is created. By default it is limited to "
        "the number of brokers; Kafka does not create the topic with fewer brokers.",
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
        "Maximum transaction.timeout.ms of a producer.",
        minimum=1,
    ),
    _broker(
        "transactional.id.expiration.ms",
        INT,
        7 * 24 * 3600 * 1000,
        "Milliseconds after which an unused transactional id expires.",
        minimum=1,
    ),
    _broker(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        10_000,
        "Milliseconds between checks for transactions that have timed out.",
        minimum=1,
    ),
    _broker(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        3_600_000,
        "Milliseconds between checks for expired transactional ids.",
        minimum=1,
    ),
    _broker(
        "transaction.partition.verification.enable",
        BOOLEAN,
        True,
        "Accept a transactional batch only for partitions that were added to the transaction.",
    ),
    _broker(
        "add.partitions.to.txn.retry.backoff.max.ms",
        INT,
        100,
        "Milliseconds that a write of a client of transaction.version 2 waits for its previous "
        "transaction to complete; after that the client receives a retriable error.",
        minimum=0,
    ),
    _broker(
        "transaction.state.log.load.buffer.size",
        INT,
        5 * 1024**2,
        "Bytes per read when the transactions of a partition are loaded.",
        minimum=1,
    ),
    _broker(
        "transaction.state.log.num.partitions",
        INT,
        50,
        "Number of partitions of __transaction_state when it is created.",
        minimum=1,
    ),
    _broker(
        "transaction.state.log.replication.factor",
        SHORT,
        3,
        "Number of replicas of __transaction_state when it is created. By default it is limited "
        "to the number of brokers.",
        minimum=1,
    ),
    _broker(
        "transaction.state.log.min.isr",
        INT,
        2,
        "The min.insync.replicas of __transaction_state when it is created; limited to its number "
        "of replicas.",
        minimum=1,
    ),
    _broker(
        "transaction.state.log.segment.bytes",
        INT,
        100 * 1024**2,
        "The segment.bytes of __transaction_state when it is created.",
        minimum=1,
    ),
)
