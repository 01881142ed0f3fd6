"""Ships a layout, with the users' functions in it, to Spark's workers: pickled once, unpickled once
in each worker.
"""

import copyreg
import functools
import struct
from dataclasses import dataclass
from typing import Any, cast

from pyspark import cloudpickle

from ottla.streams.layout.layout import Layout
from ottla.streams.settings.handlers import ExceptionHandlers
from ottla.streams.spark.layout.envelopes import Slots
from ottla.streams.spark.stages.tasks import SourceStage, Stage


def _reduce_struct(value: struct.Struct) -> tuple[type[struct.Struct], tuple[str]]:
    return struct.Struct, (value.format,)


# Serdes contain such objects, and Python itself cannot pickle them.
copyreg.pickle(struct.Struct, _reduce_struct)


@dataclass(frozen=True)
class Shipment:
    """A pickled layout; the workers compute `slots` themselves."""

    layout: bytes
    shuffle_partitions: int

    def unpacked(self) -> Layout:
        """Return the layout."""
        return _unpacked(self.layout, self.shuffle_partitions)[0]

    def source_stage(self) -> SourceStage:
        """Return the object that takes batches of the source."""
        layout, slots = _unpacked(self.layout, self.shuffle_partitions)
        return SourceStage(layout, slots)

    def exception_handlers(self) -> ExceptionHandlers:
        """Return the application's exception handlers; the first application's if there are
        several.
        """
        layout, _ = _unpacked(self.layout, self.shuffle_partitions)
        return layout.sub_topologies[0].application.settings.exception_handlers

    def stage(self, level: int) -> Stage:
        """Return the object that runs the tasks of a level."""
        layout, slots = _unpacked(self.layout, self.shuffle_partitions)
        return Stage(layout, slots, level)


def ship(layout: Layout, shuffle_partitions: int) -> Shipment:
    """Return a layout in the form that is sent to workers."""
    return Shipment(cast(Any, cloudpickle).dumps(layout), shuffle_partitions)


@functools.lru_cache(maxsize=16)
def _unpacked(layout: bytes, shuffle_partitions: int) -> tuple[Layout, Slots]:
    result: Layout = cast(Any, cloudpickle).loads(layout)
    return result, Slots(result.task_count, shuffle_partitions)
