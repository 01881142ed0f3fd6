"""A stage of a topology as Spark's transformWithState runs it: a slot's rows in, rows out, pages in
its state.
"""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    MapState,
    StatefulProcessor,
    StatefulProcessorHandle,
)

from ottla.streams.spark.connector.workers import freeze_objects_after_first_task
from ottla.streams.spark.layout.envelopes import SCHEMA, Envelope
from ottla.streams.spark.stages.shipping import Shipment

_ROW = Row(*SCHEMA.names)


class StatePages:
    """A PageStore in a map state of Spark, for the slot whose rows are being handled."""

    def __init__(self, state: MapState) -> None:
        self._state = state

    def get(self, name: str) -> bytes | None:
        """Return a page; None if it does not exist."""
        result = self._state.getValue((name,))
        return None if result is None else bytes(result[0])

    def put(self, name: str, page: bytes) -> None:
        """Store a page."""
        self._state.updateValue((name,), (page,))

    def remove(self, name: str) -> None:
        """Remove a page."""
        self._state.removeKey((name,))


class StageProcessor(StatefulProcessor):
    """Runs the tasks of one level. Spark passes arguments by name."""

    def __init__(self, shipment: Shipment, level: int) -> None:
        self._shipment = shipment
        self._level = level

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._pages = StatePages(handle.getMapState("pages", "name string", "page binary"))

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Yield the output for the envelopes of one slot."""
        slot = int(key[0])
        arrived = (
            Envelope(slot, int(row[1]), str(row[2]), int(row[3]), int(row[4]), bytes(row[5]))
            for row in rows
        )
        for row in self._shipment.stage(self._level).handle(slot, arrived, self._pages):
            yield _ROW(*row)

    def close(self) -> None:
        """Do nothing: Spark closes the state."""
        freeze_objects_after_first_task()
