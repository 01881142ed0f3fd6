"""The options of an application that its tasks need."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.streams.processor.api import TimestampExtractor
from ottla.streams.settings.handlers import ExceptionHandlers
from ottla.streams.stores.builders import DefaultSerdes


@dataclass(frozen=True)
class TaskSettings:
    """The options of an application that its tasks need."""

    application_id: str
    defaults: DefaultSerdes = field(default_factory=DefaultSerdes)
    emit_interval_ms: int = 0
    """Kafka looks for closed windows once a second of wall-clock time; 0 looks at every record."""
    partitions: int = 1
    """The number of partitions that a partitioner chooses among, of topics that are not named below."""
    partitions_of: Mapping[str, int] = field(default_factory=dict)
    writes_changelogs: bool = True
    """Whether stores with a changelog write it; an engine that keeps them may do without."""
    default_timestamp_extractor: TimestampExtractor | None = None
    """Gives the time of records of sources that have no extractor of their own."""
    exception_handlers: ExceptionHandlers = field(default_factory=ExceptionHandlers)
    statestore_cache_max_bytes: int = 0
    """How much the caches of tables hold together before they write; 0: every update is emitted."""
    commit_interval_ms: int = 0
    """How much wall-clock time a test driver lets pass between commits; 0: it commits each record."""
    app_configs: Mapping[str, Any] = field(default_factory=dict)
    """The application's own options, for `context.app_configs()`, and its options that are numbers and text."""

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has."""
        return self.partitions_of.get(topic, self.partitions)


def with_prefix(configs: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the options whose names start with a prefix, without it."""
    return {
        name.removeprefix(prefix): value
        for name, value in configs.items()
        if name.startswith(prefix)
    }
