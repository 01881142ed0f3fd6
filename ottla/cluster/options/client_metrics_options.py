"""The options of a subscription to client metrics, a config resource of type 16 (KIP-714).

Names, types, defaults and limits are the same as in Apache Kafka 4.3. Follows
org.apache.kafka.server.metrics.ClientMetricsConfigs; `server.telemetry.subscriptions` applies them.
"""

from ottla.base.options import OptionType, Scope, Table
from ottla.cluster.options.option_rows import Rows

_row = Rows(Scope.CLIENT_METRICS).row

INTERVAL_MS_DEFAULT = 300_000

CLIENT_METRICS_OPTIONS = Table(
    (
        _row(
            "interval.ms",
            OptionType.INT,
            INTERVAL_MS_DEFAULT,
            "Milliseconds between two pushes of a client.",
            minimum=100,
            maximum=3_600_000,
        ),
        _row(
            "match",
            OptionType.LIST,
            [],
            "Selects the clients, as attribute=expression, with regular expressions of RE2; a client "
            "must match all of them.",
        ),
        _row(
            "metrics",
            OptionType.LIST,
            [],
            "Name prefixes of the metrics that clients push; * selects all metrics.",
        ),
    )
)
