"""The log against a list: after any operation and any restart, both have the same records."""

import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ottla.storage.config import LogConfig
from ottla.wire.records.records import Record, encode_batch, iterate_records
from tests.unit.storage.world import START_MS, World, read_all

HOUR_MS = 3_600_000
PRODUCER = 9
# Files that can be lost or damaged at any time without an effect on the log's results.
SIDECARS = (".index", ".timeindex", ".snapshot", "leader-epoch-checkpoint", "partition.metadata")


class Batch(NamedTuple):
    """A batch in the list."""

    base_offset: int
    leader_epoch: int
    timestamps: tuple[int, ...]
    sequence: int

    @property
    def next_offset(self) -> int:
        """The offset after the batch."""
        return self.base_offset + len(self.timestamps)


class LogAgainstList(RuleBasedStateMachine):
    """Appends, truncations, retention, restarts and damage in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        config = LogConfig(
            segment_bytes=1200,
            index_interval_bytes=100,
            file_delete_delay_ms=0,
            retention_ms=24 * HOUR_MS,
        )
        self.world = World(Path(self.folder) / "data", config)
        self.log = self.world.load()
        self.batches: list[Batch] = []
        # The batches of the idempotent producer that were not truncated, whether or not readable.
        self.sent: list[Batch] = []
        self.start = 0
        self.end = 0
        self.epoch = 0
        self.sequence = 0
        self.serial = 0

    def teardown(self) -> None:
        """Remove all files."""
        self.log.abandon()
        shutil.rmtree(self.folder)

    @initialize(epoch=st.integers(0, 5))
    def lead(self, epoch: int) -> None:
        """Set the first leader epoch."""
        self.epoch = epoch

    @rule(step=st.integers(1, 3))
    def new_leader(self, step: int) -> None:
        """Begin a later leader epoch."""
        self.epoch += step

    @rule(
        deltas=st.lists(st.integers(-5000, 5000), min_size=1, max_size=6),
        size=st.integers(0, 120),
        idempotent=st.booleans(),
    )
    def append(self, deltas: list[int], size: int, idempotent: bool) -> None:
        """Append a batch, which gets the next offsets."""
        timestamps = tuple(self.world.clock.now_ms + delta for delta in deltas)
        data = self._batch(timestamps, size, self.sequence if idempotent else -1)
        info = self.log.append_as_leader(data, self.epoch)
        assert (info.base_offset, info.last_offset) == (self.end, self.end + len(deltas) - 1)
        sequence = self.sequence if idempotent else -1
        self.batches.append(Batch(self.end, self.epoch, timestamps, sequence))
        self.end += len(deltas)
        if idempotent:
            self.sequence += len(deltas)
            self.sent.append(self.batches[-1])

    @rule(count=st.integers(1, 40), size=st.integers(0, 200), idempotent=st.booleans())
    def append_many(self, count: int, size: int, idempotent: bool) -> None:
        """Append several batches, so that there are several segments and index entries."""
        for number in range(count):
            self.append([number * 10, -number][: 1 + number % 2], size, idempotent)

    def _batch(self, timestamps: tuple[int, ...], size: int, sequence: int) -> bytearray:
        records = [Record(b"k", b"v" * size, timestamp=timestamp) for timestamp in timestamps]
        if sequence < 0:
            return encode_batch(records)
        return encode_batch(records, producer_id=PRODUCER, producer_epoch=0, base_sequence=sequence)

    @precondition(lambda self: self.sent)
    @rule(back=st.integers(0, 4))
    def repeat(self, back: int) -> None:
        """Repeat one of the last five batches, which is acknowledged again but not written."""
        readable = [batch for batch in self.sent if batch.base_offset >= self.start]
        if back >= len(readable):
            return
        again = readable[-1 - back]
        info = self.log.append_as_leader(self._batch(again.timestamps, 0, again.sequence), 0)
        assert info.is_duplicate
        assert (info.base_offset, info.last_offset) == (again.base_offset, again.next_offset - 1)

    @rule()
    def roll(self) -> None:
        """Begin a new segment."""
        self.log.rolling.roll()

    @rule()
    def flush(self) -> None:
        """Make all records durable."""
        self.log.durability.flush()
        assert self.log.recovery_point == self.end

    @rule(share=st.floats(0.6, 1))
    def truncate(self, share: float) -> None:
        """Truncate from the batch that contains an offset."""
        offset = int(self.start + share * (self.end - self.start))
        self.log.truncation.truncate_to(offset)
        if offset < self.end:
            self.batches = [batch for batch in self.batches if batch.next_offset <= offset]
            self.end = self.log.log_end_offset
            held = max((batch.next_offset for batch in self.batches), default=self.start)
            assert self.end == max(held, min(self.end, offset))
        self.start = min(self.start, self.end)
        self._forget_sent()

    @rule(offset=st.integers(0, 200), chance=st.integers(0, 5))
    def truncate_fully(self, offset: int, chance: int) -> None:
        """Restart the log at another offset; rarely, because otherwise the log would stay small."""
        if chance:
            return
        self.log.truncation.truncate_fully_and_start_at(offset)
        self.batches = []
        self.start = self.end = offset
        self.sent = []
        self._forget_sent()

    def _forget_sent(self) -> None:
        self.sent = [batch for batch in self.sent if batch.next_offset <= self.end]
        last = self.sent[-1] if self.sent else None
        self.sequence = last.sequence + len(last.timestamps) if last else 0

    @rule(share=st.floats(0, 0.4))
    def advance_start(self, share: float) -> None:
        """Increase the start of the log."""
        offset = int(self.start + share * (self.end - self.start))
        self.log.truncation.advance_log_start_offset(offset)
        self._start_at(offset)

    def _start_at(self, offset: int) -> None:
        self.start = max(self.start, offset)
        self.batches = [batch for batch in self.batches if batch.next_offset > self.start]

    @rule(hours=st.integers(0, 9))
    def grow_old(self, hours: int) -> None:
        """Advance the time, so that retention deletes whole segments."""
        self.world.clock.now_ms += hours * HOUR_MS
        before = self.log.segments_count
        deleted = self.log.deletion.apply_retention(self.end)
        assert deleted <= before
        oldest = self.world.clock.now_ms - 24 * HOUR_MS
        log_start_offset = self.log.log_start_offset
        assert self.start <= log_start_offset <= self.end
        for batch in self.batches:
            if batch.next_offset <= log_start_offset and batch.base_offset >= self.start:
                assert max(batch.timestamps) < oldest
        self._start_at(log_start_offset)

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        """Stop the process, cleanly or not, and start it again."""
        self._stop(clean)
        self._come_back(clean)

    def _stop(self, clean: bool) -> None:
        if clean:
            self.log.close()
        self.point = self.log.recovery_point
        self.log.abandon()

    def _come_back(self, clean: bool) -> None:
        self.log = self.world.load(clean=clean, recovery_point=self.point, log_start=self.start)

    @rule(clean=st.booleans(), data=st.data(), damage=st.sampled_from(["lose", "zero", "garbage"]))
    def restart_damaged(self, clean: bool, data: st.DataObject, damage: str) -> None:
        """Restart with index files and checkpoints that are lost or damaged."""
        self._stop(clean)
        sidecars = [
            path for path in sorted(self.world.folder.iterdir()) if path.name.endswith(SIDECARS)
        ]
        for path in data.draw(st.sets(st.sampled_from(sidecars))) if sidecars else ():
            if damage == "lose":
                path.unlink()
            elif damage == "zero":
                path.write_bytes(bytes(path.stat().st_size))
            else:
                path.write_bytes(data.draw(st.binary(max_size=64)))
        if data.draw(st.booleans()):
            self.point = 0
        self._come_back(clean)

    @rule(share=st.floats(0, 1), max_bytes=st.integers(0, 2000), end=st.floats(0, 1))
    def read(self, share: float, max_bytes: int, end: float) -> None:
        """Read the right batches within the size limit."""
        offset = int(self.start + share * (self.end - self.start))
        limit = int(offset + end * (self.end - offset))
        fetched = self.log.read(offset, max_bytes, max_offset=limit, only_if_cached=True)
        if fetched is None:
            return
        expected = [
            batch
            for batch in self.batches
            if batch.next_offset > offset and batch.next_offset <= limit
        ]
        result = [
            record.offset for record in iterate_records(fetched.records) if record.offset >= offset
        ]
        offsets = [
            number
            for batch in expected
            for number in range(max(batch.base_offset, offset), batch.next_offset)
        ]
        assert result == offsets[: len(result)]
        if offsets:
            assert result or not expected
        size = len(fetched.records)
        assert size <= max_bytes or size == fetched.first_batch_size

    @rule(share=st.floats(-0.1, 1.1))
    def search_time(self, share: float) -> None:
        """Find the first record at or after a time."""
        stamps = [stamp for batch in self.batches for stamp in batch.timestamps]
        low, high = min(stamps, default=START_MS), max(stamps, default=START_MS)
        target = int(low + share * (high - low))
        position = self.log.offset_for_timestamp(target)
        expected = next(
            (
                (stamp, batch.base_offset + index, batch.leader_epoch)
                for batch in self.batches
                for index, stamp in enumerate(batch.timestamps)
                if stamp >= target and batch.base_offset + index >= self.start
            ),
            None,
        )
        assert position == expected

    @rule(epoch=st.integers(-1, 30))
    def end_of_epoch(self, epoch: int) -> None:
        """Find the end of a leader epoch, which is the start of the next one."""
        known, end = self.log.end_offset_for_epoch(epoch)
        later = [batch for batch in self.batches if batch.leader_epoch > epoch]
        if any(batch.leader_epoch == epoch for batch in self.batches):
            assert known == epoch
            assert end == (later[0].base_offset if later else self.end)

    @invariant()
    def log_equals_the_list(self) -> None:
        """Compare start, end and every record with the list."""
        assert self.log.log_start_offset == self.start
        assert self.log.log_end_offset == self.end
        expected = [
            (batch.base_offset + index, stamp)
            for batch in self.batches
            for index, stamp in enumerate(batch.timestamps)
            if batch.base_offset + index >= self.start
        ]
        start = expected[0][0] if expected else self.end
        records = read_all(self.log, max_bytes=300, start=start)
        assert [(record.offset, record.timestamp) for record in records] == expected


TestLogAgainstList = pytest.mark.slow(LogAgainstList.TestCase)
TestLogAgainstList.settings = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
