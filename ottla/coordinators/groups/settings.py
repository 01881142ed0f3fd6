"""The broker options for groups, read once for each snapshot of them."""

from typing import NamedTuple

from ottla.base.options import Snapshot
from ottla.coordinators.classic.settings import MachineSettings
from ottla.coordinators.consumer.settings import ConsumerSettings
from ottla.coordinators.hosted import RuntimeSettings

_MS_PER_MINUTE = 60_000


class GroupSettings(NamedTuple):
    """Limits and times (ms) of groups; the defaults are Kafka's."""

    machine: MachineSettings = MachineSettings()
    runtime: RuntimeSettings = RuntimeSettings()
    consumer: ConsumerSettings = ConsumerSettings()
    min_session_timeout_ms: int = 6000
    max_session_timeout_ms: int = 1_800_000
    offset_metadata_bytes_max: int = 4096
    offsets_retention_ms: int = 7 * 24 * 60 * _MS_PER_MINUTE
    retention_check_interval_ms: int = 600_000
    offsets_partitions: int = 50

    @classmethod
    def from_options(cls, options: Snapshot) -> "GroupSettings":
        """Read the options by their Kafka names."""
        return cls(
            machine=MachineSettings(
                initial_rebalance_delay_ms=options.integer("group.initial.rebalance.delay.ms"),
                max_size=options.integer("group.max.size"),
            ),
            runtime=RuntimeSettings(
                commit_timeout_ms=options.integer("offsets.commit.timeout.ms"),
                compression=options.integer("offsets.topic.compression.codec"),
                load_bytes=options.integer("offsets.load.buffer.size"),
            ),
            consumer=ConsumerSettings.from_options(options),
            min_session_timeout_ms=options.integer("group.min.session.timeout.ms"),
            max_session_timeout_ms=options.integer("group.max.session.timeout.ms"),
            offset_metadata_bytes_max=options.integer("offset.metadata.max.bytes"),
            offsets_retention_ms=options.integer("offsets.retention.minutes") * _MS_PER_MINUTE,
            retention_check_interval_ms=options.integer("offsets.retention.check.interval.ms"),
            offsets_partitions=options.integer("offsets.topic.num.partitions"),
        )
