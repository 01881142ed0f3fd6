"""Power losses at any change to the disk: flushed records stay; others are lost from the end."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.base.rng import SeededRng
from ottla.storage.config import LogConfig
from ottla.storage.log.log import Log
from ottla.testing.sim.faults import PowerLoss
from ottla.testing.sim.files import SimFileSystem
from tests.unit.storage.compacted import in_virtual_time
from tests.unit.storage.world import START_MS, TOPIC_ID, World, make_batch, read_all

CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=80, file_delete_delay_ms=0)

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 6)),
        st.tuples(st.just("append"), st.integers(1, 6)),
        st.tuples(st.just("flush"), st.just(0)),
        st.tuples(st.just("flush in background"), st.booleans()),
        st.tuples(st.just("checkpoint"), st.just(0)),
        st.tuples(st.just("truncate"), st.integers(0, 12)),
        st.tuples(st.just("restart"), st.booleans()),
    ),
    min_size=1,
    max_size=25,
)


class Life:
    """A log on a simulated disk, and the records that it should contain."""

    def __init__(self) -> None:
        self.world = World("/data", CONFIG)
        self.world.files = self.files = SimFileSystem()
        self.serial = 0
        # The values of all records that were appended and not truncated; a batch is one list.
        self.batches: list[list[bytes]] = []
        self.durable = 0
        self.sequence = 0
        self.open()

    def open(self) -> None:
        """Start the log directory."""
        self.directories = self.world.directories()
        self.log: Log = self.directories.create("t", 0, TOPIC_ID, CONFIG)

    def end(self) -> int:
        """Return the offset after all appended records."""
        return sum(len(batch) for batch in self.batches)

    def do(self, step: str, argument: Any) -> None:
        """Perform one step."""
        if step == "append":
            self.append(argument)
        elif step == "flush":
            self.log.durability.flush()
            self.durable = self.end()
        elif step == "flush in background":
            self.durable = max(self.durable, in_virtual_time(self.flush_in_background(argument)))
        elif step == "checkpoint":
            self.directories.checkpoint()
        elif step == "truncate":
            self.truncate(argument)
        else:
            self.restart(argument)

    async def flush_in_background(self, sealed_only: bool) -> int:
        """Flush everything, or only the sealed segments."""
        return await self.log.durability.flush_in_background(sealed_only=sealed_only)

    def append(self, count: int) -> None:
        """Append a batch with unique values."""
        values = [b"%d" % (self.serial + number) for number in range(count)]
        self.serial += count
        # Before the call, because a power loss inside it may keep the batch or not.
        self.batches.append(values)
        data = make_batch(values, timestamp=START_MS + self.serial)
        info = self.log.append_as_leader(data, self.serial // 20)
        assert info.last_offset == self.end() - 1

    def truncate(self, back: int) -> None:
        """Truncate the last records; a power loss may keep the truncation or not."""
        offset = max(0, self.end() - back)
        remaining: list[list[bytes]] = []
        for values in self.batches:
            if sum(map(len, remaining)) + len(values) > offset:
                break
            remaining.append(values)
        self.durable = min(self.durable, sum(map(len, remaining)))
        self.log.truncation.truncate_to(offset)
        self.batches = remaining

    def restart(self, clean: bool) -> None:
        """Stop the process and start it again."""
        if clean:
            self.directories.close()
            self.durable = self.end()
        self.world.files = self.files = self.files.kill()
        self.open()
        self.check(self.end())

    def lose_power(self, seed: int) -> None:
        """Stop the process with a power loss, and check the remaining records."""
        self.world.files = self.files = self.files.power_loss(SeededRng(seed))
        self.open()
        self.check(self.durable)
        remaining: list[list[bytes]] = []
        for values in self.batches:
            if sum(map(len, remaining)) + len(values) > self.log.log_end_offset:
                break
            remaining.append(values)
        self.batches, self.durable = remaining, self.log.recovery_point

    def check(self, at_least: int) -> None:
        """Check that the log has a prefix of the appended records with at least that many."""
        result = [record.value for record in read_all(self.log)]
        expected = [value for values in self.batches for value in values]
        assert result == expected[: len(result)]
        assert len(result) == self.log.log_end_offset >= at_least
        ends = [0]
        for values in self.batches:
            ends.append(ends[-1] + len(values))
        assert len(result) in ends
        for offset in range(len(result)):
            assert self.log.offset_for_timestamp(START_MS) is not None
            assert self.log.epochs.epoch_of(offset) >= 0


@settings(max_examples=150, deadline=None)
@given(steps=STEPS, change=st.integers(1, 120), seed=st.integers(0, 9))
def test_flushed_records_survive_a_power_loss_at_any_moment(
    steps: list[tuple[str, Any]], change: int, seed: int
) -> None:
    """Afterwards the log is a prefix of the appended records, including all flushed ones."""
    life = Life()
    life.files.faults.lose_power_at(change)
    try:
        for step, argument in steps:
            faults = life.files.faults
            life.do(step, argument)
            if life.files.faults is not faults:
                life.files.faults.lose_power_at(max(1, change // 2))
    except PowerLoss:
        pass
    life.lose_power(seed)
    life.append(2)
    life.do("flush", 0)
    flushed = life.end()
    life.lose_power(seed)
    assert life.end() == flushed


@settings(max_examples=60, deadline=None)
@given(steps=STEPS, seed=st.integers(0, 9))
def test_the_log_continues_after_a_power_loss_between_two_steps(
    steps: list[tuple[str, Any]], seed: int
) -> None:
    """After a power loss behind any step of a history, the log accepts the remaining steps."""
    life = Life()
    for step, argument in steps:
        life.do(step, argument)
        durable = life.durable
        life.lose_power(seed)
        assert life.end() >= durable
