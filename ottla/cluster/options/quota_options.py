"""The options of quotas, of throttled replication and of client metrics.

Names, types and limits are the same as in Apache Kafka 4.3. Follows
org.apache.kafka.server.config.QuotaConfig and org.apache.kafka.server.metrics.MetricConfigs.
"""

from ottla.base.options import OptionType, Scope
from ottla.cluster.options.option_rows import LONG_MAX, Rows

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
        "telemetry.max.bytes",
        INT,
        1024 * 1024,
        "Maximum bytes of the metrics in one push of a client, compressed or not.",
        minimum=1,
    ),
)
