"""One stage of a pipeline as Spark's transformWithState runs it: a slot's rows in, rows out, pages in its state."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import (
    MapState,
    StatefulProcessor,
    StatefulProcessorHandle,
)

from ottla.streams.spark.envelopes import SCHEMA, Envelope
from ottla.streams.spark.shipping import Shipment
from ottla.streams.spark.workers import settle_after_work

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

_COLUMNS = SCHEMA.names


class StatePages:
    """A PageStore in a map state of Spark's: of the slot whose rows are handled."""

    def __init__(self, state: MapState) -> None:
        self._state = state

    def get(self, name: str) -> bytes | None:
        """Return a page."""
        found = self._state.getValue((name,))
        return None if found is None else bytes(found[0])

    def put(self, name: str, page: bytes) -> None:
        """Set a page."""
        self._state.updateValue((name,), (page,))

    def remove(self, name: str) -> None:
        """Remove a page."""
        self._state.removeKey((name,))


class StageProcessor(StatefulProcessor):
    """Runs the tasks of one level. Spark hands arguments over by their names."""

    def __init__(self, shipment: Shipment, level: int) -> None:
        self._shipment = shipment
        self._level = level

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._pages = StatePages(handle.getMapState("pages", "name string", "page binary"))

    def handleInputRows(
        self, key: Any, rows: "Iterator[pd.DataFrame]", timerValues: Any
    ) -> "Iterator[pd.DataFrame]":
        """Handle the envelopes of one slot."""
        # Only here, where Spark has imported it: the processes that plan would take a second longer to start.
        import pandas as pd

        slot = int(key[0])
        frames = [frame[_COLUMNS[1:]] for frame in rows]
        arrived = (
            Envelope(slot, int(row[0]), str(row[1]), int(row[2]), int(row[3]), bytes(row[4]))
            for frame in frames
            for row in frame.itertuples(index=False, name=None)
        )
        found = list(self._shipment.stage(self._level).handle(slot, arrived, self._pages))
        if found:
            yield pd.DataFrame(found, columns=_COLUMNS)

    def close(self) -> None:
        """Let go of nothing: Spark closes the state."""
        settle_after_work()
