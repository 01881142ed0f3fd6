"""The methods of AdminClient for topics, their records and their configuration."""

from collections.abc import Mapping, Sequence

from ottla.client.admin import configs, offsets, records, topics
from ottla.client.admin.config_values import ConfigValue
from ottla.client.admin.methods.connected import Connected

Key = tuple[str, int]


class TopicMethods(Connected):
    """Topics, their records and their configuration."""

    def list_topics(self, *, include_internal: bool = False) -> list[topics.Topic]:
        """Return the topics by name."""
        listed = topics.list_topics(self._brokers)
        return [row for row in listed if include_internal or not row.is_internal]

    def describe_topic(
        self, name: str | bytes, *, include_authorized_operations: bool = False
    ) -> topics.Topic:
        """Return a topic with leaders, replicas and ISR; ApiError if there is none.

        Bytes are its id (KIP-516), which another topic of the same name does not have.
        """
        return topics.describe_topic(
            self._brokers, name, include_authorized_operations=include_authorized_operations
        )

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = topics.BROKER_DEFAULT,
        replication_factor: int = topics.BROKER_DEFAULT,
        assignments: Sequence[Sequence[int]] = (),
        config: Mapping[str, ConfigValue] | None = None,
        validate_only: bool = False,
    ) -> topics.CreatedTopic:
        """Create a topic; the broker's defaults replace numbers that are not given.

        `assignments` replaces the numbers: the brokers of each partition, the preferred leader
        first.

        Raises ApiError TOPIC_ALREADY_EXISTS, INVALID_CONFIG, INVALID_REPLICATION_FACTOR and others.
        """
        return topics.create_topic(
            self._brokers,
            name,
            partitions=partitions,
            replication_factor=replication_factor,
            assignments=assignments,
            config=config,
            validate_only=validate_only,
        )

    def create_partitions(
        self,
        name: str,
        total: int,
        *,
        assignments: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Increase a topic to `total` partitions; keys may move to other partitions.

        `assignments` has the brokers of each new partition, the preferred leader first.
        """
        topics.add_partitions(
            self._brokers, name, total, assignments=assignments, validate_only=validate_only
        )

    def delete_topic(self, name: str | bytes) -> None:
        """Delete a topic and its records, by its name or id; ApiError if there is none."""
        topics.delete_topic(self._brokers, name)

    def delete_records(self, before: Mapping[Key, int]) -> dict[Key, int]:
        """Delete the records before an offset (-1: all); return the new start of each partition."""
        return records.delete_records(self._brokers, before)

    def list_offsets(
        self, timestamps: Mapping[Key, int], *, read_committed: bool = False
    ) -> dict[Key, offsets.FoundOffset]:
        """Return the first offset at or after a time (ms) in each partition.

        -1 is the end, -2 the beginning, -3 the record with the largest timestamp, -4 the beginning
        of the local log, and -5 the end of the tiered one. With
        `read_committed` the end is before the first open transaction.
        """
        level = offsets.READ_COMMITTED if read_committed else offsets.READ_UNCOMMITTED
        return offsets.list_offsets(self._brokers, timestamps, isolation_level=level)

    def describe_topic_config(self, name: str) -> list[configs.ConfigEntry]:
        """Return the options of a topic, each with its source."""
        resource = configs.Resource(configs.ResourceType.TOPIC, name)
        return configs.describe_config(self._brokers, resource)

    def alter_topic_config(
        self,
        name: str,
        assign: Mapping[str, ConfigValue] | None = None,
        *,
        delete: Sequence[str] = (),
    ) -> None:
        """Set options of a topic and reset others to their defaults, all or nothing."""
        resource = configs.Resource(configs.ResourceType.TOPIC, name)
        configs.alter_config(self._brokers, resource, assign=assign, delete=delete)
