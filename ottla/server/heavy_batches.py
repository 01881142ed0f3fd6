"""Batches whose records take long to judge: unpacked, walked or packed anew off the event loop.

One at a time, so that what some of them unpack to is never in memory together. A few kilobytes from a
stranger may stand for gigabytes; see `ottla.storage.validation` for where that ends.
"""

import asyncio
from functools import partial

from ottla.base.clock import Clock
from ottla.base.files import FileSystem
from ottla.replication.partition import Partition
from ottla.storage import validation
from ottla.storage.validation import AppendInfo


class HeavyBatches:
    """Lives on the broker's loop."""

    def __init__(self, files: FileSystem, clock: Clock) -> None:
        self._files = files
        self._clock = clock
        self._turn = asyncio.Lock()

    async def append(self, target: Partition, records: bytearray, acks: int) -> AppendInfo:
        """Judge a batch off the loop, then append it; errors as of `Partition.append_as_leader`."""
        async with self._turn:
            work = partial(validation.vet, records, target.log.config, self._clock.time_ms())
            vetted = await self._files.in_background(work)
        return target.append_as_leader(vetted, acks=acks)
