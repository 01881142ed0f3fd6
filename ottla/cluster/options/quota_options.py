"""The options of quotas, of throttled replication and of client metrics.

Names, types and limits are the same as in Apache Kafka 4.3; it does not have
message.decompressed.max.bytes. Follows
org.apache.kafka.server.config.QuotaConfig and org.apache.kafka.server.metrics.MetricConfigs.
"""

from ottla.base.options import OptionType, Scope
from ottla.cluster.options.option_rows import LONG_MAX, Rows
from ottla.wire.records.compression import DECOMPRESSED_BYTES_MAX

INT, LONG = OptionType.INT, OptionType.LONG
_broker = Rows(Scope.BROKER, dynamic=False).row

ROWS = (
    _broker(
        "quota.window.num",
        INT,
        11,
        "Number of samples for the rates of client quotas, including the current one.",
        minimum=1,
    ),
    _broker(
        "quota.window.size.seconds",
        INT,
        1,
        "Length of one sample of client quotas in seconds.",
        minimum=1,
    ),
    _broker(
        "controller.quota.window.num",
        INT,
        11,
        "Number of samples that the quota of controller mutations can accumulate for a burst.",
        minimum=1,
    ),
    _broker(
        "controller.quota.window.size.seconds",
        INT,
        1,
        "Length of one sample of the quota of controller mutations in seconds.",
        minimum=1,
    ),
    _broker(
        "replication.quota.window.num",
        INT,
        11,
        "Number of samples for the rates of throttled replication, including the current one.",
        minimum=1,
    ),
    _broker(
        "replication.quota.window.size.seconds",
        INT,
        1,
        "Length of one sample of throttled replication in seconds.",
        minimum=1,
    ),
    _broker(
        "leader.replication.throttled.rate",
        LONG,
        LONG_MAX,
        "Maximum bytes per second that this broker sends to followers, of all replicas in "
        "leader.replication.throttled.replicas that are out of sync (KIP-73).",
        minimum=0,
        dynamic=True,
    ),
    _broker(
        "follower.replication.throttled.rate",
        LONG,
        LONG_MAX,
        "Maximum bytes per second that this broker copies from leaders, of all its replicas in "
        "follower.replication.throttled.replicas that are out of sync (KIP-73).",
        minimum=0,
        dynamic=True,
    ),
    _broker(
        "message.decompressed.max.bytes",
        INT,
        64 * 1024 * 1024,
        "Ottla's own: maximum bytes of the records of a compressed batch after decompression, if the broker has to "
        "read them (on compacted topics, or to compress them with another codec); 16 times max.message.bytes "
        "if that is more. A larger batch is rejected with MESSAGE_TOO_LARGE. Apache Kafka has no limit. Batches "
        "are decompressed one at a time.",
        minimum=1024 * 1024,
        maximum=DECOMPRESSED_BYTES_MAX,
        dynamic=True,
    ),
    _broker(
        "telemetry.max.bytes",
        INT,
        1024 * 1024,
        "Maximum bytes of the metrics in one push of a client, compressed or not.",
        minimum=1,
    ),
)
