"""A log directory that loses power, or is killed, at every single change of its disk.

The script includes everything that a log writes: appends, rolls, transactions, flushes,
checkpoints, truncation, retention, deletion, a clean stop. `OTTLA_SIM_SEEDS` is the number of
random choices of unsynced writes that are lost at each change (default 2).
"""

import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.base.rng import SeededRng
from ottla.storage.config import LogConfig
from ottla.storage.directories.disk import LogDirectories
from ottla.storage.log.log import Log
from ottla.testing.sim.files import SimFileSystem
from ottla.wire.records import control
from ottla.wire.records.records import Record, encode_batch, iterate_batches, iterate_records

pytestmark = pytest.mark.slow

SEEDS = int(os.environ.get("OTTLA_SIM_SEEDS", "2"))
TOPIC_ID = bytes(range(16))
START_MS = 1_700_000_000_000
DAY_MS = 24 * 3600 * 1000
PRODUCER = 7
TRANSACTIONAL = 8


# In a compacted log a gap between segments is no damage; a gap is possible if nothing was durable
# there.
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "flushed": {"flush_on_ack": True},
    "compacted": {"cleanup_policy": frozenset({"compact"})},
}


class Clock:
    """Time that only the script advances."""

    def __init__(self) -> None:
        self.now_ms = START_MS

    def time_ms(self) -> int:
        return self.now_ms

    def monotonic(self) -> float:
        return self.now_ms / 1000

    def cpu_seconds(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.now_ms += round(seconds * 1000)


class Life:
    """One run of a log directory with one log, and what it has acknowledged."""

    def __init__(self, **fields: Any) -> None:
        self.files = SimFileSystem()
        self.clock = Clock()
        self.config = LogConfig(
            segment_bytes=700,
            index_interval_bytes=150,
            retention_ms=DAY_MS,
            file_delete_delay_ms=0,
            **fields,
        )
        # All values that were ever at an offset; the offset up to which they are durable.
        self.values: dict[int, set[bytes]] = defaultdict(set)
        self.epochs: dict[int, int] = {}
        self.durable_end = 0
        self.latest_start = 0
        self.is_created = False
        self.sequence = 0
        self.aborted: list[tuple[int, int]] = []
        self.last: tuple[bytearray, int] | None = None
        self.log: Log
        self.directories: LogDirectories

    def open(self) -> LogDirectories:
        """Open the directory with its current contents."""
        return LogDirectories.open(
            ["/data"],
            files=self.files,
            clock=self.clock,
            rng=SeededRng(1),
            cluster_id="c",
            broker_id=1,
            topic_config=lambda topic: self.config,
        )

    def batch(self, value: bytes, count: int = 1) -> bytearray:
        """Return the producer's next batch."""
        records = [
            Record(b"k", b"%s-%d" % (value, at), timestamp=self.clock.now_ms) for at in range(count)
        ]
        data = encode_batch(
            records, producer_id=PRODUCER, producer_epoch=0, base_sequence=self.sequence
        )
        self.sequence += count
        return data

    def append(self, value: bytes, count: int = 1, epoch: int = 0) -> None:
        """Append a batch of the idempotent producer."""
        data = self.batch(value, count)
        copy = bytearray(data)
        # The batch may be there afterwards, even if its append fails.
        for at in range(count):
            self.values[self.log.log_end_offset + at].add(b"%s-%d" % (value, at))
            self.epochs[self.log.log_end_offset + at] = epoch
        self.log.append_as_leader(data, epoch)
        self.last = copy, self.log.log_end_offset - count

    def transaction(self, sequence: int) -> None:
        """Append a record in a transaction, and abort it."""
        record = Record(b"k", b"t-%d" % sequence, timestamp=self.clock.now_ms)
        first = self.log.log_end_offset
        self.values[first].add(b"t-%d" % sequence)
        self.epochs[first] = 1
        fields = {"producer_id": TRANSACTIONAL, "producer_epoch": 0}
        self.log.append_as_leader(
            encode_batch([record], base_sequence=sequence, transactional=True, **fields), 1
        )
        marker = control.encode_marker(
            control.EndTransactionMarker(control.ControlType.ABORT, 0),
            timestamp=self.clock.now_ms,
            **fields,
        )
        self.log.append_as_leader(marker, 1, from_client=False)
        self.aborted.append((first, first + 1))

    def flush(self) -> None:
        """Make everything durable, so that it must be kept from now on."""
        self.log.durability.flush()
        self.durable_end = self.log.log_end_offset

    def script(self) -> Iterator[Callable[[], object]]:
        """Yield the steps of a run."""
        self.directories = self.open()
        yield lambda: None
        self.log = self.directories.create("t", 0, TOPIC_ID, self.config)
        for number in range(4):
            yield lambda number=number: self.append(b"a%d" % number, 2)  # type: ignore[misc]
        yield self.flush
        self.is_created = True
        for sequence in range(4):
            yield lambda sequence=sequence: self.transaction(sequence)  # type: ignore[misc]
        yield self.directories.checkpoint
        yield lambda: self.append(b"b", 3, 1)
        yield self.flush
        yield self.directories.checkpoint
        for number in range(12):
            yield lambda number=number: self.append(b"c%d" % number, 1, 2)  # type: ignore[misc]
        yield self.flush
        yield self.truncate
        for number in range(4):
            yield lambda number=number: self.append(b"d%d" % number, 1, 3)  # type: ignore[misc]
        yield self.flush
        yield self.delete_old
        yield self.directories.checkpoint
        yield lambda: self.append(b"e", 2, 3)
        yield self.flush
        yield lambda: self.directories.store_high_watermarks({("t", 0): self.log.log_end_offset})
        yield self.log.deletion.remove_deleted
        yield self.directories.close

    def truncate(self) -> None:
        """Truncate records of two segments, as a follower does; they need not be kept any more."""
        target = self.log.log_end_offset - 10
        self.durable_end = min(self.durable_end, target)
        self.sequence -= 10
        self.log.truncation.truncate_to(target)
        self.last = None

    def delete_old(self) -> None:
        """Delete records, and the segments that have no others."""
        self.latest_start = 6
        self.log.truncation.advance_log_start_offset(6)
        self.log.high_watermark = self.log.log_end_offset
        self.log.deletion.apply_retention(self.log.log_end_offset)

    def live(self, change: int) -> bool:
        """Run the script until the power loss at the n-th change; return True if it reached its
        end.
        """
        self.files.faults.lose_power_at(change)
        try:
            for step in self.script():
                step()
        except KeyboardInterrupt:
            return False
        return True

    def roll_often(self, change: int) -> bool:
        """Write segments of a new log, which loses power at the n-th change; return True if it
        reached its end.
        """
        self.directories = self.open()
        self.log = self.directories.create("t", 0, TOPIC_ID, self.config)
        return self._roll_until(change, flushes_at=35)

    def restart(self, change: int, *, is_clean: bool) -> bool:
        """Do the same as `roll_often` in a second run, after a clean end of the first or a kill."""
        self.directories = self.open()
        log = self.directories.create("t", 0, TOPIC_ID, self.config)
        self.log, self.is_created = log, True
        # Only of the first segment.
        for number in range(2):
            self.append(b"a%d" % number)
        self.flush()
        (self.directories.close if is_clean else self.directories.abandon)()
        self.files = self.files if is_clean else self.files.kill()
        self.directories = self.open()
        reopened = self.directories.get("t", 0)
        assert reopened is not None
        self.log, self.last = reopened, None
        return self._roll_until(change, flushes_at=25)

    def _roll_until(self, change: int, flushes_at: int) -> bool:
        self.files.faults.lose_power_at(change)
        try:
            for number in range(40):
                self.append(b"b%d" % number, 1, 2)
                if number == flushes_at:
                    self.flush()
                    self.is_created = True
        except KeyboardInterrupt:
            return False
        return True

    # The conditions that must hold afterwards

    def check(self) -> None:
        """Start again, check, continue, stop cleanly, and check again."""
        directories = self.open()
        log = directories.get("t", 0)
        if log is None:
            assert not self.is_created, "a log with durable records is gone"
            return
        if self.is_created:
            assert log.topic_id == TOPIC_ID
        end = self.judge(log)
        # The next records may replace a marker that was lost.
        self.aborted = [transaction for transaction in self.aborted if transaction[1] < end]
        next_batch = encode_batch([Record(b"k", b"next", timestamp=self.clock.now_ms)])
        assert log.append_as_leader(next_batch, 9).base_offset == end
        self.values[end].add(b"next")
        directories.close()
        log = self.open().get("t", 0)
        assert log is not None
        assert self.judge(log) == end + 1

    def judge(self, log: Log) -> int:
        """Compare the log with what was promised; return its end offset."""
        start, end = log.log_start_offset, log.log_end_offset
        assert 0 <= start <= self.latest_start
        assert end >= self.durable_end, "a durable record is lost"
        offset, values, control_offsets = start, {}, set()
        latest_epoch = 0
        while offset < end:
            fetched = log.read(offset, 300, max_offset=end)
            assert fetched is not None
            headers = [header for _, header in iterate_batches(fetched.records)]
            if not headers and self.config.is_compacted:
                break
            assert headers, f"there is a hole at {offset}"
            for header in headers:
                if not (self.config.is_compacted and offset >= self.durable_end):
                    assert header.base_offset <= offset <= header.last_offset, "offsets follow on"
                assert header.leader_epoch >= latest_epoch, "what was cut off is back"
                latest_epoch = header.leader_epoch
                offset = header.last_offset + 1
                if header.is_control:
                    control_offsets.add(header.base_offset)
            for record in iterate_records(fetched.records):
                values[record.offset] = record.value
        for at in range(start, end):
            if at in values:
                assert values[at] in self.values[at], f"offset {at}"
            elif at not in control_offsets:
                assert self.config.is_compacted, f"there is a hole at {at}"
                assert at >= self.durable_end, f"a durable record is lost at {at}"
        for at in range(start, self.durable_end):
            assert log.epochs.epoch_of(at) == self.epochs.get(at, 1), f"epoch of {at}"
        named = {
            (transaction.first_offset, transaction.last_offset)
            for transaction in log.aborted_transactions(0, end)
        }
        for first, last in self.aborted:
            if first in values and last in control_offsets:
                assert (first, last) in named, "an aborted transaction is not known any more"
        if self.last is not None and self.last[1] < self.durable_end:
            info = log.append_as_leader(bytearray(self.last[0]), 9)
            assert (info.is_duplicate, info.base_offset) == (True, self.last[1])
        return end


@pytest.mark.parametrize("way", ["kill", "power"])
@pytest.mark.parametrize("kind", KINDS)
def test_crash_at_every_change_keeps_durable_records(way: str, kind: str) -> None:
    """There is no gap, no wrong value, and no durable record is lost; duplicates and aborts are
    expected.
    """
    change, ended = 0, False
    while not ended:
        change += 1
        for seed in range(SEEDS if way == "power" else 1):
            life = Life(**KINDS[kind])
            ended = life.live(change)
            rng = SeededRng(change * 1000 + seed)
            life.files = life.files.kill() if way == "kill" else life.files.power_loss(rng)
            try:
                life.check()
            except AssertionError as error:
                raise AssertionError(f"change {change}, seed {seed}: {error}") from error
    assert change > 80


@pytest.mark.parametrize("seed", range(SEEDS))
def test_crash_during_recovery_is_recovered(seed: int) -> None:
    """A recovery that is interrupted at any of its changes is completed by the next start."""
    first, second, ended = 40 + seed * 7 % 80, 0, False
    while not ended:
        second += 1
        life = Life(flush_on_ack=True)
        assert not life.live(first)
        rng = SeededRng(first)
        life.files = life.files.power_loss(rng)
        life.files.faults.lose_power_at(second)
        try:
            life.open()
            ended = True
        except KeyboardInterrupt:
            pass
        life.files = life.files.power_loss(SeededRng(second * 1000 + seed))
        life.check()
    assert second > 1


@pytest.mark.parametrize("first_run", ["clean", "killed", "none"])
@pytest.mark.parametrize("kind", KINDS)
def test_rolls_of_segments_leave_no_gap(kind: str, first_run: str) -> None:
    """A roll does not sync the names of earlier segments, unless the log could lose its first."""
    change, ended = 0, False
    while not ended:
        change += 1
        for seed in range(SEEDS):
            life = Life(**KINDS[kind])
            if first_run == "none":
                ended = life.roll_often(change)
            else:
                ended = life.restart(change, is_clean=first_run == "clean")
            life.files = life.files.power_loss(SeededRng(change * 1000 + seed))
            try:
                life.check()
            except AssertionError as error:
                raise AssertionError(f"change {change}, seed {seed}: {error}") from error
    assert change > 40
