"""Every topic option of Apache Kafka 4.3, with Kafka's defaults and limits, and Ottla's own
options.

`fallback` names the broker option that sets the value if the topic does not. If Kafka has several
(hours, minutes, milliseconds), it is the first of `option_tables.topic_synonyms`. Follows
org.apache.kafka.storage.internals.log.LogConfig.
"""

from ottla.base.options import OptionType, Scope
from ottla.cluster.options.option_rows import (
    LONG_MAX,
    Rows,
    gzip_level,
    inert,
    throttled_replicas,
)

BOOLEAN, STRING, INT = OptionType.BOOLEAN, OptionType.STRING, OptionType.INT
LONG, DOUBLE, LIST = OptionType.LONG, OptionType.DOUBLE, OptionType.LIST

COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
CLEANUP_POLICIES = ("compact", "delete")
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
_TIERED = inert("there is no tiered storage")


def _not_tiered(value: bool) -> str | None:
    # If it were accepted without an error, users would expect it to move old segments away.
    return "there is no tiered storage" if value else None


_topic = Rows(Scope.TOPIC).row

_SEGMENTS = (
    _topic(
        "segment.bytes",
        INT,
        1024**3,
        "Maximum bytes of a segment of the log; retention and compaction work on whole segments.",
        minimum=1024**2,
        fallback="log.segment.bytes",
    ),
    _topic(
        "internal.segment.bytes",
        INT,
        None,
        "For tests of rolling and retention: a segment size below the minimum of segment.bytes. "
        "Overrides segment.bytes if it is set.",
        minimum=14,
    ),
    _topic(
        "segment.ms",
        LONG,
        7 * 24 * 3600 * 1000,
        "Milliseconds after which a new segment is started even if the last one is not full.",
        minimum=1,
        fallback="log.roll.ms",
    ),
    _topic(
        "segment.jitter.ms",
        LONG,
        0,
        "Maximum of a random number of milliseconds by which segment.ms is shortened, so that not "
        "all logs roll at once.",
        minimum=0,
        fallback="log.roll.jitter.ms",
    ),
    _topic(
        "segment.index.bytes",
        INT,
        10 * 1024**2,
        "Maximum bytes of an index file; when an index is full, a new segment is started.",
        minimum=4,
        fallback="log.index.size.max.bytes",
    ),
    _topic(
        "index.interval.bytes",
        INT,
        4096,
        "Bytes of records between two entries of the offset index.",
        minimum=0,
        fallback="log.index.interval.bytes",
    ),
    _topic(
        "preallocate",
        BOOLEAN,
        False,
        inert("segments grow as they are written"),
        fallback="log.preallocate",
    ),
    _topic(
        "file.delete.delay.ms",
        LONG,
        60_000,
        "Milliseconds between removing a segment from the log and deleting its files.",
        minimum=0,
        fallback="log.segment.delete.delay.ms",
    ),
)

_DURABILITY = (
    _topic(
        "flush.messages",
        LONG,
        LONG_MAX,
        "Number of records after which the log is flushed to the disk; 1 flushes after every "
        "batch.",
        minimum=1,
        fallback="log.flush.interval.messages",
    ),
    _topic(
        "flush.ms",
        LONG,
        LONG_MAX,
        "Milliseconds after which records are flushed to the disk.",
        minimum=0,
        fallback="log.flush.interval.ms",
    ),
    _topic(
        "flush.on.ack",
        BOOLEAN,
        False,
        "Ottla's own: flush the log to the disk before a produce request is acknowledged, so that "
        "no acknowledged record is lost if all replicas lose power at once. __consumer_offsets "
        "and __transaction_state are created with it. See docs/durability.md for the cost.",
        fallback="log.flush.on.ack",
    ),
    _topic(
        "min.insync.replicas",
        INT,
        1,
        "Number of in-sync replicas that a produce request with acks=all requires, and that the "
        "high watermark requires to advance (KIP-966).",
        minimum=1,
        fallback="min.insync.replicas",
    ),
    _topic(
        "unclean.leader.election.enable",
        BOOLEAN,
        False,
        "Elect a replica that is not in sync as the leader if there is no other, although this "
        "loses acknowledged records.",
        fallback="unclean.leader.election.enable",
    ),
)

_RETENTION = (
    _topic(
        "cleanup.policy",
        LIST,
        ["delete"],
        "How old segments are cleaned up: delete (by retention), compact (every record must have "
        "a key; the newest record of each key is kept), both, or an empty list to keep "
        "everything.",
        choices=CLEANUP_POLICIES,
        fallback="log.cleanup.policy",
    ),
    _topic(
        "retention.bytes",
        LONG,
        -1,
        "Maximum bytes of a partition; the oldest segments above it are deleted. -1 for no limit.",
        fallback="log.retention.bytes",
    ),
    _topic(
        "retention.ms",
        LONG,
        7 * 24 * 3600 * 1000,
        "Milliseconds after which a segment is deleted, counted from its newest record. -1 for no "
        "limit.",
        minimum=-1,
        fallback="log.retention.ms",
    ),
    _topic(
        "local.retention.bytes",
        LONG,
        -2,
        _TIERED,
        minimum=-2,
        fallback="log.local.retention.bytes",
    ),
    _topic("local.retention.ms", LONG, -2, _TIERED, minimum=-2, fallback="log.local.retention.ms"),
    _topic("remote.storage.enable", BOOLEAN, False, _TIERED, check=_not_tiered),
    _topic("remote.log.copy.disable", BOOLEAN, False, _TIERED),
    _topic("remote.log.delete.on.disable", BOOLEAN, False, _TIERED),
)

