"""A compacted log for tests on any disk: append keys, clean the log, read the remaining records."""

from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from ottla.base.rng import SeededRng
from ottla.storage.cleaner.cleaning import Cleaner, Settings
from ottla.storage.config import LogConfig
from ottla.storage.log.log import Log
from ottla.testing.sim.files import SimFileSystem
from ottla.testing.sim.loop import SimLoop
from ottla.wire.records import control
from ottla.wire.records.records import Record, encode_batch, iterate_batches
from tests.unit.storage.world import TOPIC_ID, World, read_all

T = TypeVar("T")

COMPACT = frozenset({"compact"})
Pair = tuple[bytes, bytes | None]


def in_virtual_time(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end in virtual time, without real waits for the simulated disk."""
    with SimLoop(SeededRng(0)) as loop:
        return loop.run(work)


class Compacted:
    """One log named t-0 whose topic is compacted, and a cleaner that runs when the test calls it."""

    def __init__(self, **fields: Any) -> None:
        defaults = {
            "cleanup_policy": COMPACT,
            "segment_bytes": 400,
            "index_interval_bytes": 80,
            "min_cleanable_dirty_ratio": 0.0,
            "file_delete_delay_ms": 0,
        }
        self.config = LogConfig(**(defaults | fields))
        self.world = World("/data", self.config)
        self.world.files = self.files = SimFileSystem()
        self.settings = Settings()
        self.open()

    def open(self) -> None:
        """Open the log directory."""
        self.directories = self.world.directories()
        self.log: Log = self.directories.create("t", 0, TOPIC_ID, self.config)
        self.log.high_watermark = self.log.log_end_offset
        self.cleaner = Cleaner(
            self.directories,
            files=self.files,
            clock=self.world.clock,
            settings=lambda: self.settings,
        )

    def append(self, *pairs: Pair, **fields: Any) -> int:
        """Append a batch of (key, value); return its first offset."""
        now_ms = self.world.clock.now_ms
        records = [Record(key, value, timestamp=now_ms) for key, value in pairs]
        return self.write(encode_batch(records, **fields))

    def write(self, data: bytearray) -> int:
        """Append a batch that is committed at once."""
        from_client = not data[22] & 0x20
        info = self.log.append_as_leader(data, 0, from_client=from_client)
        self.log.high_watermark = self.log.log_end_offset
        return info.base_offset

    def end_transaction(self, producer_id: int, kind: str, *, epoch: int = 0) -> int:
        """Append a COMMIT or ABORT marker."""
        marker = control.EndTransactionMarker(control.ControlType[kind], 0)
        now_ms = self.world.clock.now_ms
        return self.write(
            control.encode_marker(
                marker, producer_id=producer_id, producer_epoch=epoch, timestamp=now_ms
            )
        )

    def clean(self) -> bool:
        """Roll the log, make it durable, and run the cleaner once."""
        self.log.rolling.roll()
        self.log.durability.flush()
        return in_virtual_time(self.cleaner.clean_dirtiest())

    def pairs(self) -> list[tuple[int, bytes | None, bytes | None]]:
        """Return (offset, key, value) of all records."""
        return [(record.offset, record.key, record.value) for record in read_all(self.log)]

    def headers(self) -> list[tuple[int, int, int]]:
        """Return (first offset, last offset, records) of all batches."""
        result, offset = [], self.log.log_start_offset
        while offset < self.log.log_end_offset:
            fetched = self.log.read(offset, 1 << 20, max_offset=self.log.log_end_offset)
            assert fetched is not None
            for _, header in iterate_batches(fetched.records):
                result.append((header.base_offset, header.last_offset, header.records_count))
            offset = result[-1][1] + 1
        return result

    def names(self) -> Sequence[str]:
        """Return the names of the log's files."""
        return self.files.list("/data/t-0")

    def restart(self, *, clean: bool = False) -> None:
        """End the process and start it again."""
        if clean:
            self.directories.close()
        self.world.files = self.files = self.files.kill()
        self.open()

    def lose_power(self, seed: int) -> None:
        """End the process and the power, and start again."""
        self.world.files = self.files = self.files.power_loss(SeededRng(seed))
        self.open()
