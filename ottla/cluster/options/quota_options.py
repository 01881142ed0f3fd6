"""The options of quotas and of client metrics.

Names, types and limits are those of Apache Kafka 4.3. Follows org.apache.kafka.server.config.QuotaConfig
and org.apache.kafka.server.metrics.MetricConfigs.
"""

from ottla.base.options import OptionType, Scope
from ottla.cluster.options.option_rows import Rows

INT = OptionType.INT
_broker = Rows(Scope.BROKER, dynamic=False).row

ROWS = (
    _broker(
        "quota.window.num",
        INT,
        11,
        "Samples over which the rates of client quotas are taken, the current one included.",
        minimum=1,
    ),
    _broker(
        "quota.window.size.seconds",
        INT,
        1,
        "Seconds of one sample of client quotas.",
        minimum=1,
    ),
    _broker(
        "controller.quota.window.num",
        INT,
        11,
        "Samples that the quota of controller mutations can save up for a burst.",
        minimum=1,
    ),
    _broker(
        "controller.quota.window.size.seconds",
        INT,
        1,
        "Seconds of one sample of the quota of controller mutations.",
        minimum=1,
    ),
    _broker(
        "telemetry.max.bytes",
        INT,
        1024 * 1024,
        "Most bytes of the metrics that a client pushes at once, compressed or not.",
        minimum=1,
    ),
)
