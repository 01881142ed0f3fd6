"""Every topic option of Apache Kafka 4.3, with Kafka's defaults and limits, and those of Ottla.

`fallback` names the broker option that gives the value where the topic does not set its own; where
Kafka reads several (hours, minutes, milliseconds), it is the first of `options.topic_synonyms`.
Follows org.apache.kafka.storage.internals.log.LogConfig.
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
    # Accepted silently, it would be trusted to move old segments away.
    return "there is no tiered storage" if value else None


_topic = Rows(Scope.TOPIC).row

_SEGMENTS = (
    _topic(
        "segment.bytes",
        INT,
        1024**3,
        "Bytes after which a new segment of the log is begun; retention and compaction work on "
        "whole segments.",
        minimum=1024**2,
        fallback="log.segment.bytes",
    ),
    _topic(
        "internal.segment.bytes",
        INT,
        None,
        "For tests of rolling and retention: a segment size below the minimum of segment.bytes. "
        "Where it is set, it takes the place of segment.bytes.",
        minimum=14,
    ),
    _topic(
        "segment.ms",
        LONG,
        7 * 24 * 3600 * 1000,
        "Milliseconds after which a new segment is begun even if the last is not full.",
        minimum=1,
        fallback="log.roll.ms",
    ),
    _topic(
        "segment.jitter.ms",
        LONG,
        0,
        "Most milliseconds, chosen at random, by which segment.ms is shortened, so that logs do "
        "not all roll at once.",
        minimum=0,
        fallback="log.roll.jitter.ms",
    ),
    _topic(
        "segment.index.bytes",
        INT,
        10 * 1024**2,
        "Most bytes of one index file; a full index begins a new segment.",
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
        "Milliseconds between taking a segment out of the log and deleting its files.",
        minimum=0,
        fallback="log.segment.delete.delay.ms",
    ),
)

_DURABILITY = (
    _topic(
        "flush.messages",
        LONG,
        LONG_MAX,
        "Records after which the log is forced to the disk; 1 means after every batch.",
        minimum=1,
        fallback="log.flush.interval.messages",
    ),
    _topic(
        "flush.ms",
        LONG,
        LONG_MAX,
        "Milliseconds after which records are forced to the disk.",
        minimum=0,
        fallback="log.flush.interval.ms",
    ),
    _topic(
        "flush.on.ack",
        BOOLEAN,
        False,
        "Ottla's own: force the log to the disk before a produce request is acknowledged, so that "
        "no acknowledged record is lost when every replica loses power at once. __consumer_offsets "
        "and __transaction_state are created with it. docs/durability.md says what it costs.",
        fallback="log.flush.on.ack",
    ),
    _topic(
        "min.insync.replicas",
        INT,
        1,
        "Replicas that must be in sync for a produce with acks=all to be accepted, and for the "
        "high watermark to advance (KIP-966).",
        minimum=1,
        fallback="min.insync.replicas",
    ),
    _topic(
        "unclean.leader.election.enable",
        BOOLEAN,
        False,
        "Let a replica that is not in sync lead when no other is left, although acknowledged "
        "records are lost by that.",
        fallback="unclean.leader.election.enable",
    ),
)

_RETENTION = (
    _topic(
        "cleanup.policy",
        LIST,
        ["delete"],
        "What becomes of old segments: delete (by retention), compact (every record must have a "
        "key; the newest record of each key is kept), both, or nothing at all.",
        choices=CLEANUP_POLICIES,
        fallback="log.cleanup.policy",
    ),
    _topic(
        "retention.bytes",
        LONG,
        -1,
        "Bytes of a partition above which its oldest segments are deleted; -1 for no limit.",
        fallback="log.retention.bytes",
    ),
    _topic(
        "retention.ms",
        LONG,
        7 * 24 * 3600 * 1000,
        "Milliseconds after which a segment is deleted, counted from its newest record; -1 for no "
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
        "Milliseconds for which compaction keeps a record without a value, counted from the first "
        "round that meets it; a consumer that takes no longer from the start sees every deletion.",
        minimum=0,
        fallback="log.cleaner.delete.retention.ms",
    ),
    _topic(
        "min.cleanable.dirty.ratio",
        DOUBLE,
        0.5,
        "Part of a log's bytes that must not have been compacted yet for a new round to begin.",
        minimum=0,
        maximum=1,
        fallback="log.cleaner.min.cleanable.ratio",
    ),
    _topic(
        "min.compaction.lag.ms",
        LONG,
        0,
        "Milliseconds for which a record is kept as it is before it may be compacted.",
        minimum=0,
        fallback="log.cleaner.min.compaction.lag.ms",
    ),
    _topic(
        "max.compaction.lag.ms",
        LONG,
        LONG_MAX,
        "Milliseconds after which a record is compacted however little is dirty; the last segment "
        "is rolled no later than that.",
        minimum=1,
        fallback="log.cleaner.max.compaction.lag.ms",
    ),
)

_RECORDS = (
    _topic(
        "compression.type",
        STRING,
        "producer",
        "Codec of the batches on disk: producer keeps what the client sent; any other makes the "
        "broker compress again.",
        choices=COMPRESSION_TYPES,
        fallback="compression.type",
    ),
    _topic(
        "compression.gzip.level",
        INT,
        -1,
        "Level of gzip where compression.type is gzip and the broker compresses again: "
        "1 (fast) to 9 (small), -1 for the library's choice.",
        check=gzip_level,
        fallback="compression.gzip.level",
    ),
    _topic(
        "compression.lz4.level",
        INT,
        9,
        "Level of lz4 where compression.type is lz4 and the broker compresses again: "
        "1 to 17; 9, the default, is the fast one, as in Kafka.",
        minimum=1,
        maximum=17,
        fallback="compression.lz4.level",
    ),
    _topic(
        "compression.zstd.level",
        INT,
        3,
        "Level of zstd where compression.type is zstd and the broker compresses again: "
        "from -131072 (fast) to 22 (small).",
        minimum=-131072,
        maximum=22,
        fallback="compression.zstd.level",
    ),
    _topic(
        "max.message.bytes",
        INT,
        1024**2 + 12,
        "Most bytes of one record batch, as it is stored.",
        minimum=0,
        fallback="message.max.bytes",
    ),
    _topic(
        "message.timestamp.type",
        STRING,
        "CreateTime",
        "Whose clock gives records their time: the producer's (CreateTime) or the broker's at the "
        "append (LogAppendTime).",
        choices=TIMESTAMP_TYPES,
        fallback="log.message.timestamp.type",
    ),
    _topic(
        "message.timestamp.before.max.ms",
        LONG,
        LONG_MAX,
        "Most milliseconds that a producer's timestamp may lie before the broker's clock.",
        minimum=0,
        fallback="log.message.timestamp.before.max.ms",
    ),
    _topic(
        "message.timestamp.after.max.ms",
        LONG,
        3_600_000,
        "Most milliseconds that a producer's timestamp may lie after the broker's clock.",
        minimum=0,
        fallback="log.message.timestamp.after.max.ms",
    ),
)

_OWN = (
    _topic(
        "strict.records",
        BOOLEAN,
        False,
        "Ottla's own: open every batch that is produced and check each of its records, as Kafka "
        "does. Otherwise the checksum and the header are trusted where nothing depends on the "
        "records, which takes a fraction of the time.",
        fallback="log.strict.records",
    ),
)

_THROTTLING = (
    _topic(
        "leader.replication.throttled.replicas",
        LIST,
        [],
        inert("replication is not throttled"),
        check=throttled_replicas,
    ),
    _topic(
        "follower.replication.throttled.replicas",
        LIST,
        [],
        inert("replication is not throttled"),
        check=throttled_replicas,
    ),
)

ROWS = _SEGMENTS + _DURABILITY + _RETENTION + _COMPACTION + _RECORDS + _OWN + _THROTTLING
