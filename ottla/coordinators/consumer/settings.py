"""The options for groups of the consumer protocol, the broker's and a single group's.

Follows Kafka's GroupCoordinatorConfig and GroupConfig.
"""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from ottla.base.options import Snapshot

PROTOCOL = "consumer"


class MigrationPolicy(Enum):
    """The directions in which a group with members may change its protocol."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def allows_upgrade(self) -> bool:
        """True if a classic group with members may be converted to the consumer protocol."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def allows_downgrade(self) -> bool:
        """True if a group becomes classic when only classic members are left."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


class ConsumerSettings(NamedTuple):
    """Limits and times (ms) of groups; Kafka's defaults, except at most one assignment per second.

    The first of `assignors` is the default for groups that request none. `is_enabled` is True if
    group.coordinator.rebalance.protocols contains the consumer protocol.
    """

    is_enabled: bool = True
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5000
    assignment_interval_ms: int = 0
    regex_refresh_interval_ms: int = 600_000
    max_size: int = 2**31 - 1
    classic_max_size: int = 2**31 - 1
    assignors: tuple[str, ...] = ("uniform", "range")
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL

    @classmethod
    def from_options(cls, options: Snapshot) -> "ConsumerSettings":
        """Read the broker's options by their Kafka names."""
        return cls(
            is_enabled=PROTOCOL in options.strings("group.coordinator.rebalance.protocols"),
            session_timeout_ms=options.integer("group.consumer.session.timeout.ms"),
            heartbeat_interval_ms=options.integer("group.consumer.heartbeat.interval.ms"),
            assignment_interval_ms=options.integer("group.consumer.assignment.interval.ms"),
            regex_refresh_interval_ms=options.integer("group.consumer.regex.refresh.interval.ms"),
            max_size=options.integer("group.consumer.max.size"),
            classic_max_size=options.integer("group.max.size"),
            assignors=tuple(options.strings("group.consumer.assignors")),
            migration_policy=MigrationPolicy(
                options.text("group.consumer.migration.policy").lower()
            ),
        )

    def of_group(self, own: Mapping[str, int]) -> "ConsumerSettings":
        """Return the settings of one group; `own` contains its dynamic options by name."""
        if not own:
            return self
        return self._replace(
            session_timeout_ms=own.get("consumer.session.timeout.ms", self.session_timeout_ms),
            heartbeat_interval_ms=own.get(
                "consumer.heartbeat.interval.ms", self.heartbeat_interval_ms
            ),
            assignment_interval_ms=own.get(
                "consumer.assignment.interval.ms", self.assignment_interval_ms
            ),
        )