_COMPACTION = (
    _topic(
        "delete.retention.ms",
        LONG,
        24 * 3600 * 1000,
        "Milliseconds for which compaction keeps a record without a value (a deletion), counted "
        "from the first round that processes it. A consumer that reads from the start within that "
        "time sees every deletion.",
        minimum=0,
        fallback="log.cleaner.delete.retention.ms",
    ),
    _topic(
        "min.cleanable.dirty.ratio",
        DOUBLE,
        0.5,
        "Minimum share of a log's bytes that are not compacted yet for a compaction round to "
        "start.",
        minimum=0,
        maximum=1,
        fallback="log.cleaner.min.cleanable.ratio",
    ),
    _topic(
        "min.compaction.lag.ms",
        LONG,
        0,
        "Minimum milliseconds before a record can be compacted.",
        minimum=0,
        fallback="log.cleaner.min.compaction.lag.ms",
    ),
    _topic(
        "max.compaction.lag.ms",
        LONG,
        LONG_MAX,
        "Maximum milliseconds before a record is compacted, even if min.cleanable.dirty.ratio is "
        "not reached; the last segment is rolled by then.",
        minimum=1,
        fallback="log.cleaner.max.compaction.lag.ms",
    ),
)

_RECORDS = (
    _topic(
        "compression.type",
        STRING,
        "producer",
        "Codec of the batches on disk: producer keeps the producer's codec; with any other, the "
        "broker recompresses batches.",
        choices=COMPRESSION_TYPES,
        fallback="compression.type",
    ),
    _topic(
        "compression.gzip.level",
        INT,
        -1,
        "Level of gzip if compression.type is gzip and the broker recompresses a batch: 1 (fast) "
        "to 9 (small), -1 for the library's default.",
        check=gzip_level,
        fallback="compression.gzip.level",
    ),
    _topic(
        "compression.lz4.level",
        INT,
        9,
        "Level of lz4 if compression.type is lz4 and the broker recompresses a batch: 1 to 17; 9, "
        "the default, is the fast one, as in Kafka.",
        minimum=1,
        maximum=17,
        fallback="compression.lz4.level",
    ),
    _topic(
        "compression.zstd.level",
        INT,
        3,
        "Level of zstd if compression.type is zstd and the broker recompresses a batch: from "
        "-131072 (fast) to 22 (small).",
        minimum=-131072,
        maximum=22,
        fallback="compression.zstd.level",
    ),
    _topic(
        "max.message.bytes",
        INT,
        1024**2 + 12,
        "Maximum bytes of a record batch, as it is stored.",
        minimum=0,
        fallback="message.max.bytes",
    ),
    _topic(
        "message.timestamp.type",
        STRING,
        "CreateTime",
        "Timestamp of a record: the time at which the producer created it (CreateTime) or at "
        "which the broker appended it (LogAppendTime).",
        choices=TIMESTAMP_TYPES,
        fallback="log.message.timestamp.type",
    ),
    _topic(
        "message.timestamp.before.max.ms",
        LONG,
        LONG_MAX,
        "Maximum milliseconds that a producer's timestamp may be before the broker's clock.",
        minimum=0,
        fallback="log.message.timestamp.before.max.ms",
    ),
    _topic(
        "message.timestamp.after.max.ms",
        LONG,
        3_600_000,
        "Maximum milliseconds that a producer's timestamp may be after the broker's clock.",
        minimum=0,
        fallback="log.message.timestamp.after.max.ms",
    ),
)

_OWN = (
    _topic(
        "strict.records",
        BOOLEAN,
        False,
        "Ottla's own: check each record of every produced batch, as Kafka does. By default the "
        "broker trusts the checksum and the header unless the topic's options depend on the "
        "records, which takes a fraction of the time.",
        fallback="log.strict.records",
    ),
)

_THROTTLING = (
    _topic(
        "leader.replication.throttled.replicas",
        LIST,
        [],
        "Replicas, as partition:broker or * for all, whose traffic to followers is limited by "
        "leader.replication.throttled.rate while they lead.",
        check=throttled_replicas,
    ),
    _topic(
        "follower.replication.throttled.replicas",
        LIST,
        [],
        "Replicas, as partition:broker or * for all, whose traffic from leaders is limited by "
        "follower.replication.throttled.rate while they are out of sync.",
        check=throttled_replicas,
    ),
)

ROWS = _SEGMENTS + _DURABILITY + _RETENTION + _COMPACTION + _RECORDS + _OWN + _THROTTLING
