"""A RecordConsumer in a group with any of Kafka's assignors, for the tools."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.base.loading import deferred_module
from ottla.client.config.choices import has_librdkafka
from ottla.client.raw.consumer import RecordConsumer
from ottla.client.transport import Settings

# Only a few groups have assignors that librdkafka lacks.
if TYPE_CHECKING:
    from ottla.client.group import departures, group_consumer
else:
    departures = deferred_module("ottla.client.group.departures")
    group_consumer = deferred_module("ottla.client.group.group_consumer")


def open_record_consumer(
    bootstrap: str,
    *,
    group_id: str | None,
    settings: Settings,
    on_down: Callable[[], None] | None = None,
) -> RecordConsumer:
    """Return a consumer; ClientError or ConfigError names a wrong setting."""
    strategy = str(settings.get("partition.assignment.strategy", ""))
    assignors = strategy.split(",") if strategy else []
    if group_id is None or has_librdkafka(assignors):
        return RecordConsumer(bootstrap, group_id=group_id, settings=settings, on_down=on_down)

    def opened(properties: dict[str, object]) -> object:
        reasons = departures.Departures(group_id, properties)
        return group_consumer.open_group_consumer(properties, assignors, reasons)

    return RecordConsumer(
        bootstrap, group_id=group_id, settings=settings, on_down=on_down, opened=opened
    )
