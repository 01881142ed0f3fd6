"""The options of groups of the consumer protocol: the broker's, and those of a single group.

Names, types and limits are those of Apache Kafka 4.3; a default that differs says so in its text.
Follows org.apache.kafka.coordinator.group.GroupCoordinatorConfig and GroupConfig (KIP-848, KIP-1263).
"""

from collections.abc import Sequence

from ottla.base.options import OptionType, Scope
from ottla.cluster.option_rows import INT_MAX, Rows, no_duplicates

INT, LIST, STRING = OptionType.INT, OptionType.LIST, OptionType.STRING
_broker = Rows(Scope.BROKER, dynamic=False).row

ASSIGNORS = ("uniform", "range")
PROTOCOLS = ("classic", "consumer", "share", "streams")
_POLICIES = ("bidirectional", "upgrade", "downgrade", "disabled")


def _protocols(value: Sequence[str]) -> str | None:
    unknown = [item for item in value if item not in PROTOCOLS]
    if unknown:
        return f"it must be of: {', '.join(PROTOCOLS)}"
    if "classic" not in value:
        return "it must name the classic protocol"
    return no_duplicates(value)


def _assignors(value: Sequence[str]) -> str | None:
    if not value or any(item not in ASSIGNORS for item in value):
        return f"it must name some of: {', '.join(ASSIGNORS)}"
    return no_duplicates(value)


def _policy(value: str) -> str | None:
    return None if value.lower() in _POLICIES else f"it must be one of: {', '.join(_POLICIES)}"


BROKER_ROWS = (
    _broker(
        "group.coordinator.rebalance.protocols",
        LIST,
        ["classic", "consumer"],
        "Protocols that groups may use. Kafka: also streams and share, which Ottla does not serve.",
        _protocols,
    ),
    _broker(
        "group.consumer.session.timeout.ms",
        INT,
        45_000,
        "Milliseconds after which a member of the consumer protocol that was not heard of is "
        "removed.",
        minimum=1,
    ),
    _broker(
        "group.consumer.min.session.timeout.ms",
        INT,
        45_000,
        "Shortest consumer.session.timeout.ms that a group may be given.",
        minimum=1,
    ),
    _broker(
        "group.consumer.max.session.timeout.ms",
        INT,
        60_000,
        "Longest consumer.session.timeout.ms that a group may be given.",
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
        "Shortest consumer.heartbeat.interval.ms that a group may be given.",
        minimum=1,
    ),
    _broker(
        "group.consumer.max.heartbeat.interval.ms",
        INT,
        15_000,
        "Longest consumer.heartbeat.interval.ms that a group may be given.",
        minimum=1,
    ),
    _broker(
        "group.consumer.max.size",
        INT,
        INT_MAX,
        "Most members of one group of the consumer protocol.",
        minimum=1,
    ),
    _broker(
        "group.consumer.assignors",
        LIST,
        list(ASSIGNORS),
        "Assignors that members may ask for; the first one serves those that ask for none.",
        _assignors,
    ),
    _broker(
        "group.consumer.migration.policy",
        STRING,
        "bidirectional",
        "Which way a group with members may change its protocol: bidirectional, upgrade (to the "
        "consumer protocol), downgrade (to the classic one) or disabled.",
        _policy,
    ),
    _broker(
        "group.consumer.assignment.interval.ms",
        INT,
        0,
        "Milliseconds between two assignments of a group. Kafka: 1000.",
        minimum=0,
    ),
    _broker(
        "group.consumer.min.assignment.interval.ms",
        INT,
        0,
        "Shortest consumer.assignment.interval.ms that a group may be given.",
        minimum=0,
    ),
    _broker(
        "group.consumer.max.assignment.interval.ms",
        INT,
        15_000,
        "Longest consumer.assignment.interval.ms that a group may be given.",
        minimum=0,
    ),
    _broker(
        "group.consumer.regex.refresh.interval.ms",
        INT,
        600_000,
        "Milliseconds after which the regular expressions of a group are looked up again.",
        minimum=10_000,
    ),
)
