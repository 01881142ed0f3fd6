"""The options of an application that its tasks need."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.streams.model.durations import DAY_MS
from ottla.streams.processor.api import TimestampExtractor
from ottla.streams.serdes import DefaultSerdes
from ottla.streams.settings.handlers import ExceptionHandlers


@dataclass(frozen=True)
class TaskSettings:
    """The options of an application that its tasks need."""

    application_id: str
    defaults: DefaultSerdes = field(default_factory=DefaultSerdes)
    emit_interval_ms: int = 0
    """How often closed windows are emitted; 0: at every record (Kafka: once per second of
    wall-clock time).
    """
    partitions: int = 1
    """The number of partitions of topics that are not in the mapping below, for partitioners."""
    partitions_of: Mapping[str, int] = field(default_factory=dict)
    writes_changelogs: bool = True
    """If stores write their changelogs; an engine that persists the stores may not need them."""
    additional_retention_ms: int = DAY_MS
    """The time added to the retention of window stores in the configuration of their changelogs."""
    default_timestamp_extractor: TimestampExtractor | None = None
    """Returns the timestamps of records of sources without an extractor of their own."""
    exception_handlers: ExceptionHandlers = field(default_factory=ExceptionHandlers)
    statestore_cache_max_bytes: int = 0
    """The total size of the record caches of a task; 0: every update is emitted."""
    commit_interval_ms: int = 0
    """The wall-clock time between commits of a test driver; 0: it commits after each record."""
    app_configs: Mapping[str, Any] = field(default_factory=dict)
    """The options for `context.app_configs()`: the application's own, and those that are numbers or
    strings.
    """

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions of a topic."""
        return self.partitions_of.get(topic, self.partitions)


def with_prefix(configs: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the options whose names start with `prefix`, with the prefix removed."""
    return {
        name.removeprefix(prefix): value
        for name, value in configs.items()
        if name.startswith(prefix)
    }
