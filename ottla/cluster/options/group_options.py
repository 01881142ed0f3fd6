"""The options of groups of the consumer protocol: the broker's, and a single group's.

Names, types and limits are the same as in Apache Kafka 4.3; a default that differs says so in its
text. Follows org.apache.kafka.coordinator.group.GroupCoordinatorConfig and GroupConfig (KIP-848,
KIP-1263).
"""

from collections.abc import Mapping, Sequence

from ottla.base.errors import ConfigError
from ottla.base.options import OptionType, Scope, Snapshot, Table
from ottla.cluster.options.option_rows import Rows, no_duplicates

INT, LIST, STRING = OptionType.INT, OptionType.LIST, OptionType.STRING
_broker = Rows(Scope.BROKER, dynamic=False).row

ASSIGNORS = ("uniform", "range")
PROTOCOLS = ("classic", "consumer", "share", "streams")
_POLICIES = ("bidirectional", "upgrade", "downgrade", "disabled")


def _protocols(value: Sequence[str]) -> str | None:
    unknown = [protocol for protocol in value if protocol not in PROTOCOLS]
    if unknown:
        return f"it must contain only: {', '.join(PROTOCOLS)}"
    if "classic" not in value:
        return "it must contain the classic protocol"
    return no_duplicates(value)


def _assignors(value: Sequence[str]) -> str | None:
    if not value or any(assignor not in ASSIGNORS for assignor in value):
        return f"it must contain one or more of: {', '.join(ASSIGNORS)}"
    return no_duplicates(value)


def _policy(value: str) -> str | None:
    return None if value.lower() in _POLICIES else f"it must be one of: {', '.join(_POLICIES)}"


BROKER_ROWS = (
    _broker(
        "group.coordinator.rebalance.protocols",
        LIST,
        ["classic", "consumer"],
        "Protocols that groups can use. Kafka: also streams and share, which Ottla does not "
        "support.",
        _protocols,
    ),
    _broker(
        "group.consumer.session.timeout.ms",
        INT,
        45_000,
        "Milliseconds without a heartbeat after which a member of the consumer protocol is "
        "removed.",
        minimum=1,
    ),
    _broker(
        "group.consumer.min.session.timeout.ms",
        INT,
        45_000,
        "Minimum consumer.session.timeout.ms of a group.",
        minimum=1,
    ),
    _broker(
        "group.consumer.max.session.timeout.ms",
        INT,
        60_000,
        "Maximum consumer.session.timeout.ms of a group.",
        minimum=1,
    ),
    _broker(
        "group.consumer.heartbeat.interval.ms",
        INT,
        5000,
        "Milliseconds between the heartbeats of a member of the consumer protocol.",
        minimum=1,
    ),
    _broker(
        "group.consumer.min.heartbeat.interval.ms",
        INT,
        5000,
        "Minimum consumer.heartbeat.interval.ms of a group.",
        minimum=1,
    ),
    _broker(
        "group.consumer.max.heartbeat.interval.ms",
        INT,
        15_000,
        "Maximum consumer.heartbeat.interval.ms of a group.",
        minimum=1,
    ),
    _broker(
        "group.consumer.max.size",
        INT,
        10_000,
        "Maximum number of members in a group of the consumer protocol. Kafka: no limit.",
        minimum=1,
    ),
    _broker(
        "group.consumer.assignors",
        LIST,
        list(ASSIGNORS),
        "Assignors that members can select; the first one is the default.",
        _assignors,
    ),
    _broker(
        "group.consumer.migration.policy",
        STRING,
        "bidirectional",
        "Protocol changes that a group with members can make: bidirectional, upgrade (to the "
        "consumer protocol), downgrade (to the classic one) or disabled.",
        _policy,
    ),
    _broker(
        "group.consumer.assignment.interval.ms",
        INT,
        0,
        "Minimum milliseconds between two assignments of a group. Kafka: 1000.",
        minimum=0,
    ),
    _broker(
        "group.consumer.min.assignment.interval.ms",
        INT,
        0,
        "Minimum consumer.assignment.interval.ms of a group.",
        minimum=0,
    ),
    _broker(
        "group.consumer.max.assignment.interval.ms",
        INT,
        15_000,
        "Maximum consumer.assignment.interval.ms of a group.",
        minimum=0,
    ),
    _broker(
        "group.consumer.regex.refresh.interval.ms",
        INT,
        600_000,
        "Milliseconds after which the regular expressions of a group are matched against the "
        "topics again.",
        minimum=10_000,
    ),
)

SESSION_TIMEOUT = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL = "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL = "consumer.assignment.interval.ms"

_group = Rows(Scope.GROUP).row

# The options of a single group: config resources of type 32.
GROUP_OPTIONS = Table(
    (
        _group(
            ASSIGNMENT_INTERVAL,
            INT,
            0,
            "Minimum milliseconds between two assignments of the group.",
            minimum=0,
            fallback=f"group.{ASSIGNMENT_INTERVAL}",
        ),
        _group(
            HEARTBEAT_INTERVAL,
            INT,
            5000,
            "Milliseconds between the heartbeats of a member.",
            minimum=1,
            fallback=f"group.{HEARTBEAT_INTERVAL}",
        ),
        _group(
            SESSION_TIMEOUT,
            INT,
            45_000,
            "Milliseconds without a heartbeat after which a member is removed.",
            minimum=1,
            fallback=f"group.{SESSION_TIMEOUT}",
        ),
    )
)


def check_broker(broker: Snapshot) -> None:
    """Raise ConfigError unless the broker's own values are within the limits it sets for groups."""
    for name in GROUP_OPTIONS.rows:
        low, high = _limits(name, broker)
        value = broker.integer(f"group.{name}")
        if not low <= value <= high:
            raise ConfigError(
                f"Invalid value {value} for configuration group.{name}: it must be from {low} to "
                f"{high}, the limits set by its min and max options"
            )
    if broker.integer(f"group.{SESSION_TIMEOUT}") <= broker.integer(f"group.{HEARTBEAT_INTERVAL}"):
        raise ConfigError(
            f"group.{SESSION_TIMEOUT} must be greater than group.{HEARTBEAT_INTERVAL}"
        )


def check(settings: Mapping[str, str], broker: Snapshot) -> None:
    """Raise ConfigError, with the reason, unless these settings are valid for a group."""
    values = GROUP_OPTIONS.parse(settings).explicit
    for name, value in values.items():
        low, high = _limits(name, broker)
        if not low <= value <= high:
            raise ConfigError(
                f"Invalid value {value} for configuration {name}: it must be from {low} to {high}"
            )
    session, heartbeat = (
        values.get(name, broker.integer(f"group.{name}"))
        for name in (SESSION_TIMEOUT, HEARTBEAT_INTERVAL)
    )
    if (SESSION_TIMEOUT in values or HEARTBEAT_INTERVAL in values) and session <= heartbeat:
        raise ConfigError(
            f"{SESSION_TIMEOUT} ({session}) must be greater than {HEARTBEAT_INTERVAL} ({heartbeat})"
        )


def effective(settings: Mapping[str, str], broker: Snapshot) -> dict[str, int]:
    """Return a group's own settings, clamped to the broker's current limits."""
    bounded = {}
    for name, value in GROUP_OPTIONS.parse(settings).explicit.items():
        low, high = _limits(name, broker)
        bounded[name] = min(max(value, low), high)
    return bounded


def _limits(name: str, broker: Snapshot) -> tuple[int, int]:
    family, _, suffix = name.partition(".")
    lowest, highest = (f"group.{family}.{end}.{suffix}" for end in ("min", "max"))
    return broker.integer(lowest), broker.integer(highest)
