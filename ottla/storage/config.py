"""The settings of one log, by the names of Kafka's topic options; an immutable value.

Built from an option snapshot when a topic is created or altered. Properties that the append path
needs for every batch (is the topic compacted, must records be read) are computed once, here.
"""

import functools
from dataclasses import dataclass, field

from ottla.base.options import Snapshot
from ottla.wire.records.compression import CODECS, GZIP, LZ4, ZSTD

LONG_MAX = 2**63 - 1
DAY_MS = 24 * 3600 * 1000

LOG_APPEND_TIME = "LogAppendTime"
CREATE_TIME = "CreateTime"
_KEEP_CODEC = "producer"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """The topic options that apply to a log; the defaults are Kafka's.

    `strict_records` makes every append check its records as Kafka does; by default Ottla trusts the
    checksum and the header (`trusts_headers`). `codec` is None if batches keep the producer's
    codec; `codec_level` is None if the codec has no levels.
    """

    segment_bytes: int = 1024**3
    segment_ms: int = 7 * DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * 1024**2
    index_interval_bytes: int = 4096
    file_delete_delay_ms: int = 60_000
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    flush_on_ack: bool = False
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    retention_bytes: int = -1
    retention_ms: int = 7 * DAY_MS
    delete_retention_ms: int = DAY_MS
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LONG_MAX
    compression_type: str = _KEEP_CODEC
    max_message_bytes: int = 1024**2 + 12
    message_timestamp_type: str = CREATE_TIME
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_after_max_ms: int = 3_600_000
    producer_id_expiration_ms: int = DAY_MS
    strict_records: bool = False
    gzip_level: int = -1
    lz4_level: int = 9
    zstd_level: int = 3
    is_compacted: bool = field(init=False)
    has_log_append_time: bool = field(init=False)
    opens_records: bool = field(init=False)
    trusts_headers: bool = field(init=False)
    codec: int | None = field(init=False)
    codec_level: int | None = field(init=False)
    roll_ms: int = field(init=False)
    # The settings that `ottla.storage.log.validation` depends on: equal values, equal verdicts.
    validation_options: tuple[object, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        compacted = "compact" in self.cleanup_policy
        append_time = self.message_timestamp_type == LOG_APPEND_TIME
        bounded = self.message_timestamp_before_max_ms < LONG_MAX and not append_time
        set_field(self, "is_compacted", compacted)
        set_field(self, "has_log_append_time", append_time)
        set_field(self, "opens_records", compacted or bounded or self.strict_records)
        codec = _codec(self.compression_type)
        set_field(self, "codec", codec)
        levels = {GZIP: self.gzip_level, LZ4: self.lz4_level, ZSTD: self.zstd_level}
        set_field(self, "codec_level", None if codec is None else levels.get(codec))
        # Records in the last segment are not compacted.
        lag_ms = self.max_compaction_lag_ms if compacted else LONG_MAX
        set_field(self, "roll_ms", min(self.segment_ms, lag_ms))
        set_field(
            self, "trusts_headers", not (self.opens_records or append_time or codec is not None)
        )
        options = (
            compacted,
            append_time,
            self.opens_records,
            codec,
            self.codec_level,
            self.max_message_bytes,
            self.message_timestamp_before_max_ms,
            self.message_timestamp_after_max_ms,
        )
        set_field(self, "validation_options", options)

    @property
    def deletes_by_retention(self) -> bool:
        """True if segments may be deleted by age and size; a topic that is only compacted keeps
        them.
        """
        return "delete" in self.cleanup_policy

    @classmethod
    # Topics without settings of their own share a snapshot: a thousand logs then share this value.
    @functools.lru_cache(maxsize=32)
    def from_options(cls, snapshot: Snapshot) -> "LogConfig":
        """Read the topic options; options that do not apply to logs are ignored."""
        return cls(
            segment_bytes=snapshot["internal.segment.bytes"] or snapshot.integer("segment.bytes"),
            segment_ms=snapshot.integer("segment.ms"),
            segment_jitter_ms=snapshot.integer("segment.jitter.ms"),
            segment_index_bytes=snapshot.integer("segment.index.bytes"),
            index_interval_bytes=snapshot.integer("index.interval.bytes"),
            file_delete_delay_ms=snapshot.integer("file.delete.delay.ms"),
            flush_messages=snapshot.integer("flush.messages"),
            flush_ms=snapshot.integer("flush.ms"),
            flush_on_ack=snapshot.boolean("flush.on.ack"),
            cleanup_policy=frozenset(snapshot.strings("cleanup.policy")),
            retention_bytes=snapshot.integer("retention.bytes"),
            retention_ms=snapshot.integer("retention.ms"),
            delete_retention_ms=snapshot.integer("delete.retention.ms"),
            min_cleanable_dirty_ratio=snapshot["min.cleanable.dirty.ratio"],
            min_compaction_lag_ms=snapshot.integer("min.compaction.lag.ms"),
            max_compaction_lag_ms=snapshot.integer("max.compaction.lag.ms"),
            compression_type=snapshot.text("compression.type"),
            max_message_bytes=snapshot.integer("max.message.bytes"),
            message_timestamp_type=snapshot.text("message.timestamp.type"),
            message_timestamp_before_max_ms=snapshot.integer("message.timestamp.before.max.ms"),
            message_timestamp_after_max_ms=snapshot.integer("message.timestamp.after.max.ms"),
            producer_id_expiration_ms=snapshot.explicit.get("producer.id.expiration.ms", DAY_MS),
            gzip_level=snapshot.integer("compression.gzip.level"),
            lz4_level=snapshot.integer("compression.lz4.level"),
            zstd_level=snapshot.integer("compression.zstd.level"),
            strict_records=snapshot.boolean("strict.records"),
        )


def _codec(compression_type: str) -> int | None:
    if compression_type == _KEEP_CODEC:
        return None
    return CODECS["none" if compression_type == "uncompressed" else compression_type]
