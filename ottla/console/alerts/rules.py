"""Rules: when an alert fires, and who is notified. Pure."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from ottla.base.errors import ConfigError
from ottla.base.text.patterns import Expression

NAME_LENGTH = 80
_PATTERN_LENGTH = 500
_DAY_S = 86_400


class RuleKind(Enum):
    """The measure of a rule."""

    LAG = "lag"
    LAG_SECONDS = "lag-seconds"
    UNDER_REPLICATED = "under-replicated"
    OFFLINE = "offline"
    DISK_FREE = "disk-free"
    DISK_USED = "disk-used"
    ABSENT_BROKER = "absent-broker"
    ERROR_RATE = "error-rate"
    UNAVAILABLE = "unavailable"


class Severity(Enum):
    """The severity of an incident."""

    WARNING = "warning"
    CRITICAL = "critical"


class Measure(Enum):
    """The subjects of a kind of rule: what `targets` matches, and what an incident is about."""

    GROUP = "group"
    TOPIC = "topic"
    BROKER = "broker"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class KindFacts:
    """The name of a kind of rule, and the unit of its threshold (empty without a threshold)."""

    label: str
    unit: str
    measure: Measure
    fires_below: bool = False


KINDS: Mapping[RuleKind, KindFacts] = {
    RuleKind.LAG: KindFacts("Lag of a group", "records", Measure.GROUP),
    RuleKind.LAG_SECONDS: KindFacts("Lag of a group in seconds", "seconds", Measure.GROUP),
    RuleKind.UNDER_REPLICATED: KindFacts(
        "Under-replicated partitions", "partitions", Measure.TOPIC
    ),
    RuleKind.OFFLINE: KindFacts("Offline partitions", "partitions", Measure.TOPIC),
    RuleKind.DISK_FREE: KindFacts(
        "Free bytes on a broker's disks", "bytes", Measure.BROKER, fires_below=True
    ),
    RuleKind.DISK_USED: KindFacts("Used share of a broker's disks", "percent", Measure.BROKER),
    RuleKind.ABSENT_BROKER: KindFacts("Absent broker", "", Measure.BROKER),
    RuleKind.ERROR_RATE: KindFacts("Error responses of a broker", "errors/s", Measure.BROKER),
    RuleKind.UNAVAILABLE: KindFacts("Cluster does not respond", "", Measure.CLUSTER),
}


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule.

    It fires if the measure is above `threshold` (for free bytes: below it) for `for_s` seconds.
    `cluster` is empty for all clusters; `targets` (RE2, whole name) selects groups, topics or
    brokers by id, and is empty for all of them. While it fires, a notification is repeated after
    `repeat_s` seconds; 0 is never. `channels` are the numbers of channels.
    """

    name: str
    kind: RuleKind
    threshold: float = 0.0
    cluster: str = ""
    targets: str = ""
    for_s: int = 60
    repeat_s: int = 3600
    severity: Severity = Severity.WARNING
    channels: tuple[int, ...] = ()
    is_enabled: bool = True

    def check(self) -> None:
        """Raise ConfigError for a value that makes no sense."""
        if not self.name.strip() or len(self.name) > NAME_LENGTH:
            raise ConfigError(f"the name of a rule has 1 to {NAME_LENGTH} characters")
        if not 0 <= self.threshold < 2**63:
            raise ConfigError(f"threshold is {self.threshold}: use a number from 0 on")
        if self.kind is RuleKind.DISK_USED and self.threshold > 100:
            raise ConfigError(f"threshold is {self.threshold}: the share is 0 to 100 percent")
        if not 0 <= self.for_s <= _DAY_S:
            raise ConfigError(f"for_s is {self.for_s}: use 0 to {_DAY_S} seconds")
        if self.repeat_s and not 60 <= self.repeat_s <= 7 * _DAY_S:
            raise ConfigError(f"repeat_s is {self.repeat_s}: use 0, or 60 to {7 * _DAY_S} seconds")
        if len(self.targets) > _PATTERN_LENGTH:
            raise ConfigError(f"targets has more than {_PATTERN_LENGTH} characters")
        Expression(self.targets)

    def applies_to(self, cluster: str) -> bool:
        """Return True if the rule is about a cluster."""
        return self.is_enabled and self.cluster in ("", cluster)

    def selects(self, name: str) -> bool:
        """Return True if the rule is about a group, topic or broker."""
        return not self.targets or _pattern(self.targets).matches(name)


# The rules of a new console: faults of any cluster. How much lag is a fault depends on the
# application, and channels are for admins to name.
FIRST_RULES = (
    Rule("Cluster does not respond", RuleKind.UNAVAILABLE, severity=Severity.CRITICAL),
    Rule("Absent broker", RuleKind.ABSENT_BROKER, severity=Severity.CRITICAL),
    Rule("Offline partitions", RuleKind.OFFLINE, severity=Severity.CRITICAL),
    Rule("Under-replicated partitions", RuleKind.UNDER_REPLICATED, for_s=300),
    Rule("Used disks", RuleKind.DISK_USED, threshold=85, for_s=300),
)


@functools.lru_cache(256)
def _pattern(text: str) -> Expression:
    return Expression(text)
